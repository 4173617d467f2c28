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
mod retry;
mod tables;
mod update;

use cache::Cache;
pub use retry::{AdditionalRetries, FailedCondition, failed_conditions};
pub use tables::{Table, TableNames};
pub(crate) use update::Update;

/// The maximum time for which an organization or a team is cached. It can accept requests for this
/// long after it was disabled or marked for removal.
pub const MAX_EXISTENCE_TTL: Duration = Duration::from_secs(60);

/// Formats a time for a record: RFC 3339, in UTC, with milliseconds.
pub fn timestamp(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}

/// The attribute of a disabled organization.
const DISABLED: &str = "disabled_at";

/// The attribute of a team that is being removed.
const REMOVING: &str = "removing_id";

/// Whether an item exists and lacks an attribute.
fn lacks(item: Option<Item>, attribute: &str) -> bool {
    item.is_some_and(|item| !item.contains_key(attribute))
}

fn from_item<R: DeserializeOwned>(item: Item) -> Result<R> {
    serde_dynamo::from_item(item).map_err(Error::internal)
}

/// The partition key of a project's teams. Project ids are unique only within their organization.
pub(crate) fn project_key(organization: &Identifier, project: &Identifier) -> String {
    format!("{}#{}", organization.as_str(), project.as_str())
}

/// An item of DynamoDB: its attributes by their names.
pub type Item = HashMap<String, AttributeValue>;

/// Reads and writes the tables.
pub struct Store {
    client: Client,
    tables: TableNames,
    api_keys: Cache<Arc<KeyRecord>>,
    /// Enabled organizations, and teams that are not being removed.
    existing: Cache<()>,
}

impl Store {
    /// Creates a store from an SDK configuration with a region and credentials. The store sets
    /// timeouts and retries itself.
    ///
    /// API keys are cached for `cache_ttl`; organizations and teams too, but for at most 60 s.
    pub fn new(config: Builder, tables: TableNames, cache_ttl: Duration) -> Self {
        Self {
            client: Client::from_conf(retry::with_retries(config).build()),
            tables,
            api_keys: Cache::new(cache_ttl),
            existing: Cache::new(cache_ttl.min(MAX_EXISTENCE_TTL)),
        }
    }

    /// The record of an API key, if it passes a check. If neither the key nor the given organization
    /// is cached, reads both in one request, and also returns whether the organization is enabled.
    /// Caches the organization only if the key passes and belongs to it.
    pub(crate) async fn valid_key(
        &self,
        id: &str,
        organization: Option<&Identifier>,
        now: SystemTime,
        is_valid: impl Fn(&KeyRecord) -> bool,
    ) -> Result<Option<(Arc<KeyRecord>, Option<bool>)>> {
        if let Some(record) = self.api_keys.get(id, now) {
            return Ok(is_valid(&record).then_some((record, None)));
        }
        let is_cached = |id: &&Identifier| self.existing.get(id.as_str(), now).is_some();
        let uncached = organization.filter(|id| !is_cached(id));
        let mut keys = vec![(Table::KEYS, vec![id])];
        keys.extend(uncached.map(|id| (Table::ORGANIZATIONS, vec![id.as_str()])));
        let mut items = self.read(&keys).await?.into_iter();
        let (item, organization) = (items.next().flatten(), items.next().flatten());
        let Some(item) = item else { return Ok(None) };
        let record: Arc<KeyRecord> = Arc::new(from_item(item)?);
        self.api_keys.insert(id, record.clone(), now);
        if !is_valid(&record) {
            return Ok(None);
        }
        let is_enabled = lacks(organization, DISABLED);
        if is_enabled && uncached.is_some_and(|id| id.as_str() == record.org_id) {
            self.existing.insert(&record.org_id, (), now);
        }
        Ok(Some((record, uncached.map(|_| is_enabled))))
    }

    /// Whether an organization is registered and not disabled.
    pub(crate) async fn organization_is_enabled(
        &self,
        organization: &Identifier,
        now: SystemTime,
    ) -> Result<bool> {
        let key = [organization.as_str()];
        self.exists(Table::ORGANIZATIONS, &key, DISABLED, now).await
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
        self.exists(Table::TEAMS, &key, REMOVING, now).await
    }

    /// Whether a record exists and lacks a mark.
    async fn exists(
        &self,
        table: Table,
        key: &[&str],
        mark: &str,
        now: SystemTime,
    ) -> Result<bool> {
        // Keys of different tables have different numbers of `#`.
        let id = key.join("#");
        if self.existing.get(&id, now).is_some() {
            return Ok(true);
        }
        let item = self.read(&[(table, key.to_vec())]).await?.pop();
        let exists = lacks(item.flatten(), mark);
        if exists {
            self.existing.insert(&id, (), now);
        }
        Ok(exists)
    }

    /// Reads records of different tables with strong consistency. Sends one request, and another one
    /// for what DynamoDB leaves unprocessed: if nothing was processed, DynamoDB returns an error.
    async fn read(&self, keys: &[(Table, Vec<&str>)]) -> Result<Vec<Option<Item>>> {
        let mut requests = HashMap::new();
        for (table, key) in keys {
            let request = KeysAndAttributes::builder().consistent_read(true);
            let request = request.keys(table.item_key(key)).build();
            let request = request.map_err(Error::internal)?;
            requests.insert(self.tables.name(*table).to_owned(), request);
        }
        let mut items = HashMap::new();
        while !requests.is_empty() {
            let batch = self.client.batch_get_item();
            let response = batch.set_request_items(Some(requests)).send().await?;
            items.extend(response.responses.unwrap_or_default());
            requests = response.unprocessed_keys.unwrap_or_default();
        }
        let mut item = |table| items.remove(self.tables.name(table))?.pop();
        Ok(keys.iter().map(|(table, _)| item(*table)).collect())
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
            .expression_attribute_names("#key", table.primary_key[0])
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
        from_item(existing).map(Some)
    }
}
