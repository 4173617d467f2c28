//! Reads and writes records: the items of the DynamoDB tables.
//!
//! A request needs up to three records before it writes: the API key, the organization and a team.
//! They are cached, so that a warm request only writes:
//!
//! | record | is cached if | for |
//! |---|---|---|
//! | API key | the key is accepted | `KEY_CACHE_SECONDS` |
//! | organization | it is enabled | `KEY_CACHE_SECONDS`, at most 60 s |
//! | team | it is not being removed | `KEY_CACHE_SECONDS`, at most 60 s |
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
    types::{AttributeValue, KeysAndAttributes},
};
use serde::de::DeserializeOwned;

use crate::{
    api_key::{ApiKey, KeyRecord},
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

/// The maximum time for which the parent of records, an organization or a team, is cached. It can
/// accept requests for this long after it was disabled or marked for removal.
pub const MAX_PARENT_TTL: Duration = Duration::from_secs(60);

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

/// The state of an organization, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OrganizationState {
    NotRead,
    /// It is enabled. The `request_id` of its record identifies its registration.
    Enabled(Option<Arc<str>>),
    /// It is disabled or not registered.
    Disabled,
}

/// The attribute of an organization's record that disables the organization, whatever its value is.
pub const DISABLED_AT: &str = "disabled_at";

impl OrganizationState {
    fn of(item: Option<Item>) -> Self {
        match item {
            Some(item) if !item.contains_key(DISABLED_AT) => {
                let request_id = item.get("request_id").and_then(|id| id.as_s().ok());
                Self::Enabled(request_id.map(|id| id.as_str().into()))
            }
            _ => Self::Disabled,
        }
    }
}

/// Reads and writes the tables.
pub struct Store {
    client: Client,
    tables: TableNames,
    /// Accepted API keys, by their id.
    keys: Cache<Arc<KeyRecord>>,
    /// The `request_id`s of enabled organizations, by their id.
    organizations: Cache<Option<Arc<str>>>,
    /// Teams that are not being removed, by `<organization>#<project>#<team>`.
    teams: Cache<()>,
}

impl Store {
    /// Creates a store from an SDK configuration with a region and credentials. The store sets
    /// timeouts and retries itself.
    ///
    /// API keys are cached for `cache_ttl`; organizations and teams too, but for at most 60 s.
    pub fn new(config: Builder, tables: TableNames, cache_ttl: Duration) -> Self {
        let parent_ttl = cache_ttl.min(MAX_PARENT_TTL);
        Self {
            client: Client::from_conf(retry::with_retries(config).build()),
            tables,
            keys: Cache::new(cache_ttl),
            organizations: Cache::new(parent_ttl),
            teams: Cache::new(parent_ttl),
        }
    }

    /// Finds an API key, with the state of its organization, which is `NotRead` if the path has another
    /// one. Unless the key is cached, one request reads it together with the organization in the path.
    ///
    /// # Errors
    /// [`Error::KeyNotAccepted`], and then nothing is cached.
    pub(crate) async fn find_key(
        &self,
        key: ApiKey<'_>,
        organization_in_path: Option<&Identifier>,
        now: SystemTime,
    ) -> Result<(Arc<KeyRecord>, OrganizationState)> {
        let cached = self.keys.get(key.id, now);
        let is_cached = cached.is_some();
        let key_row = (Table::KEYS, vec![key.id]);
        let (record, mut state) = match (cached, organization_in_path) {
            (Some(record), _) => (Some(record), OrganizationState::NotRead),
            (None, Some(id)) => {
                let organization_row = (Table::ORGANIZATIONS, vec![id.as_str()]);
                let [key_item, organization_item] = self.read([key_row, organization_row]).await?;
                let record = key_item.map(from_item).transpose()?.map(Arc::new);
                (record, OrganizationState::of(organization_item))
            }
            (None, None) => {
                let [key_item] = self.read([key_row]).await?;
                let record = key_item.map(from_item).transpose()?.map(Arc::new);
                (record, OrganizationState::NotRead)
            }
        };
        let record = record.ok_or(Error::KeyNotAccepted("unknown"))?;
        if let Some(cause) = record.rejection(key, now) {
            return Err(Error::KeyNotAccepted(cause));
        }
        if organization_in_path.is_none_or(|id| id.as_str() == record.org_id) {
            let organization = self.organization(&record.org_id, state, Some(&record), now);
            state = organization.await?;
            if matches!(&state, OrganizationState::Enabled(id) if !record.is_of(id.as_deref())) {
                return Err(Error::KeyNotAccepted("other_registration"));
            }
        } else {
            state = OrganizationState::NotRead;
        }
        if !is_cached {
            self.keys.insert(key.id, record.clone(), now);
        }
        Ok((record, state))
    }

