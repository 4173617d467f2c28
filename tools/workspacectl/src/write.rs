//! Conditional writes to single records, and transactions.

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
use workspace_management::store::{
    FailedCondition, Item, Table, failed_conditions, put_item_if_absent, timestamp,
};
use workspace_records::item::to_json;

use crate::{
    deployment::Deployment,
    errors::RequestResultExt as _,
    read::Reader,
    session::{Run, random_id},
};

/// The maximum number of actions in a DynamoDB transaction.
const MAX_ACTIONS: usize = 100;

/// The values of an expression: pairs of a placeholder, such as `:id`, and a string.
type ExpressionValues<'a> = &'a [(&'a str, &'a str)];

/// The names of the attributes of a mark.
pub(crate) struct MarkAttributes {
    id_name: &'static str,
    at_name: &'static str,
    by_name: &'static str,
}

pub(crate) const TEAM_MARK: MarkAttributes = MarkAttributes {
    id_name: "removing_id",
    at_name: "removing_at",
    by_name: "removing_by",
};

pub(crate) const ORG_MARK: MarkAttributes = MarkAttributes {
    id_name: "erasing_id",
    at_name: "erasing_at",
    by_name: "erasing_by",
};

/// Whether an attribute with this name belongs to a mark.
pub(crate) fn is_mark_attribute(name: &str) -> bool {
    name.starts_with("removing_") || name.starts_with("erasing_")
}

/// A record with its mark, and the same record guarded by this mark.
pub(crate) struct MarkedRecord {
    pub(crate) record: Value,
    pub(crate) record_if_marked: GuardedRecord,
}

/// A record, by its primary key, and the condition under which it may be written. Most variables of
/// this type are named after the record and its condition, such as `org_if_enabled`.
pub(crate) struct GuardedRecord {
    table: Table,
    primary_key: Item,
    /// The primary key as shown in messages.
    display_key: String,
    /// The expression of the condition and its values.
    condition: String,
    condition_values: Item,
}

impl GuardedRecord {
    /// A record that must exist. Without this condition, an update would create it.
    pub(crate) fn if_exists(table: Table, primary_key: &[impl AsRef<str>]) -> Self {
        let primary_key: Vec<&str> = primary_key.iter().map(AsRef::as_ref).collect();
        // Uses the last attribute, because the first one of a team, `project`, is a reserved word.
        let attribute = table.primary_key_attributes[primary_key.len() - 1];
        Self {
            table,
            primary_key: table.primary_key(&primary_key),
            display_key: primary_key.join(" "),
            condition: format!("attribute_exists({attribute})"),
            condition_values: Item::new(),
        }
    }

    /// Also requires this condition.
    pub(crate) fn and(mut self, condition: &str, values: ExpressionValues<'_>) -> Self {
        self.condition += &format!(" AND {condition}");
        self.condition_values.extend(expression_values(values));
        self
    }

    /// Also requires that each of these attributes has the same string as in `record`, or is still
    /// absent. The condition never holds for an attribute that is not a string.
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

    /// An action that checks the condition. If the condition fails, the transaction is cancelled.
    pub(crate) fn to_check_action(&self, deployment: &Deployment) -> Result<TransactWriteItem> {
        let check = ConditionCheck::builder()
            .table_name(deployment.table_name(self.table))
            .set_key(Some(self.primary_key.clone()))
            .condition_expression(&self.condition)
            .set_expression_attribute_values(self.all_values(&[]))
            .build()?;
        Ok(TransactWriteItem::builder().condition_check(check).build())
    }

    /// An action that updates the record. If the condition fails, the transaction is cancelled.
    pub(crate) fn to_update_action(
        &self,
        deployment: &Deployment,
        expression: &str,
        values: ExpressionValues<'_>,
    ) -> Result<TransactWriteItem> {
        let update = Update::builder()
            .table_name(deployment.table_name(self.table))
            .set_key(Some(self.primary_key.clone()))
            .update_expression(expression)
            .condition_expression(&self.condition)
            .set_expression_attribute_values(self.all_values(values))
            .build()?;
        Ok(TransactWriteItem::builder().update(update).build())
    }

    /// Updates the record. Returns the updated record, or `None` if the condition fails.
    pub(crate) async fn update(
        &self,
        deployment: &Deployment,
        expression: &str,
        values: ExpressionValues<'_>,
    ) -> Result<Option<Value>> {
        let result = deployment
            .dynamodb
            .update_item()
            .table_name(deployment.table_name(self.table))
            .set_key(Some(self.primary_key.clone()))
            .update_expression(expression)
            .condition_expression(&self.condition)
            .set_expression_attribute_values(self.all_values(values))
            .return_values(ReturnValue::AllNew)
            .send()
            .await;
        if let Err(error) = &result
            && error.code() == Some("ConditionalCheckFailedException")
        {
            return Ok(None);
        }
        let response = result.request_context(self.failure_message("update", deployment))?;
        Ok(response.attributes.map(to_json))
    }

    /// Marks the record, unless it has a mark already. Returns the record with its new or earlier
    /// mark, or `None` if the condition fails.
    pub(crate) async fn mark(
        self,
        deployment: &Deployment,
        run: &Run,
        mark: MarkAttributes,
    ) -> Result<Option<MarkedRecord>> {
        let MarkAttributes {
            id_name,
            at_name,
            by_name,
        } = mark;
        let expression = format!(
            "SET {id_name} = if_not_exists({id_name}, :id), \
            {at_name} = if_not_exists({at_name}, :at), \
            {by_name} = if_not_exists({by_name}, :by)"
        );
        let new_id = random_id()?;
        let now = timestamp(SystemTime::now());
        let values = [
            (":id", new_id.as_str()),
            (":at", &now),
            (":by", &run.operator),
        ];
        let Some(record) = self.update(deployment, &expression, &values).await? else {
            return Ok(None);
        };
        let stored_id = record[id_name]
            .as_str()
            .with_context(|| format!("another program has changed {id_name}"))?;
        let record_if_marked = Self {
            condition: format!("{id_name} = :id"),
            condition_values: expression_values(&[(":id", stored_id)]),
            ..self
        };
        Ok(Some(MarkedRecord {
            record,
            record_if_marked,
        }))
    }

