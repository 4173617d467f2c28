//! Conditional writes: of one record, and of many records in transactions.

use std::{collections::HashMap, time::SystemTime};

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::{
    error::ProvideErrorMetadata as _,
    operation::delete_item::DeleteItemError,
    types::{
        AttributeValue, ConditionCheck, Delete, ReturnValue, ReturnValuesOnConditionCheckFailure,
        TransactWriteItem, Update,
    },
};
use serde_json::Value;
use workspace_management::store::{FailedCondition, Item, Table, failed_conditions, timestamp};
use workspace_records::item::to_json;

use crate::{
    deployment::Deployment,
    errors::Response as _,
    query::Query,
    session::{Operator, random_id},
};

/// The maximum number of actions in a transaction of DynamoDB.
const MAX_ACTIONS: usize = 100;

/// The attributes that say which write a record is from. A record has those of a change or of a restore
/// only if there was one.
pub(crate) const WRITE: [&str; 5] = [
    "created_at",
    "request_id",
    "updated_at",
    "updated_request_id",
    "restored_request_id",
];

/// The values of an expression: their placeholders and their text.
type Values<'a> = &'a [(&'a str, &'a str)];

/// A condition on the record with a primary key.
pub(crate) struct Condition {
    table: Table,
    key: Item,
    /// The key in messages.
    name: String,
    expression: String,
    values: Item,
}

impl Condition {
    /// No condition yet.
    pub(crate) fn new(table: Table, key: &[&str]) -> Self {
        Self {
            table,
            key: table.item_key(key),
            name: key.join(" "),
            expression: String::new(),
            values: Item::new(),
        }
    }

    /// Adds an expression that must also hold.
    pub(crate) fn and(mut self, expression: &str, values: Values<'_>) -> Self {
        if !self.expression.is_empty() {
            self.expression += " AND ";
        }
        self.expression += expression;
        self.values.extend(to_item(values));
        self
    }

    /// Adds that these attributes are as in a record that was read: the same string, or absent. An
    /// attribute that is not a string, which only other programs write, never is.
    pub(crate) fn and_unchanged(mut self, record: &Value, names: &[&str]) -> Self {
        for name in names {
            let placeholder = format!(":{name}");
            self = match record.get(*name) {
                Some(value) => {
                    let value = value.as_str().unwrap_or_default();
                    self.and(&format!("{name} = {placeholder}"), &[(&placeholder, value)])
                }
                None => self.and(&format!("attribute_not_exists({name})"), &[]),
            };
        }
        self
    }

    /// The condition as an action of a transaction, which it cancels if it fails.
    pub(crate) fn check(&self, deployment: &Deployment) -> Result<TransactWriteItem> {
        let check = ConditionCheck::builder()
            .table_name(deployment.tables.name(self.table))
            .set_key(Some(self.key.clone()))
            .condition_expression(&self.expression)
            .set_expression_attribute_values(self.placeholders(&[]))
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
            .set_key(Some(self.key.clone()))
            .update_expression(expression)
            .condition_expression(&self.expression)
            .set_expression_attribute_values(self.placeholders(values))
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
            .set_key(Some(self.key.clone()))
            .update_expression(expression)
            .condition_expression(&self.expression)
            .set_expression_attribute_values(self.placeholders(values))
            .return_values(ReturnValue::AllNew)
            .send()
            .await;
        match updated {
            Err(error) if error.code() == Some("ConditionalCheckFailedException") => Ok(None),
            updated => {
                let updated = updated.or_fail(|| self.failure("update", deployment))?;
                Ok(updated.attributes.map(to_json))
            }
        }
    }

    /// Marks the record with an expression that uses `:id`, `:at` and `:by`. Keeps an existing mark.
    /// `attribute` is the attribute with the id of the mark. Returns the record, and the condition that
    /// it still has this mark; or `None` if the condition fails.
    pub(crate) async fn mark(
        self,
        deployment: &Deployment,
        operator: &Operator,
        expression: &str,
        attribute: &'static str,
    ) -> Result<Option<(Value, Self)>> {
        let (id, now) = (random_id()?, timestamp(SystemTime::now()));
        let values = [(":id", &*id), (":at", &*now), (":by", &*operator.name)];
        let Some(record) = self.update(deployment, expression, &values).await? else {
            return Ok(None);
        };
        let id = record[attribute].as_str();
        let id = id.context("another program has marked it, not with text")?;
        let marked = Self {
            expression: format!("{attribute} = :id"),
            values: to_item(&[(":id", id)]),
            ..self
        };
        Ok(Some((record, marked)))
    }

