//! Sends writes.

use anyhow::Result;
use aws_sdk_dynamodb::{
    operation::put_item::PutItemError,
    types::{
        ConditionCheck, Delete, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
    },
};
use workspace_management::store::{Item, failed_conditions};
use workspace_records::kinds::HISTORY;

use super::{Change, Outcome, Refusal, Write};
use crate::{deployment::Deployment, errors::RequestResultExt as _, record::Record};

/// The maximum number of writes in a transaction.
pub(crate) const MAX_WRITES: usize = 100;

/// Sends 1 to [`MAX_WRITES`] writes as one transaction. If a condition fails, nothing is written.
pub(super) async fn transact(deployment: &Deployment, writes: Vec<Write>) -> Result<Outcome> {
    let mut actions = Vec::new();
    for write in &writes {
        actions.push(write.to_action(deployment)?);
    }
    let request = deployment.dynamodb.transact_write_items();
    let Err(error) = request.set_transact_items(Some(actions)).send().await else {
        return Ok(Outcome::Done);
    };
    let failed = error.as_service_error().map(failed_conditions);
    let failed = failed.unwrap_or_default();
    // An entry has a random id. If it exists, an earlier attempt has succeeded, whose response was
    // lost.
    if failed
        .iter()
        .any(|failed| writes[failed.index].record.key.table() == HISTORY)
    {
        return Ok(Outcome::Done);
    }
    match failed.into_iter().next() {
        Some(failed) => writes[failed.index].refused(failed.existing),
        None => {
            let is_change = |write: &&Write| !matches!(write.change, Change::Check);
            let first = writes.iter().find(is_change);
            let description = first.map(|write| write.description(deployment));
            let message = format!("cannot write {}", description.unwrap_or_default());
            Err(error).request_context(deployment, message)
        }
    }
}

/// Stores a record with one request, at half the cost of a transaction.
pub(super) async fn put(deployment: &Deployment, record: Record) -> Result<Outcome> {
    let write = Write::put(record);
    let rendered = write.render();
    let result = deployment
        .dynamodb
        .put_item()
        .table_name(deployment.table_name(write.record.key.table()))
        .set_item(Some(write.result().item))
        .set_condition_expression(rendered.condition)
        .set_expression_attribute_names(rendered.names)
        .return_values_on_condition_check_failure(ALL_OLD)
        .send()
        .await;
    if let Err(error) = &result
        && let Some(PutItemError::ConditionalCheckFailedException(failure)) =
            error.as_service_error()
    {
        return write.refused(failure.item.clone().unwrap_or_default());
    }
    let message = format!("cannot store {}", write.description(deployment));
    result.request_context(deployment, message)?;
    Ok(Outcome::Done)
}

const ALL_OLD: ReturnValuesOnConditionCheckFailure = ReturnValuesOnConditionCheckFailure::AllOld;

impl Write {
    /// The record as messages name it, such as `acme#apollo docs in TeamsTable`.
    fn description(&self, deployment: &Deployment) -> String {
        let table_name = deployment.table_name(self.record.key.table());
        format!("{} in {table_name}", self.record.key.values().join(" "))
    }

    /// The outcome if a condition failed. `existing` is empty if there is no record.
    fn refused(&self, existing: Item) -> Result<Outcome> {
        let existing = if existing.is_empty() {
            None
        } else {
            Some(Record::new(self.record.key.table(), existing)?)
        };
        let reason = self.refusal.clone();
        Ok(Outcome::Refused(Refusal { reason, existing }))
    }

    /// The write as a part of a transaction.
    fn to_action(&self, deployment: &Deployment) -> Result<TransactWriteItem> {
        let table_name = deployment.table_name(self.record.key.table());
        let key = self.record.key.to_item();
        let rendered = self.render();
        let action = TransactWriteItem::builder();
        let action = match &self.change {
            Change::Check => action.condition_check(
                ConditionCheck::builder()
                    .table_name(table_name)
                    .set_key(Some(key))
                    .set_condition_expression(rendered.condition)
                    .set_expression_attribute_names(rendered.names)
                    .set_expression_attribute_values(rendered.values)
                    .return_values_on_condition_check_failure(ALL_OLD)
                    .build()?,
            ),
            Change::Put(item) => action.put(
                Put::builder()
                    .table_name(table_name)
                    .set_item(Some(item.clone()))
                    .set_condition_expression(rendered.condition)
                    .set_expression_attribute_names(rendered.names)
                    .set_expression_attribute_values(rendered.values)
                    .return_values_on_condition_check_failure(ALL_OLD)
                    .build()?,
            ),
            Change::Update(_) => action.update(
                Update::builder()
                    .table_name(table_name)
                    .set_key(Some(key))
                    .set_update_expression(rendered.update)
                    .set_condition_expression(rendered.condition)
                    .set_expression_attribute_names(rendered.names)
                    .set_expression_attribute_values(rendered.values)
                    .return_values_on_condition_check_failure(ALL_OLD)
                    .build()?,
            ),
            Change::Delete => action.delete(
                Delete::builder()
                    .table_name(table_name)
                    .set_key(Some(key))
                    .set_condition_expression(rendered.condition)
                    .set_expression_attribute_names(rendered.names)
                    .set_expression_attribute_values(rendered.values)
                    .return_values_on_condition_check_failure(ALL_OLD)
                    .build()?,
            ),
        };
        Ok(action.build())
    }
}
