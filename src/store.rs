//! Reads and writes records, which are the items of the DynamoDB tables.
//!
//! A request needs up to three records before it writes: the API key, its organization and a team.
//! Because API keys and teams are cached, most requests with an API key only write:
//!
//! | record | cached |
//! |---|---|
//! | API key, with its organization | if it is accepted: see `auth` |
//! | team | per API key, if it exists and is not being removed |
//! | organization of an anonymous caller | never |
//!
//! A value stays cached for `KEY_CACHE_SECONDS` (at most 60), from the start of the request that
//! read it.
//!
//! # Retries
//!
//! The SDK retries a write whose response is lost, so `Store::insert_if_absent` can return the
//! record that an earlier attempt inserted. For the same reason, the expressions of `UpsertSpec`
//! must be idempotent.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use aws_sdk_dynamodb::{Client, config::Builder as ConfigBuilder, types::AttributeValue};
use serde::de::DeserializeOwned;

use crate::{
    error::{Error, Result},
    load::Load,
    records::{ApiKeyRecord, Organization, Team},
    values::Identifier,
};

mod cache;
pub mod connection;
mod read;
mod retry;
mod tables;
mod write;

use crate::records::Table;
use cache::Cache;
pub use retry::AdditionalRetryClassifier;
pub use tables::TableNames;
pub(crate) use write::UpsertSpec;
pub use write::{FailedCondition, failed_conditions};

/// The maximum time to cache API keys and teams. During this time, the function can still accept a
/// revoked key, a key of a disabled organization, or users for a team that is being removed.
pub const MAX_CACHE_TTL: Duration = Duration::from_secs(60);

/// Formats a time for a record: RFC 3339, in UTC, with milliseconds.
pub fn timestamp(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}

/// A DynamoDB item: the values of its attributes, by name.
pub type Item = HashMap<String, AttributeValue>;

/// Parses an item, if there is one, as a record.
fn parse<R: DeserializeOwned>(item: Option<Item>) -> Result<Option<R>> {
    let record = item.map(serde_dynamo::from_item).transpose();
    record.map_err(Error::internal)
}

/// An API key that was found. Whether the key is accepted is decided for each request.
pub(crate) struct FoundApiKey {
    pub(crate) record: ApiKeyRecord,
    /// The organization in the path or, if the path names none, that of the key. `None` if the
    /// organization is not registered.
    pub(crate) organization: Option<Organization>,
    /// When the request that read them was received.
    received_at: SystemTime,
}

/// The cache key of a team. Each caller has its own entries: if an organization is erased and
/// registered again, its new API keys must not find its earlier teams.
#[derive(PartialEq, Eq, Hash)]
struct CachedTeam {
    caller_id: String,
    partition_key: String,
    team_id: String,
}

/// Reads and writes the tables.
pub struct Store {
    client: Client,
    table_names: TableNames,
    pub(crate) load: Arc<Load>,
    /// Accepted API keys, by id.
    accepted_keys: Cache<String, Arc<FoundApiKey>>,
    /// The teams that exist and are not being removed.
    known_teams: Cache<CachedTeam, ()>,
}

impl Store {
    /// Creates a store. `client_config` must have a region and credentials. The store adds timeouts
    /// and retries. API keys and teams are cached for `cache_ttl`, which is at most
    /// [`MAX_CACHE_TTL`].
    pub fn new(client_config: ConfigBuilder, table_names: TableNames, cache_ttl: Duration) -> Self {
        let load = Arc::new(Load::default());
        let client_config = retry::with_timeouts_and_retries(client_config, load.clone());
        Self {
            client: Client::from_conf(client_config.build()),
            table_names,
            load,
            accepted_keys: Cache::new(cache_ttl),
            known_teams: Cache::new(cache_ttl),
        }
    }

    /// Finds an API key by its id. If the key is not cached, reads the key and its organization.
    /// `None` if the key does not exist.
    pub(crate) async fn find_api_key(
        &self,
        id: &str,
        path_org_id: Option<&Identifier>,
        received_at: SystemTime,
    ) -> Result<Option<Arc<FoundApiKey>>> {
        if let Some(found) = self.accepted_keys.get(id, received_at) {
            return Ok(Some(found));
        }
        let mut lookups = vec![(Table::API_KEYS, vec![id])];
        lookups.extend(path_org_id.map(|id| (Table::ORGANIZATIONS, vec![id.as_str()])));
        let mut items = self.read_items(&lookups).await?;
        let Some(record) = parse::<ApiKeyRecord>(items.remove(&Table::API_KEYS))? else {
            return Ok(None);
        };
        let organization = match path_org_id {
            Some(_) => parse(items.remove(&Table::ORGANIZATIONS))?,
            None => self.find_organization(&record.org_id).await?,
        };
        Ok(Some(Arc::new(FoundApiKey {
            record,
            organization,
            received_at,
        })))
    }

    /// Caches an accepted API key. Caching a cached key again does not extend its life.
    pub(crate) fn cache_api_key(&self, found: &Arc<FoundApiKey>) {
        let id = found.record.key_id.clone();
        self.accepted_keys
            .insert(id, found.clone(), found.received_at);
    }

    /// Reads an organization. `None` if it is not registered.
    pub(crate) async fn find_organization(&self, id: &str) -> Result<Option<Organization>> {
        let mut items = self.read_items(&[(Table::ORGANIZATIONS, vec![id])]).await?;
        parse(items.remove(&Table::ORGANIZATIONS))
    }

    /// Checks that a team exists and is not being removed. Reads the team unless it is cached for
    /// the caller. `partition_key` is what [`Team::partition_key`] returns.
    ///
    /// # Errors
    /// [`Error::NoSuchTeam`]. If the read fails, [`Error::Unavailable`] or [`Error::Internal`].
    pub(crate) async fn require_team(
        &self,
        partition_key: &str,
        team_id: &Identifier,
        caller_id: &str,
        received_at: SystemTime,
    ) -> Result<()> {
        let team = CachedTeam {
            caller_id: caller_id.to_owned(),
            partition_key: partition_key.to_owned(),
            team_id: team_id.as_str().to_owned(),
        };
        if self.known_teams.get(&team, received_at).is_some() {
            return Ok(());
        }
        let lookup = (Table::TEAMS, vec![partition_key, team_id.as_str()]);
        let mut items = self.read_items(&[lookup]).await?;
        match parse::<Team>(items.remove(&Table::TEAMS))? {
            None => Err(Error::NoSuchTeam("not_found")),
            Some(record) if record.removing_id.is_some() => Err(Error::NoSuchTeam("being_removed")),
            Some(_) => {
                self.known_teams.insert(team, (), received_at);
                Ok(())
            }
        }
    }
}