    /// Deletes the record. Returns false if the condition fails because the record has changed, and
    /// true if the record is gone: an attempt whose response was lost can have deleted it.
    pub(crate) async fn delete(&self, deployment: &Deployment) -> Result<bool> {
        let deleted = deployment
            .client
            .delete_item()
            .table_name(deployment.tables.name(self.table))
            .set_key(Some(self.key.clone()))
            .condition_expression(&self.expression)
            .set_expression_attribute_values(self.placeholders(&[]))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        if let Err(error) = &deleted
            && let Some(DeleteItemError::ConditionalCheckFailedException(failure)) =
                error.as_service_error()
        {
            return Ok(failure.item().is_none_or(HashMap::is_empty));
        }
        deleted.or_fail(|| self.failure("delete", deployment))?;
        Ok(true)
    }

    /// The values of the condition and of an update, or `None`, because DynamoDB rejects an empty map.
    fn placeholders(&self, update: Values<'_>) -> Option<Item> {
        let mut values = self.values.clone();
        values.extend(to_item(update));
        (!values.is_empty()).then_some(values)
    }

    fn failure(&self, verb: &str, deployment: &Deployment) -> String {
        let table = deployment.tables.name(self.table);
        format!("cannot {verb} {} in {table}", self.name)
    }
}

fn to_item(values: Values<'_>) -> Item {
    let value = |text: &str| AttributeValue::S(text.to_owned());
    let values = values.iter();
    values
        .map(|(placeholder, text)| ((*placeholder).to_owned(), value(text)))
        .collect()
}

/// Sends a transaction. Returns the actions whose condition failed. If there are any, nothing was
/// written. `what` says what failed otherwise.
pub(crate) async fn transact(
    deployment: &Deployment,
    actions: Vec<TransactWriteItem>,
    what: impl FnOnce() -> String,
) -> Result<Vec<FailedCondition>> {
    let request = deployment.client.transact_write_items();
    let sent = request.set_transact_items(Some(actions)).send().await;
    if let Err(error) = &sent
        && let Some(error) = error.as_service_error()
    {
        let failed = failed_conditions(error);
        if !failed.is_empty() {
            return Ok(failed);
        }
    }
    sent.or_fail(what)?;
    Ok(vec![])
}

/// Deletes what queries find, until they find nothing, and then the marked record. The condition, which
/// every transaction checks, is that the record still has this mark. If the record does not, another
/// run has finished, and nothing is left to delete. Returns how many of the found records were deleted.
pub(crate) async fn delete_all(
    deployment: &Deployment,
    marked: &Condition,
    queries: impl Fn() -> Vec<Query>,
) -> Result<usize> {
    let mut deleted = 0;
    loop {
        let mut found = 0;
        for mut query in queries() {
            while let Some(items) = query.next(deployment).await? {
                found += items.len();
                for items in items.chunks(MAX_ACTIONS - 1) {
                    if !delete_items(deployment, marked, &query, items).await? {
                        return Ok(deleted);
                    }
                    deleted += items.len();
                }
            }
        }
        if found == 0 {
            break;
        }
    }
    marked.delete(deployment).await?;
    Ok(deleted)
}

/// Deletes items in a transaction that also checks a condition. Returns false if the condition failed.
async fn delete_items(
    deployment: &Deployment,
    condition: &Condition,
    query: &Query,
    items: &[Item],
) -> Result<bool> {
    let name = deployment.tables.name(query.table);
    let mut actions = vec![condition.check(deployment)?];
    for item in items {
        let delete = Delete::builder().table_name(name);
        let delete = delete.set_key(Some(query.key(item))).build()?;
        actions.push(TransactWriteItem::builder().delete(delete).build());
    }
    let what = || format!("cannot delete records in {name}");
    let failed = transact(deployment, actions, what).await?;
    Ok(failed.is_empty())
}
