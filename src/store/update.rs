//! Updates of one record or of several, all or none.

use aws_sdk_dynamodb::{
    operation::update_item::UpdateItemError,
    types::{ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update as BoundUpdate},
};
use serde::Serialize;

use super::{Item, Store, Table, retry};
use crate::error::{Error, Result};

/// DynamoDB's expressions for updating a record. They are applied to one record or to several.
pub(crate) struct Update {
    pub(crate) table: Table,
    /// Must use the value `:<attribute>` of every non-key attribute of the record, because DynamoDB
    /// rejects unused values.
    pub(crate) expression: &'static str,
    /// Must fail if the update would change a record that has the same content, including one that
    /// lacks an audit attribute. DynamoDB also evaluates the condition if the record does not exist:
    /// start it with `attribute_not_exists(<key>) OR` to create the record.
    pub(crate) condition: &'static str,
    /// The attributes that are compared if the condition fails. A record that differs in one of
    /// them is a conflict.
    pub(crate) content: &'static [&'static str],
    /// Placeholders for attributes whose names DynamoDB reserves, such as `("#type", "type")`.
    pub(crate) names: &'static [(&'static str, &'static str)],
}

/// The index of an action whose condition failed, and the existing item.
pub(super) type FailedCondition = (usize, Item);

impl Store {
    /// Applies an update to 1 to 100 records: to all of them, or to none if there is a conflict.
    /// Returns the indexes of the conflicts that DynamoDB reports. Sends one request, apart from
    /// retries. If conditions failed but there is no conflict, sends the other records again.
    pub(crate) async fn update<R: Serialize>(
        &self,
        update: &Update,
        records: &[R],
    ) -> Result<Vec<usize>> {
        let mut remaining: Vec<usize> = (0..records.len()).collect();
        while !remaining.is_empty() {
            let updates = remaining.iter();
            let updates = updates.map(|index| self.bind(update, &records[*index]));
            let updates: Vec<BoundUpdate> = updates.collect::<Result<_, _>>()?;
            let failures = match <[BoundUpdate; 1]>::try_from(updates) {
                // Costs half as much as a transaction.
                Ok([update]) => self.update_one(update).await?,
                Err(updates) => self.update_in_transaction(updates).await?,
            };
            let (mut failed, mut conflicts) = (Vec::new(), Vec::new());
            for (position, existing) in failures {
                let index = remaining[position];
                failed.push(index);
                if !update.has_content(&records[index], &existing)? {
                    conflicts.push(index);
                }
            }
            if failed.is_empty() || !conflicts.is_empty() {
                return Ok(conflicts);
            }
            remaining.retain(|index| !failed.contains(index));
        }
        Ok(vec![])
    }

    /// Binds the values of a record to the expressions of an update.
    fn bind<R: Serialize>(&self, update: &Update, record: &R) -> Result<BoundUpdate> {
        let item: Item = serde_dynamo::to_item(record).map_err(Error::internal)?;
        let (mut key, mut values) = (Item::with_capacity(2), Item::with_capacity(item.len()));
        for (name, value) in item {
            if update.table.primary_key.contains(&name.as_str()) {
                key.insert(name, value);
            } else {
                values.insert([":", &name].concat(), value);
            }
        }
        let mut bound = BoundUpdate::builder()
            .set_key(Some(key))
            .set_expression_attribute_values(Some(values))
            .table_name(self.tables.name(update.table))
            .update_expression(update.expression)
            .condition_expression(update.condition)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        for (placeholder, name) in update.names {
            bound = bound.expression_attribute_names(*placeholder, *name);
        }
        bound.build().map_err(Error::internal)
    }

    async fn update_one(&self, update: BoundUpdate) -> Result<Vec<FailedCondition>> {
        let result = self
            .client
            .update_item()
            .table_name(update.table_name)
            .set_key(Some(update.key))
            .update_expression(update.update_expression)
            .set_condition_expression(update.condition_expression)
            .set_expression_attribute_names(update.expression_attribute_names)
            .set_expression_attribute_values(update.expression_attribute_values)
            .set_return_values_on_condition_check_failure(
                update.return_values_on_condition_check_failure,
            )
            .send()
            .await;
        let Err(error) = result else {
            return Ok(vec![]);
        };
        match error.as_service_error() {
            Some(UpdateItemError::ConditionalCheckFailedException(failure)) => {
                Ok(vec![(0, failure.item().cloned().unwrap_or_default())])
            }
            _ => Err(error.into()),
        }
    }

    async fn update_in_transaction(
        &self,
        updates: Vec<BoundUpdate>,
    ) -> Result<Vec<FailedCondition>> {
        let actions = updates
            .into_iter()
            .map(|update| TransactWriteItem::builder().update(update).build());
        let result = self
            .client
            .transact_write_items()
            .set_transact_items(Some(actions.collect()))
            .send()
            .await;
        let Err(error) = result else {
            return Ok(vec![]);
        };
        let failures = error.as_service_error().map(retry::failed_conditions);
        let failures = failures.filter(|failures| !failures.is_empty());
        failures.ok_or_else(|| error.into())
    }
}

impl Update {
    /// Whether an existing item has the content of a record.
    fn has_content<R: Serialize>(&self, record: &R, existing: &Item) -> Result<bool> {
        let item: Item = serde_dynamo::to_item(record).map_err(Error::internal)?;
        let mut content = self.content.iter();
        Ok(content.all(|name| existing.get(*name) == item.get(*name)))
    }
}
