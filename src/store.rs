//! Reads and writes records: the items of the DynamoDB tables.
//!
//! A request needs up to three records before it writes: the API key, its organization and a team. Two of
//! them are cached, so a warm request with a key only writes:
//!
//! | record | is cached if |
//! |---|---|
//! | API key | it is accepted, and its organization is enabled and has the `request_id` that the key has |
//! | team | it exists and is not being removed; separately for each API key |
//! | organization | never. Anonymous callers read it each time |
//!
//! An entry is used until `KEY_CACHE_SECONDS` (at most 60) after the request that read it was received.
//!
//! A write is repeated if its response is lost. `Store::insert` can then return what an earlier attempt
//! stored, and the expressions of an `Update` must be idempotent.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use aws_sdk_dynamodb::{
    Client,
    config::Builder,
    types::{AttributeValue, KeysAndAttributes},
};
use serde::de::DeserializeOwned;
use tokio::time::sleep;

use crate::{
    api_key::KeyRecord,
    error::{Error, Result},
    values::Identifier,
};

mod cache;
pub mod client;
mod retry;
mod tables;
mod write;

use cache::Cache;
pub use retry::{AdditionalRetries, FailedCondition, failed_conditions};
pub use tables::{Table, TableNames};
pub(crate) use write::Update;
pub use write::insert_item;

/// The maximum time for which the function caches API keys and teams. For this long it can accept a
/// revoked key, a key of a disabled organization, or users for a team that is being removed.
pub const MAX_CACHE_TIME: Duration = Duration::from_secs(60);

/// The wait before items that DynamoDB left unprocessed are read again. It doubles each time.
const FIRST_WAIT: Duration = Duration::from_millis(50);

/// Formats a time for a record: RFC 3339, in UTC, with milliseconds.
pub fn timestamp(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}

/// The partition key of a project's teams. Project ids are unique only within their organization.
pub(crate) fn project_key(organization: &Identifier, project: &Identifier) -> String {
    format!("{}#{}", organization.as_str(), project.as_str())
}

/// An item of DynamoDB: its attributes by their names.
pub type Item = HashMap<String, AttributeValue>;

fn from_item<R: DeserializeOwned>(item: Item) -> Result<R> {
    serde_dynamo::from_item(item).map_err(Error::internal)
}

/// The attribute of an organization's record that disables the organization, whatever its value is.
pub const DISABLED_AT: &str = "disabled_at";

/// The record of an organization.
#[derive(Clone)]
pub(crate) struct Organization(Item);

impl Organization {
    pub(crate) fn is_enabled(&self) -> bool {
        !self.0.contains_key(DISABLED_AT)
    }

    /// The id of the request that registered the organization. It is different after the organization
    /// was erased and registered again, so API keys have it as their `org_request_id`.
    pub(crate) fn request_id(&self) -> Option<&str> {
        self.0.get("request_id")?.as_s().ok().map(String::as_str)
    }
}

/// The record of an API key, and where it was found.
pub(crate) enum FoundKey {
    /// In the cache. When the key was read, the organization was enabled and had the `request_id` that
    /// the key has.
    Cached(Arc<KeyRecord>),
    /// In the table. The organization is the one in the path. `None` if the path has none, or it is not
    /// registered.
    Read(Arc<KeyRecord>, Option<Organization>),
}

impl FoundKey {
    pub(crate) fn record(&self) -> &KeyRecord {
        let (Self::Cached(record) | Self::Read(record, _)) = self;
        record
    }
}

/// Reads and writes the tables.
pub struct Store {
    client: Client,
    tables: TableNames,
    /// Accepted API keys, by their id.
    keys: Cache<Arc<KeyRecord>>,
    /// Existing teams, by the id of the API key and their primary key. An API key belongs to one
    /// registration of its organization, and so do the teams that are cached for it.
    teams: Cache<()>,
}

impl Store {
    /// Creates a store from an SDK configuration with a region and credentials. The store sets
    /// timeouts and retries itself. It caches for `cache_time`, which is at most [`MAX_CACHE_TIME`].
    pub fn new(config: Builder, tables: TableNames, cache_time: Duration) -> Self {
        Self {
            client: Client::from_conf(retry::with_retries(config).build()),
            tables,
            keys: Cache::new(cache_time),
            teams: Cache::new(cache_time),
        }
    }

