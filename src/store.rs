//! The records in DynamoDB. Every write can be repeated: a retry whose first attempt was written
//! but not confirmed succeeds.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use aws_sdk_dynamodb::{
    Client,
    config::Builder,
    error::SdkError,
    operation::put_item::PutItemError,
    types::{
        AttributeValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem,
        Update as UpdateItem,
    },
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    api_key::KeyRecord,
    error::{Error, Result},
    values::Identifier,
};

mod cache;
pub mod client;
mod errors;
mod tables;

use cache::Cache;
pub use tables::{Table, TableNames};

/// The maximum time for which an organization or a team is cached.
const MAX_EXISTENCE_CACHE: Duration = Duration::from_secs(60);

/// An update of one record, as DynamoDB reads it.
pub(crate) struct Update {
    pub(crate) table: Table,
    /// Every attribute of the record that is not part of its key is a value: `:name`.
    pub(crate) expression: &'static str,
    /// What an existing record must fulfil. A record that does not is a conflict.
    pub(crate) condition: Option<&'static str>,
    /// Placeholders for attributes whose names DynamoDB reserves, such as `("#type", "type")`.
    pub(crate) names: &'static [(&'static str, &'static str)],
}

/// A time as records contain it: RFC 3339, in UTC, with milliseconds.
pub fn timestamp(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}

type Item = HashMap<String, AttributeValue>;

/// The tables, through the client of the AWS SDK.
pub struct Store {
    client: Client,
    tables: TableNames,
    keys: Cache<Arc<KeyRecord>>,
    organizations: Cache<()>,
    teams: Cache<()>,
}

impl Store {
    /// Creates a store from an SDK configuration with an endpoint and credentials. The store sets
    /// timeouts and retries itself.
    ///
    /// API keys are cached for `key_cache`; organizations and teams too, but for at most 60 s.
    pub fn new(config: Builder, tables: TableNames, key_cache: Duration) -> Self {
        Self {
            client: Client::from_conf(errors::with_retries(config).build()),
            tables,
            keys: Cache::new(key_cache),
            organizations: Cache::new(key_cache.min(MAX_EXISTENCE_CACHE)),
            teams: Cache::new(key_cache.min(MAX_EXISTENCE_CACHE)),
        }
    }

    /// The record of an API key.
    pub(crate) async fn key(&self, id: &str, now: SystemTime) -> Result<Option<Arc<KeyRecord>>> {
        let read = async {
            let item = self.read(Table::KEYS, &[id]).await?;
            let record = item.map(serde_dynamo::from_item).transpose();
            Ok(record.map_err(Error::internal)?.map(Arc::new))
        };
        self.keys.get_or_read(id, now, read).await
    }

    /// Whether an organization is registered.
    pub(crate) async fn organization_exists(
        &self,
        organization: &Identifier,
        now: SystemTime,
    ) -> Result<bool> {
        let key = [organization.as_str()];
        self.exists(&self.organizations, Table::ORGANIZATIONS, &key, now)
            .await
    }

    /// Whether a team exists. `project` is the partition key of its table.
    pub(crate) async fn team_exists(
        &self,
        project: &str,
        team: &Identifier,
        now: SystemTime,
    ) -> Result<bool> {
        let key = [project, team.as_str()];
        self.exists(&self.teams, Table::TEAMS, &key, now).await
    }

    async fn exists(
        &self,
        cache: &Cache<()>,
        table: Table,
        key: &[&str],
        now: SystemTime,
    ) -> Result<bool> {
        let read = async { Ok(self.read(table, key).await?.map(drop)) };
        let found = cache.get_or_read(&key.join("#"), now, read).await?;
        Ok(found.is_some())
    }

    /// Reads one record with strong consistency.
    async fn read(&self, table: Table, key: &[&str]) -> Result<Option<Item>> {
        let mut request = self.client.get_item().consistent_read(true);
        for (name, value) in table.key.iter().zip(key) {
            request = request.key(*name, AttributeValue::S((*value).to_owned()));
        }
        let response = request.table_name(self.tables.name(table)).send().await?;
        Ok(response.item)
    }

    /// Writes a record if none has its key. Otherwise it changes nothing and returns the existing
    /// record. One request.
    pub(crate) async fn insert<R: Serialize + DeserializeOwned>(
        &self,
        table: Table,
        record: &R,
    ) -> Result<Option<R>> {
        let item = serde_dynamo::to_item(record).map_err(Error::internal)?;
        let result = self
            .client
            .put_item()
            .table_name(self.tables.name(table))
            .set_item(Some(item))
            .condition_expression("attribute_not_exists(#key)")
            .expression_attribute_names("#key", table.key[0])
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        let Err(error) = result else {
            return Ok(None);
        };
        let Some(PutItemError::ConditionalCheckFailedException(failure)) = error.as_service_error()
        else {
            return Err(error.into());
        };
        let existing = failure.item().cloned();
        let existing = existing.ok_or_else(|| Error::internal("DynamoDB sent no existing item"))?;
        let existing = serde_dynamo::from_item(existing).map_err(Error::internal)?;
        Ok(Some(existing))
    }

    /// Applies an update to 1 to 100 records: to all of them, or to none if one is a conflict.
    /// Returns the indexes of the conflicts that DynamoDB reports. One request.
    pub(crate) async fn update<R: Serialize>(
        &self,
        update: &Update,
        records: &[R],
    ) -> Result<Vec<usize>> {
        let updates = records.iter().map(|record| self.bind(update, record));
        let updates: Vec<UpdateItem> = updates.collect::<Result<_, _>>()?;
        match <[UpdateItem; 1]>::try_from(updates) {
            Ok([update]) => self.update_one(update).await,
            Err(updates) => self.update_all(updates).await,
        }
    }

    /// Binds the values of a record to the expressions of an update.
    fn bind<R: Serialize>(&self, update: &Update, record: &R) -> Result<UpdateItem> {
        let item: Item = serde_dynamo::to_item(record).map_err(Error::internal)?;
        let mut bound = UpdateItem::builder()
            .table_name(self.tables.name(update.table))
            .update_expression(update.expression)
            .set_condition_expression(update.condition.map(str::to_owned));
        for (placeholder, name) in update.names {
            bound = bound.expression_attribute_names(*placeholder, *name);
        }
        for (name, value) in item {
            bound = if update.table.key.contains(&name.as_str()) {
                bound.key(name, value)
            } else {
                bound.expression_attribute_values(format!(":{name}"), value)
            };
        }
        bound.build().map_err(Error::internal)
    }

    async fn update_one(&self, update: UpdateItem) -> Result<Vec<usize>> {
        let result = self
            .client
            .update_item()
            .table_name(update.table_name)
            .set_key(Some(update.key))
            .update_expression(update.update_expression)
            .set_condition_expression(update.condition_expression)
            .set_expression_attribute_names(update.expression_attribute_names)
            .set_expression_attribute_values(update.expression_attribute_values)
            .send()
            .await;
        match result {
            Ok(_) => Ok(vec![]),
            Err(SdkError::ServiceError(error))
                if error.err().is_conditional_check_failed_exception() =>
            {
                Ok(vec![0])
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn update_all(&self, updates: Vec<UpdateItem>) -> Result<Vec<usize>> {
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
        let conflicts = error.as_service_error().map(errors::failed_conditions);
        let conflicts = conflicts.filter(|conflicts| !conflicts.is_empty());
        conflicts.ok_or_else(|| error.into())
    }
}
