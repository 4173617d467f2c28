//! Conditional writes: of one record, and of many records in transactions.

mod lost_response;

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
use workspace_management::store::{FailedCondition, Table, failed_conditions, timestamp};

use self::lost_response::LostResponse;
use crate::{
    deployment::Deployment,
    export::AppendedExport,
    progress::Counter,
    query::Query,
    records::{has, to_json},
    session::{Operator, random_id},
};

/// The maximum number of actions in a transaction of DynamoDB.
pub(crate) const MAX_ACTIONS: usize = 100;

/// The values of an expression: the names of their placeholders, without the colon, and their text.
pub(crate) type Values<'a> = &'a [(&'static str, String)];

/// A condition on a record.
#[derive(Clone, Copy)]
pub(crate) struct Condition<'a> {
    pub(crate) table: Table,
    pub(crate) key: &'a [&'a str],
    pub(crate) expression: &'a str,
    pub(crate) values: Values<'a>,
}

impl Condition<'_> {
    /// The condition as an action of a transaction, which it cancels if it fails.
    pub(crate) fn check(&self, deployment: &Deployment) -> Result<TransactWriteItem> {
        let check = ConditionCheck::builder()
            .table_name(deployment.tables.name(self.table))
            .set_key(Some(self.table.item_key(self.key)))
            .condition_expression(self.expression)
            .set_expression_attribute_values(placeholders(self.values, &[]))
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
            .set_key(Some(self.table.item_key(self.key)))
            .update_expression(expression)
            .condition_expression(self.expression)
            .set_expression_attribute_values(placeholders(self.values, values))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build()?;
        Ok(TransactWriteItem::builder().update(update).build())
    }

    /// Updates the record. Returns its new attributes, or `None` if the condition fails.
    ///
    /// # Errors
    /// If DynamoDB cannot be reached or rejects the request.
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
            .set_key(Some(self.table.item_key(self.key)))
            .update_expression(expression)
            .condition_expression(self.expression)
            .set_expression_attribute_values(placeholders(self.values, values))
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
    ///
    /// # Errors
    /// If DynamoDB cannot be reached or rejects the request.
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

    /// Deletes the record. If its response is lost, the request is repeated, so a condition that
    /// fails for the second attempt of a missing record is a success.
    ///
    /// # Errors
    /// If DynamoDB cannot be reached or rejects the request.
    pub(crate) async fn delete(&self, deployment: &Deployment) -> Result<Deletion> {
        let lost = LostResponse::default();
        let deleted = deployment
            .client
            .delete_item()
            .table_name(deployment.tables.name(self.table))
            .set_key(Some(self.table.item_key(self.key)))
            .condition_expression(self.expression)
            .set_expression_attribute_values(placeholders(self.values, &[]))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .customize()
            .interceptor(lost.clone())
            .send()
            .await;
        let Err(error) = deleted else {
            return Ok(Deletion::Done);
        };
        match error.as_service_error() {
            Some(DeleteItemError::ConditionalCheckFailedException(failure)) => {
                Ok(match failure.item() {
                    Some(_) => Deletion::Changed,
                    None if lost.is_possible() => Deletion::Done,
                    None => Deletion::Missing,
                })
            }
            _ => Err(error).with_context(|| self.failure("delete", deployment)),
        }
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

/// Sends a transaction. Returns the actions whose condition failed. If there are any, nothing was
/// written.
///
/// # Errors
/// If DynamoDB cannot be reached or rejects the request.
pub(crate) async fn transact(
    deployment: &Deployment,
    actions: Vec<TransactWriteItem>,
) -> Result<Vec<FailedCondition>> {
    let sent = deployment
        .client
        .transact_write_items()
        .set_transact_items(Some(actions))
        .send()
        .await;
    let Err(error) = sent else {
        return Ok(vec![]);
    };
    let failed = error.as_service_error().map(failed_conditions);
    match failed.filter(|failed| !failed.is_empty()) {
        Some(failed) => Ok(failed),
        None => Err(error).context("a transaction failed"),
    }
}

/// Deletes what a query finds, in transactions that also check a condition. The export has it before.
/// Returns how many records it found, or `None` if the condition failed: then the rest is not deleted.
///
/// # Errors
/// If DynamoDB cannot be reached or rejects a request, or the export cannot be written.
pub(crate) async fn delete_found(
    deployment: &Deployment,
    condition: &Condition<'_>,
    mut query: Query,
    counter: &mut Counter,
    mut export: Option<&mut AppendedExport>,
) -> Result<Option<usize>> {
    let mut found = 0;
    while let Some(items) = query.next(deployment).await? {
        let keys: Vec<_> = items.iter().map(|item| query.key(item)).collect();
        found += keys.len();
        if let Some(export) = &mut export {
            export.append(query.table(), items.into_iter().map(to_json))?;
        }
        for keys in keys.chunks(MAX_ACTIONS - 1) {
            let mut actions = vec![condition.check(deployment)?];
            for key in keys {
                let delete = Delete::builder()
                    .table_name(deployment.tables.name(query.table()))
                    .set_key(Some(key.clone()))
                    .build()?;
                actions.push(TransactWriteItem::builder().delete(delete).build());
            }
            if !transact(deployment, actions).await?.is_empty() {
                return Ok(None);
            }
            counter.add(keys.len());
        }
    }
    Ok(Some(found))
}

/// The values of a condition and an update, or `None`, because DynamoDB rejects an empty map.
fn placeholders(
    condition: Values<'_>,
    update: Values<'_>,
) -> Option<HashMap<String, AttributeValue>> {
    let values = condition.iter().chain(update);
    let values: HashMap<_, _> = values
        .map(|(name, value)| (format!(":{name}"), text(value)))
        .collect();
    (!values.is_empty()).then_some(values)
}

/// A text as an attribute of a record.
pub(crate) fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}