    /// The state of an organization. Reads it unless it is known or cached. With a key, uses and renews
    /// only a cache entry of the key's registration: a newer one counts at once, and a key of an
    /// earlier one must not extend the time in the cache.
    pub(crate) async fn organization(
        &self,
        id: &str,
        mut state: OrganizationState,
        key: Option<&KeyRecord>,
        now: SystemTime,
    ) -> Result<OrganizationState> {
        let is_usable = |id: &Option<Arc<str>>| key.is_none_or(|key| key.is_of(id.as_deref()));
        if state == OrganizationState::NotRead {
            if let Some(request_id) = self.organizations.get(id, now).filter(is_usable) {
                return Ok(OrganizationState::Enabled(request_id));
            }
            let [item] = self.read([(Table::ORGANIZATIONS, vec![id])]).await?;
            state = OrganizationState::of(item);
        }
        if let OrganizationState::Enabled(request_id) = &state
            && is_usable(request_id)
        {
            self.organizations.insert(id, request_id.clone(), now);
        }
        Ok(state)
    }

    /// Whether a team exists and is not being removed. Reads it unless it is cached.
    /// `partition_key` is that of its project: see [`project_key`].
    pub(crate) async fn team_exists(
        &self,
        partition_key: &str,
        team: &Identifier,
        now: SystemTime,
    ) -> Result<bool> {
        let cache_key = format!("{partition_key}#{}", team.as_str());
        if self.teams.get(&cache_key, now).is_some() {
            return Ok(true);
        }
        let row = (Table::TEAMS, vec![partition_key, team.as_str()]);
        let [item] = self.read([row]).await?;
        // The id of a removal that is in progress.
        let exists = item.is_some_and(|item| !item.contains_key("removing_id"));
        if exists {
            self.teams.insert(&cache_key, (), now);
        }
        Ok(exists)
    }

    /// Reads rows of different tables, by their primary keys, with strong consistency. Sends one
    /// request, and further ones for rows that DynamoDB leaves unprocessed.
    async fn read<const N: usize>(
        &self,
        rows: [(Table, Vec<&str>); N],
    ) -> Result<[Option<Item>; N]> {
        let mut unprocessed = HashMap::with_capacity(N);
        for (table, primary_key) in &rows {
            let request = KeysAndAttributes::builder()
                .consistent_read(true)
                .keys(table.item_key(primary_key))
                .build()
                .map_err(Error::internal)?;
            unprocessed.insert(self.tables.name(*table).to_owned(), request);
        }
        let mut found = HashMap::with_capacity(N);
        // The loop ends: if DynamoDB processes none of them, it returns an error.
        while !unprocessed.is_empty() {
            let batch = self.client.batch_get_item();
            let response = batch.set_request_items(Some(unprocessed)).send().await?;
            found.extend(response.responses.unwrap_or_default());
            unprocessed = response.unprocessed_keys.unwrap_or_default();
        }
        let mut take_item = |table| found.remove(self.tables.name(table))?.pop();
        Ok(rows.map(|(table, _)| take_item(table)))
    }
}
