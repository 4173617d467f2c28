//! Writes records. If the condition of a write fails, DynamoDB returns the existing record.

use std::collections::HashMap;

use aws_sdk_dynamodb::{
    operation::{
        put_item::PutItemError, transact_write_items::TransactWriteItemsError,
        update_item::UpdateItemError,
    },
    types::{ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update},
};
use serde::{Serialize, de::DeserializeOwned};

use super::{Item, Store, Table, parse, retry};
use crate::error::{Error, Result};

/// How to update the records of a table. The expressions use DynamoDB's syntax.
pub(crate) struct UpsertSpec {
    pub(crate) table: Table,
    /// The update expression. `:x` is the value of the record's attribute `x`.
    pub(crate) expression: &'static str,
    /// The condition expression. `None` updates or creates a record unconditionally.
    pub(crate) condition: Option<&'static str>,
    /// The placeholders for attribute names that are reserved words in DynamoDB, such as
    /// `("#type", "type")`.
    pub(crate) name_placeholders: &'static [(&'static str, &'static str)],
}

/// A failed condition and the existing record. The DynamoDB request wrote nothing.
#[derive(Debug)]
pub struct FailedCondition {
    /// The index of the record or action whose condition failed.
    pub index: usize,
    /// The existing item. Empty if there is none.
    pub existing: Item,
}

/// The failed conditions that cancelled a transaction. Empty for any other error.
pub fn failed_conditions(error: &TransactWriteItemsError) -> Vec<FailedCondition> {
    let mut failed = Vec::new();
    for (index, reason) in retry::cancellation_reasons(error).iter().enumerate() {
        if reason.code() == Some(retry::CONDITION_FAILED_CODE) {
            let existing = reason.item().cloned().unwrap_or_default();
            failed.push(FailedCondition { index, existing });
        }
    }
    failed
}

impl Store {
    /// Inserts a record unless its primary key exists. Returns the existing record, or `None` if the
    /// record was inserted. If the response to an earlier attempt was lost, the existing record can
    /// be from that attempt. Sends one DynamoDB request, apart from retries.
    pub(crate) async fn insert_if_absent<R: Serialize + DeserializeOwned>(
        &self,
        table: Table,
        record: &R,
    ) -> Result<Option<R>> {
        let item = serde_dynamo::to_item(record).map_err(Error::internal)?;
        let put = self
            .client
            .put_item()
            .table_name(self.table_names.get(table));
        let result = put
            .set_item(Some(item))
            .condition_expression("attribute_not_exists(#key)")
            .expression_attribute_names("#key", table.primary_key_attributes[0])
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        match result {
            Ok(_) => Ok(None),
            Err(error) => match error.as_service_error() {
                Some(PutItemError::ConditionalCheckFailedException(failure)) => {
                    parse(Some(failure.item.clone().unwrap_or_default()))
                }
                _ => Err(error.into()),
            },
        }
    }

    /// Updates or creates 1 to 100 records, all or none, in one DynamoDB request. Returns the
    /// failed conditions. If there are any, nothing was written.
    pub(crate) async fn upsert<R: Serialize>(
        &self,
        spec: &UpsertSpec,
        records: &[R],
    ) -> Result<Vec<FailedCondition>> {
        if let [record] = records {
            // An `UpdateItem` costs half as much as a transaction.
            return self.upsert_one(spec, record).await;
        }
        let mut transaction = self.client.transact_write_items();
        for record in records {
            let (primary_key, values) = key_and_values(spec, record)?;
            let update = Update::builder()
                .table_name(self.table_names.get(spec.table))
                .set_key(Some(primary_key))
                .update_expression(spec.expression)
                .set_condition_expression(spec.condition.map(str::to_owned))
                .set_expression_attribute_names(attribute_names(spec))
                .set_expression_attribute_values(Some(values))
                .return_values_on_condition_check_failure(
                    ReturnValuesOnConditionCheckFailure::AllOld,
                );
            let update = update.build().map_err(Error::internal)?;
            let action = TransactWriteItem::builder().update(update).build();
            transaction = transaction.transact_items(action);
        }
        match transaction.send().await {
            Ok(_) => Ok(vec![]),
            Err(error) => match error.as_service_error().map(failed_conditions) {
                Some(failed) if !failed.is_empty() => Ok(failed),
                _ => Err(error.into()),
            },
        }
    }

    async fn upsert_one<R: Serialize>(
        &self,
        spec: &UpsertSpec,
        record: &R,
    ) -> Result<Vec<FailedCondition>> {
        let (primary_key, values) = key_and_values(spec, record)?;
        let request = self
            .client
            .update_item()
            .table_name(self.table_names.get(spec.table))
            .set_key(Some(primary_key))
            .update_expression(spec.expression)
            .set_condition_expression(spec.condition.map(str::to_owned))
            .set_expression_attribute_names(attribute_names(spec))
            .set_expression_attribute_values(Some(values))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        match request.send().await {
            Ok(_) => Ok(vec![]),
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(failure)) => {
                    let existing = failure.item().cloned().unwrap_or_default();
                    Ok(vec![FailedCondition { index: 0, existing }])
                }
                _ => Err(error.into()),
            },
        }
    }
}

/// The primary key of a record, and its other attributes as values of the expressions.
fn key_and_values<R: Serialize>(spec: &UpsertSpec, record: &R) -> Result<(Item, Item)> {
    let attributes: serde_dynamo::Item = serde_dynamo::to_item(record).map_err(Error::internal)?;
    let attributes = attributes.into_inner();
    let mut primary_key = Item::with_capacity(2);
    let mut values = Item::with_capacity(attributes.len());
    for (name, value) in attributes {
        if spec.table.primary_key_attributes.contains(&name.as_str()) {
            primary_key.insert(name, value.into());
        } else {
            values.insert([":", &name].concat(), value.into());
        }
    }
    Ok((primary_key, values))
}

fn attribute_names(spec: &UpsertSpec) -> Option<HashMap<String, String>> {
    let names = spec.name_placeholders.iter();
    let names = names.map(|(placeholder, name)| ((*placeholder).to_owned(), (*name).to_owned()));
    // DynamoDB rejects an empty map.
    (!spec.name_placeholders.is_empty()).then(|| names.collect())
}
