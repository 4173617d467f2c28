//! Reads and writes records: the items of the DynamoDB tables.
//!
//! A write is repeated if its response is lost. `Store::insert` then returns what the first attempt
//! stored, and the expressions of an `Update` must be idempotent.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use aws_sdk_dynamodb::{
    Client,
    config::Builder,
    operation::put_item::PutItemError,
    types::{AttributeValue, ReturnValuesOnConditionCheckFailure},
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
mod update;

use cache::Cache;
pub use tables::{Table, TableNames};
pub(crate) use update::Update;

/// The maximum time for which an organization or a team is cached. Within this time of its deletion,
/// it accepts no more anonymous callers or users.
const MAX_EXISTENCE_TTL: Duration = Duration::from_secs(60);

/// Formats a time for a record: RFC 3339, in UTC, with milliseconds.
pub fn timestamp(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}

type Item = HashMap<String, AttributeValue>;

/// Reads and writes the tables.
pub struct Store {
    client: Client,
    tables: TableNames,
    api_keys: Cache<Arc<KeyRecord>>,
    organizations: Cache<()>,
    teams: Cache<()>,
}

impl Store {
    /// Creates a store from an SDK configuration with a region and credentials. The store sets
    /// timeouts and retries itself.
    ///
    /// API keys are cached for `cache_ttl`; organizations and teams too, but for at most 60 s.
    pub fn new(config: Builder, tables: TableNames, cache_ttl: Duration) -> Self {
        Self {
            client: Client::from_conf(errors::with_retries(config).build()),
            tables,
            api_keys: Cache::new(cache_ttl),
            organizations: Cache::new(cache_ttl.min(MAX_EXISTENCE_TTL)),
            teams: Cache::new(cache_ttl.min(MAX_EXISTENCE_TTL)),
        }
    }

    /// The record of an API key.
    pub(crate) async fn api_key(
        &self,
        id: &str,
        now: SystemTime,
    ) -> Result<Option<Arc<KeyRecord>>> {
        let read = async {
            let item = self.read(Table::KEYS, &[id]).await?;
            let record = item.map(serde_dynamo::from_item).transpose();
            Ok(record.map_err(Error::internal)?.map(Arc::new))
        };
        self.api_keys.get_or_read(id, now, read).await
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

    /// Whether a team exists. `project_key` is its partition key: `<organization>#<project>`.
    pub(crate) async fn team_exists(
        &self,
        project_key: &str,
        team: &Identifier,
        now: SystemTime,
    ) -> Result<bool> {
        let key = [project_key, team.as_str()];
        self.exists(&self.teams, Table::TEAMS, &key, now).await
    }

    async fn exists(
        &self,
        cache: &Cache<()>,
        table: Table,
        key: &[&str],
        now: SystemTime,
    ) -> Result<bool> {
        let read = async { Ok(self.read(table, key).await?.map(|_| ())) };
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

    /// Writes a record unless one with its key exists. Returns the existing record, or `None`. After
    /// a lost response, the existing record can be the one that this call wrote. Sends one request,
    /// apart from retries.
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
        let existing = existing.ok_or_else(|| Error::internal("DynamoDB returned no item"))?;
        let existing = serde_dynamo::from_item(existing);
        existing.map(Some).map_err(Error::internal)
    }
}
