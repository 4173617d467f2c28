//! Conditions on a record, and what is done to it if they hold.

use std::{collections::HashMap, time::SystemTime};

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::{
    error::ProvideErrorMetadata as _,
    types::{
        AttributeValue, ConditionCheck, Delete, ReturnValue, ReturnValuesOnConditionCheckFailure,
        TransactWriteItem, Update,
    },
};
use serde_json::Value;
use workspace_management::store::{Table, timestamp};

use super::{last_of_key, transact};
use crate::{
    deployment::Deployment,
    records::{has, key, to_json},
    session::{Operator, random_id},
};

/// The name of DynamoDB's type of text, as a value of a condition.
const TEXT: &str = "type_of_text";

/// The values of an expression: the names of their placeholders, without the colon, and their text.
pub(crate) type Values<'a> = &'a [(&'static str, String)];

/// A condition on a record.
pub(crate) struct Condition<'a> {
    table: Table,
    key: Vec<&'a str>,
    expression: String,
    values: Vec<(&'static str, String)>,
}

impl<'a> Condition<'a> {
    /// A condition on the record with a key.
    pub(crate) fn new(table: Table, key: &[&'a str], expression: &str, values: Values<'_>) -> Self {
        Self {
            table,
            key: key.to_vec(),
            expression: expression.to_owned(),
            values: values.to_vec(),
        }
    }

    /// The condition that a record exists, and still has these attributes as it was read, or still
    /// lacks them. One that is not text must still be of another type.
    pub(crate) fn unchanged(table: Table, record: &'a Value, names: &[&'static str]) -> Self {
        let exists = format!("attribute_exists({})", last_of_key(table));
        let condition = Self::new(table, &key(table, record), &exists, &[]);
        names
            .iter()
            .fold(condition, |condition, name| match record[*name].as_str() {
                Some(value) => {
                    condition.and(&format!("{name} = :{name}"), &[(*name, value.to_owned())])
                }
                None if has(record, name) => condition.and(
                    &format!("attribute_exists({name}) AND NOT attribute_type({name}, :{TEXT})"),
                    &[(TEXT, "S".to_owned())],
                ),
                None => condition.and(&format!("attribute_not_exists({name})"), &[]),
            })
    }

    /// Adds a condition on the same record.
    pub(crate) fn and(mut self, expression: &str, values: Values<'_>) -> Self {
        self.expression += &format!(" AND {expression}");
        self.values.extend_from_slice(values);
        self
    }

    /// The condition as an action of a transaction, which it cancels if it fails.
    pub(crate) fn check(&self, deployment: &Deployment) -> Result<TransactWriteItem> {
        let check = ConditionCheck::builder()
            .table_name(deployment.tables.name(self.table))
            .set_key(Some(self.table.item_key(&self.key)))
            .condition_expression(&self.expression)
            .set_expression_attribute_values(placeholders(&self.values, &[]))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build()?;
        Ok(TransactWriteItem::builder().condition_check(check).build())
    }

    /// An update of the record as an action of a transaction, which it cancels if the condition fails.
    pub(crate) fn update_action(
        &self,
        deployment: &Deployment,
        expression: &str,
        values: Values<'_>,
    ) -> Result<TransactWriteItem> {
        let update = Update::builder()
            .table_name(deployment.tables.name(self.table))
            .set_key(Some(self.table.item_key(&self.key)))
            .update_expression(expression)
            .condition_expression(&self.expression)
            .set_expression_attribute_values(placeholders(&self.values, values))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build()?;
        Ok(TransactWriteItem::builder().update(update).build())
    }

    /// Updates the record. Returns its new attributes, or `None` if the condition fails.
    pub(crate) async fn update(
        &self,
        deployment: &Deployment,
        expression: &str,
        values: Values<'_>,
    ) -> Result<Option<Value>> {
        let updated = deployment
            .client
            .update_item()
            .table_name(deployment.tables.name(self.table))
            .set_key(Some(self.table.item_key(&self.key)))
            .update_expression(expression)
            .condition_expression(&self.expression)
            .set_expression_attribute_values(placeholders(&self.values, values))
            .return_values(ReturnValue::AllNew)
            .send()
            .await;
        match updated {
            Ok(updated) => Ok(updated.attributes.map(to_json)),
            Err(error) if error.code() == Some("ConditionalCheckFailedException") => Ok(None),
            Err(error) => Err(error).with_context(|| self.failure("update", deployment)),
        }
    }

    /// Marks the record, which was read before, as `verb`: with a random id. An existing mark stays,
    /// unless it is not text, which only other programs write. Returns the record with its mark, or `None`
    /// if the condition fails.
    pub(crate) async fn mark(
        &self,
        deployment: &Deployment,
        operator: &Operator,
        record: &Value,
        verb: &str,
    ) -> Result<Option<Value>> {
        let sets = ["id", "at", "by"].map(|name| {
            let mark = format!("{verb}_{name}");
            match has(record, &mark) && !record[&mark].is_string() {
                true => format!("{mark} = :{name}"),
                false => format!("{mark} = if_not_exists({mark}, :{name})"),
            }
        });
        let (now, by) = (timestamp(SystemTime::now()), operator.name.clone());
        let values = [("id", random_id()?), ("at", now), ("by", by)];
        let expression = format!("SET {}", sets.join(", "));
        let marked = self.update(deployment, &expression, &values).await?;
        let is_marked = |record: &Value| record[format!("{verb}_id")].is_string();
        Ok(marked.filter(is_marked))
    }

    /// Deletes the record, in a transaction. The SDK gives each transaction a token, so DynamoDB
    /// recognizes one that the SDK repeats because the response was lost, and reports success.
    pub(crate) async fn delete(&self, deployment: &Deployment) -> Result<Deletion> {
        let delete = Delete::builder()
            .table_name(deployment.tables.name(self.table))
            .set_key(Some(self.table.item_key(&self.key)))
            .condition_expression(&self.expression)
            .set_expression_attribute_values(placeholders(&self.values, &[]))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build()?;
        let action = TransactWriteItem::builder().delete(delete).build();
        let failed = transact(deployment, vec![action]).await;
        let failed = failed.with_context(|| self.failure("delete", deployment))?;
        Ok(match failed.first() {
            None => Deletion::Done,
            Some(failed) if failed.existing.is_empty() => Deletion::Missing,
            Some(_) => Deletion::Changed,
        })
    }

    fn failure(&self, verb: &str, deployment: &Deployment) -> String {
        let key = self.key.join(" ");
        format!(
            "cannot {verb} {key} in {}",
            deployment.tables.name(self.table)
        )
    }
}

/// What became of a conditional delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deletion {
    Done,
    /// Another process has changed or replaced the record. It still exists.
    Changed,
    /// Another process has deleted the record.
    Missing,
}

/// The values of a condition and an update, or `None`, because DynamoDB rejects an empty map.
fn placeholders(
    condition: Values<'_>,
    update: Values<'_>,
) -> Option<HashMap<String, AttributeValue>> {
    let values = condition.iter().chain(update);
    let values: HashMap<_, _> = values
        .map(|(name, value)| (format!(":{name}"), AttributeValue::S(value.clone())))
        .collect();
    (!values.is_empty()).then_some(values)
}