    /// Finds an API key in the cache. Otherwise reads it, together with the organization in the path.
    pub(crate) async fn find_key(
        &self,
        id: &str,
        in_path: Option<&Identifier>,
        now: SystemTime,
    ) -> Result<Option<FoundKey>> {
        if let Some(record) = self.keys.get(id, now) {
            return Ok(Some(FoundKey::Cached(record)));
        }
        let key = (Table::KEYS, vec![id]);
        let (key, organization) = match in_path {
            Some(in_path) => {
                let organization = (Table::ORGANIZATIONS, vec![in_path.as_str()]);
                let [key, organization] = self.read([key, organization]).await?;
                (key, organization)
            }
            None => {
                let [key] = self.read([key]).await?;
                (key, None)
            }
        };
        let Some(key) = key else {
            return Ok(None);
        };
        let record = Arc::new(from_item(key)?);
        Ok(Some(FoundKey::Read(record, organization.map(Organization))))
    }

    /// Caches an API key that is accepted. `read_at` is before the key and its organization were read.
    pub(crate) fn cache_key(&self, record: &Arc<KeyRecord>, read_at: SystemTime) {
        self.keys.insert(&record.key_id, record.clone(), read_at);
    }

    /// Reads an organization. `None` if it is not registered.
    pub(crate) async fn organization(&self, id: &str) -> Result<Option<Organization>> {
        let [item] = self.read([(Table::ORGANIZATIONS, vec![id])]).await?;
        Ok(item.map(Organization))
    }

    /// Checks that a team exists and is not being removed. Reads it unless it is cached for the API key
    /// with this id. `partition_key` is that of its project: see [`project_key`].
    ///
    /// # Errors
    /// [`Error::NoSuchTeam`], or [`Error::Unavailable`] or [`Error::Internal`] if the read fails.
    pub(crate) async fn require_team(
        &self,
        partition_key: &str,
        team: &Identifier,
        key_id: &str,
        now: SystemTime,
    ) -> Result<()> {
        let cache_key = format!("{key_id}#{partition_key}#{}", team.as_str());
        if self.teams.get(&cache_key, now).is_some() {
            return Ok(());
        }
        let primary_key = vec![partition_key, team.as_str()];
        let [item] = self.read([(Table::TEAMS, primary_key)]).await?;
        let item = item.ok_or(Error::NoSuchTeam("not_found"))?;
        // The id of a removal that is in progress.
        if item.contains_key("removing_id") {
            return Err(Error::NoSuchTeam("being_removed"));
        }
        self.teams.insert(&cache_key, (), now);
        Ok(())
    }

    /// Reads at most one item from each of different tables, with strong consistency. Sends one request,
    /// and further ones until nothing is unprocessed. Only the timeout of the API request limits them.
    async fn read<const N: usize>(
        &self,
        primary_keys: [(Table, Vec<&str>); N],
    ) -> Result<[Option<Item>; N]> {
        let mut unprocessed = HashMap::with_capacity(N);
        for (table, primary_key) in &primary_keys {
            let request = KeysAndAttributes::builder()
                .consistent_read(true)
                .keys(table.item_key(primary_key))
                .build()
                .map_err(Error::internal)?;
            unprocessed.insert(self.tables.name(*table).to_owned(), request);
        }
        let mut found = HashMap::with_capacity(N);
        let mut wait = FIRST_WAIT;
        loop {
            let batch = self.client.batch_get_item();
            let response = batch.set_request_items(Some(unprocessed)).send().await?;
            found.extend(response.responses.unwrap_or_default());
            unprocessed = response.unprocessed_keys.unwrap_or_default();
            if unprocessed.is_empty() {
                break;
            }
            sleep(wait).await;
            wait *= 2;
        }
        let mut take_item = |table| found.remove(self.tables.name(table))?.pop();
        Ok(primary_keys.map(|(table, _)| take_item(table)))
    }
}
