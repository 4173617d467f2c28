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
    types::{AttributeValue, KeysAndAttributes, ReturnValuesOnConditionCheckFailure},
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
pub use errors::{TransientErrorClassifier, failed_conditions};
pub use tables::{Table, TableNames};
pub(crate) use update::Update;

/// The maximum time for which an organization or a team is cached. Within this time after it was
/// disabled or marked for removal, it accepts no more requests.
pub const MAX_EXISTENCE_TTL: Duration = Duration::from_secs(60);

/// Formats a time for a record: RFC 3339, in UTC, with milliseconds.
pub fn timestamp(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}

/// Whether an organization accepts requests. An erased one has no record.
fn is_enabled(organization: Option<Item>) -> bool {
    organization.is_some_and(|organization| !organization.contains_key("disabled_at"))
}

/// An item of DynamoDB: its attributes by their names.
pub type Item = HashMap<String, AttributeValue>;

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

    /// The record of an API key, and whether the given organization is enabled. The latter is
    /// `None` unless neither was cached: then both are read in one request. The caller passes it to
    /// [`Store::organization_is_enabled`] after verifying the key.
    pub(crate) async fn api_key(
        &self,
        id: &str,
        organization: Option<&Identifier>,
        now: SystemTime,
    ) -> Result<(Option<Arc<KeyRecord>>, Option<bool>)> {
        let uncached = organization.filter(|organization| {
            let cached = self.organizations.get(organization.as_str(), now);
            cached.is_none()
        });
        let mut enabled = None;
        let read = async {
            let item = match uncached {
                Some(organization) => {
                    let (item, is_enabled) =
                        self.read_key_and_organization(id, organization).await?;
                    enabled = is_enabled;
                    item
                }
                None => self.read(Table::KEYS, &[id]).await?,
            };
            let record = item.map(serde_dynamo::from_item).transpose();
            Ok(record.map_err(Error::internal)?.map(Arc::new))
        };
        let record = self.api_keys.get_or_read(id, now, read).await?;
        Ok((record, enabled))
    }

    /// Whether an organization is registered and not disabled. `known` is what [`Store::api_key`]
    /// found out in the same request.
    pub(crate) async fn organization_is_enabled(
        &self,
        organization: &Identifier,
        known: Option<bool>,
        now: SystemTime,
    ) -> Result<bool> {
        let id = organization.as_str();
        let read = async {
            let enabled = match known {
                Some(enabled) => enabled,
                None => is_enabled(self.read(Table::ORGANIZATIONS, &[id]).await?),
            };
            Ok(enabled.then_some(()))
        };
        let enabled = self.organizations.get_or_read(id, now, read).await?;
        Ok(enabled.is_some())
    }

    /// Whether a team exists and is not being removed. `project_key` is its partition key:
    /// `<organization>#<project>`.
    pub(crate) async fn team_exists(
        &self,
        project_key: &str,
        team: &Identifier,
        now: SystemTime,
    ) -> Result<bool> {
        let key = [project_key, team.as_str()];
        let read = async {
            let team = self.read(Table::TEAMS, &key).await?;
            let team = team.filter(|team| !team.contains_key("removing_id"));
            Ok(team.map(|_| ()))
        };
        let found = self.teams.get_or_read(&key.join("#"), now, read).await?;
        Ok(found.is_some())
    }

    /// Reads one record with strong consistency.
    async fn read(&self, table: Table, key: &[&str]) -> Result<Option<Item>> {
        let request = self.client.get_item().consistent_read(true);
        let request = request.set_key(Some(table.item_key(key)));
        let response = request.table_name(self.tables.name(table)).send().await?;
        Ok(response.item)
    }

    /// Reads the record of an API key and whether an organization is enabled, in one request. If
    /// DynamoDB leaves one of them unprocessed, reads the key by itself and returns `None` for the
    /// organization.
    async fn read_key_and_organization(
        &self,
        id: &str,
        organization: &Identifier,
    ) -> Result<(Option<Item>, Option<bool>)> {
        let mut request = self.client.batch_get_item();
        for (table, id) in [
            (Table::KEYS, id),
            (Table::ORGANIZATIONS, organization.as_str()),
        ] {
            let keys = KeysAndAttributes::builder().consistent_read(true);
            let keys = keys.keys(table.item_key(&[id])).build();
            request =
                request.request_items(self.tables.name(table), keys.map_err(Error::internal)?);
        }
        let response = request.send().await?;
        let mut items = response.responses.unwrap_or_default();
        let unprocessed = response.unprocessed_keys.unwrap_or_default();
        // `None` if DynamoDB did not process the table.
        let mut take = |table| {
            let name = self.tables.name(table);
            let item = items.remove(name).and_then(|mut items| items.pop());
            (!unprocessed.contains_key(name)).then_some(item)
        };
        let (key, organization) = (take(Table::KEYS), take(Table::ORGANIZATIONS));
        let key = match key {
            Some(key) => key,
            None => self.read(Table::KEYS, &[id]).await?,
        };
        Ok((key, organization.map(is_enabled)))
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
