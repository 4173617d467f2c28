//! Sends writes.

use std::error::Error;

use anyhow::Result;
use aws_sdk_dynamodb::{
    error::{ProvideErrorMetadata, SdkError},
    types::{
        ConditionCheck, Delete, Put, ReturnValue, ReturnValuesOnConditionCheckFailure,
        TransactWriteItem, Update, error::ConditionalCheckFailedException,
    },
};
use workspace_management::store::{Item, failed_conditions};

use super::{Change, Outcome, Refusal, Write};
use crate::{deployment::Deployment, errors::RequestResultExt as _, record::Record};

/// The maximum number of writes in a transaction.
pub(crate) const MAX_WRITES: usize = 100;

/// Sends one write.
pub(crate) async fn send(deployment: &Deployment, write: Write) -> Result<Outcome> {
    match &write.change {
        Change::Check => transact(deployment, vec![write]).await,
        Change::Put(item) => write.send_put(deployment, item).await,
        Change::Update(_) => write.send_update(deployment).await,
        Change::Delete => write.send_delete(deployment).await,
    }
}

/// Sends 1 to [`MAX_WRITES`] writes as one transaction. If a condition fails, nothing is written.
pub(crate) async fn transact(deployment: &Deployment, writes: Vec<Write>) -> Result<Outcome> {
    let mut actions = Vec::new();
    for write in &writes {
        actions.push(write.to_action(deployment)?);
    }
    let request = deployment.dynamodb.transact_write_items();
    let Err(error) = request.set_transact_items(Some(actions)).send().await else {
        return Ok(Outcome::Done(None));
    };
    let failed = error.as_service_error().map(failed_conditions);
    match failed.unwrap_or_default().into_iter().next() {
        Some(failed) => writes[failed.index].refused(failed.existing),
        None => {
            let last = writes.last().map(|write| write.description(deployment));
            let message = format!("cannot write {}", last.unwrap_or_default());
            Err(error).request_context(deployment, message)
        }
    }
}

const ALL_OLD: ReturnValuesOnConditionCheckFailure = ReturnValuesOnConditionCheckFailure::AllOld;

impl Write {
    async fn send_put(&self, deployment: &Deployment, item: &Item) -> Result<Outcome> {
        let rendered = self.render();
        let put = deployment.dynamodb.put_item();
        let result = put
            .table_name(deployment.table_name(self.key.table()))
            .set_item(Some(item.clone()))
            .set_condition_expression(rendered.condition)
            .set_expression_attribute_names(rendered.names)
            .set_expression_attribute_values(rendered.values)
            .return_values_on_condition_check_failure(ALL_OLD)
            .send()
            .await;
        self.outcome(deployment, "store", result.map(|_| None))
    }

    async fn send_update(&self, deployment: &Deployment) -> Result<Outcome> {
        let rendered = self.render();
        let update = deployment.dynamodb.update_item();
        let result = update
            .table_name(deployment.table_name(self.key.table()))
            .set_key(Some(self.key.to_item()))
            .set_update_expression(rendered.update)
            .set_condition_expression(rendered.condition)
            .set_expression_attribute_names(rendered.names)
            .set_expression_attribute_values(rendered.values)
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ALL_OLD)
            .send()
            .await;
        self.outcome(
            deployment,
            "update",
            result.map(|updated| updated.attributes),
        )
    }

    async fn send_delete(&self, deployment: &Deployment) -> Result<Outcome> {
        let rendered = self.render();
        let delete = deployment.dynamodb.delete_item();
        let result = delete
            .table_name(deployment.table_name(self.key.table()))
            .set_key(Some(self.key.to_item()))
            .set_condition_expression(rendered.condition)
            .set_expression_attribute_names(rendered.names)
            .set_expression_attribute_values(rendered.values)
            .return_values_on_condition_check_failure(ALL_OLD)
            .send()
            .await;
        self.outcome(deployment, "delete", result.map(|_| None))
    }

    /// The record as messages name it, such as `acme#apollo docs in TeamsTable`.
    fn description(&self, deployment: &Deployment) -> String {
        let table_name = deployment.table_name(self.key.table());
        format!("{} in {table_name}", self.key.values().join(" "))
    }

    /// The outcome of sending this write by itself.
    fn outcome<E>(
        &self,
        deployment: &Deployment,
        verb: &str,
        result: Result<Option<Item>, SdkError<E>>,
    ) -> Result<Outcome>
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    {
        if let Err(error) = &result
            && let Some(cause) = error.as_service_error().and_then(Error::source)
            && let Some(failure) = cause.downcast_ref::<ConditionalCheckFailedException>()
        {
            return self.refused(failure.item.clone().unwrap_or_default());
        }
        let message = format!("cannot {verb} {}", self.description(deployment));
        let item = result.request_context(deployment, message)?;
        let record = item.map(|item| Record::new(self.key.table(), item));
        Ok(Outcome::Done(record.transpose()?))
    }

    /// The outcome if a condition failed. `existing` is empty if there is no record.
    fn refused(&self, existing: Item) -> Result<Outcome> {
        let existing = if existing.is_empty() {
            None
        } else {
            Some(Record::new(self.key.table(), existing)?)
        };
        let reason = self.refusal.clone();
        Ok(Outcome::Refused(Refusal { reason, existing }))
    }

    /// The write as a part of a transaction.
    fn to_action(&self, deployment: &Deployment) -> Result<TransactWriteItem> {
        let table_name = deployment.table_name(self.key.table());
        let key = self.key.to_item();
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
                    .build()?,
            ),
        };
        Ok(action.build())
    }
}