    /// Deletes the record. Returns false if the record no longer meets the condition. Returns true
    /// if there is no record, because an earlier attempt by the SDK may have deleted it.
    pub(crate) async fn delete(&self, deployment: &Deployment) -> Result<bool> {
        let result = deployment
            .dynamodb
            .delete_item()
            .table_name(deployment.table_name(self.table))
            .set_key(Some(self.primary_key.clone()))
            .condition_expression(&self.condition)
            .set_expression_attribute_values(self.all_values(&[]))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        if let Err(error) = &result
            && let Some(DeleteItemError::ConditionalCheckFailedException(failure)) =
                error.as_service_error()
        {
            return Ok(failure.item().is_none_or(HashMap::is_empty));
        }
        result.request_context(self.failure_message("delete", deployment))?;
        Ok(true)
    }

    /// The values of the condition and an update. `None` if empty, as DynamoDB requires.
    fn all_values(&self, update_values: ExpressionValues<'_>) -> Option<Item> {
        let mut values = self.condition_values.clone();
        values.extend(expression_values(update_values));
        (!values.is_empty()).then_some(values)
    }

    fn failure_message(&self, verb: &str, deployment: &Deployment) -> String {
        let table_name = deployment.table_name(self.table);
        format!("cannot {verb} {} in {table_name}", self.display_key)
    }
}

fn expression_values(values: ExpressionValues<'_>) -> Item {
    let attributes = values.iter().map(|(placeholder, text)| {
        let value = AttributeValue::S((*text).to_owned());
        ((*placeholder).to_owned(), value)
    });
    attributes.collect()
}

/// Inserts a record unless its primary key exists. Returns the existing record, if there is one.
/// `failure_message` is the message if that fails, such as `cannot register acme`.
pub(crate) async fn insert_if_absent(
    deployment: &Deployment,
    table: Table,
    record: &Value,
    failure_message: String,
) -> Result<Option<Value>> {
    let item = serde_dynamo::to_item(record)?;
    let existing = put_item_if_absent(&deployment.dynamodb, &deployment.table_names, table, item)
        .await
        .request_context(failure_message)?;
    Ok(existing.map(to_json))
}

/// Sends a transaction. Returns the failed conditions, or an empty list if the transaction
/// succeeded. If a condition fails, nothing is written. `failure_message` describes any other
/// failure.
pub(crate) async fn transact(
    deployment: &Deployment,
    actions: Vec<TransactWriteItem>,
    failure_message: String,
) -> Result<Vec<FailedCondition>> {
    let request = deployment.dynamodb.transact_write_items();
    match request.set_transact_items(Some(actions)).send().await {
        Ok(_) => Ok(vec![]),
        Err(error) => match error.as_service_error().map(failed_conditions) {
            Some(failed) if !failed.is_empty() => Ok(failed),
            _ => Err(error).request_context(failure_message),
        },
    }
}

/// Reads and deletes the children of a marked parent, repeatedly, until fresh readers find none.
/// Then deletes the parent. Returns how many children this run deleted. A concurrent run may count
/// the same children.
///
/// Every transaction checks that the parent still has its mark. If it does not, another run has
/// finished, and nothing is left to delete.
pub(crate) async fn delete_with_children(
    deployment: &Deployment,
    parent_if_marked: &GuardedRecord,
    make_readers: impl Fn() -> Vec<Reader>,
) -> Result<usize> {
    let mut deleted_count = 0;
    loop {
        let mut found_count = 0;
        for mut reader in make_readers() {
            while let Some(batch) = reader.next_batch(deployment).await? {
                found_count += batch.len();
                // One action is the condition check.
                for children in batch.chunks(MAX_ACTIONS - 1) {
                    if !delete_children(deployment, parent_if_marked, &reader, children).await? {
                        return Ok(deleted_count);
                    }
                    deleted_count += children.len();
                }
            }
        }
        if found_count == 0 {
            break;
        }
    }
    // If the condition fails, another run deleted the parent, and a new one has its primary key.
    parent_if_marked.delete(deployment).await?;
    Ok(deleted_count)
}

/// Deletes children in a transaction. Returns false if their parent has lost its mark.
async fn delete_children(
    deployment: &Deployment,
    parent_if_marked: &GuardedRecord,
    reader: &Reader,
    children: &[Item],
) -> Result<bool> {
    let table_name = deployment.table_name(reader.table);
    let primary_key_attributes = reader.table.primary_key_attributes;
    let mut actions = vec![parent_if_marked.to_check_action(deployment)?];
    for child in children {
        let mut primary_key = child.clone();
        primary_key.retain(|name, _| primary_key_attributes.contains(&name.as_str()));
        let delete = Delete::builder()
            .table_name(table_name)
            .set_key(Some(primary_key))
            .build()?;
        actions.push(TransactWriteItem::builder().delete(delete).build());
    }
    let message = format!("cannot delete records in {table_name}");
    let failed = transact(deployment, actions, message).await?;
    Ok(failed.is_empty())
}
