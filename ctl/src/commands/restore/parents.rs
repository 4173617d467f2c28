//! The parents of a record: the organization and the team to which it belongs.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use anyhow::Result;
use serde_json::Value;
use tokio::sync::Mutex;
use workspace_management::store::Table;
use workspace_records::item::string_attribute;

use crate::{commands::orgs::MAX_CLOCK_DIFFERENCE, deployment::Deployment, query::get};

/// The maximum time from the read of an organization or a team until its records are stored. Must
/// be less than the wait of a removal, so that the removal finds these records.
const MAX_AGE: Duration = Duration::from_secs(30);

/// Why a record is skipped that does not belong to the existing organization or team.
const OTHER_REGISTRATION: &str = "it belongs to an earlier organization or team with this id";

/// Reads organizations and teams, and caches them.
pub(super) struct Parents<'a> {
    deployment: &'a Deployment,
    /// The `request_id`s of the organizations and teams in the source, by their primary key.
    request_ids: HashMap<Vec<String>, String>,
    /// The organizations and teams that were read, by their primary key.
    cache: Mutex<HashMap<Vec<String>, Parent>>,
}

/// An organization or a team.
#[derive(Clone)]
struct Parent {
    /// `None` if there is none.
    record: Option<Value>,
    read_at: Instant,
}

/// Whether a record may be stored.
pub(super) enum Verdict {
    /// It may be stored until then.
    Until(Instant),
    /// It must be skipped, for this reason.
    Skip(&'static str),
}

impl<'a> Parents<'a> {
    pub(super) fn new(
        deployment: &'a Deployment,
        request_ids: HashMap<Vec<String>, String>,
    ) -> Self {
        Self {
            deployment,
            request_ids,
            cache: Mutex::default(),
        }
    }

    /// Whether a record may be stored. Its organization and its team must exist and must not be
    /// marked. They must also be the ones to which the record belonged, not later ones with the
    /// same id: if the source has them, their `request_id` must be the same. Otherwise, the record
    /// must not be older than they are.
    pub(super) async fn judge(&self, table: Table, record: &Value) -> Result<Verdict> {
        let [org, project, team] =
            ["org_id", "project_id", "team_id"].map(|name| string_attribute(record, name));
        let mut parents = Vec::new();
        if table != Table::ORGANIZATIONS {
            parents.push((Table::ORGANIZATIONS, vec![org.to_owned()]));
        }
        if table == Table::TEAM_MEMBERS {
            let key = vec![format!("{org}#{project}"), team.to_owned()];
            parents.push((Table::TEAMS, key));
        }
        let mut until = Instant::now() + MAX_AGE;
        for (parent_table, key) in parents {
            let parent = self.read(parent_table, &key).await?;
            until = until.min(parent.read_at + MAX_AGE);
            let Some(existing) = parent.record else {
                return Ok(Verdict::Skip(if parent_table == Table::TEAMS {
                    "its team does not exist"
                } else {
                    "its organization is not registered"
                }));
            };
            if existing.get("removing_id").is_some() {
                return Ok(Verdict::Skip("its team is being removed"));
            }
            if existing.get("erasing_id").is_some() {
                return Ok(Verdict::Skip("its organization is being erased"));
            }
            let belongs = match self.request_ids.get(&key) {
                Some(request_id) => string_attribute(&existing, "request_id") == request_id,
                None => !is_older(record, &existing),
            };
            if !belongs {
                return Ok(Verdict::Skip(OTHER_REGISTRATION));
            }
        }
        Ok(Verdict::Until(until))
    }

    /// Reads an organization or a team, unless the cache has it.
    async fn read(&self, table: Table, key: &[String]) -> Result<Parent> {
        // Locked during the read, so that each parent is read only once.
        let mut cache = self.cache.lock().await;
        if let Some(parent) = cache.get(key)
            // The other half of the time is for the attempts to store the record.
            && parent.read_at.elapsed() < MAX_AGE / 2
        {
            return Ok(parent.clone());
        }
        let read_at = Instant::now();
        let record = get(self.deployment, table, key).await?;
        let parent = Parent { record, read_at };
        cache.insert(key.to_vec(), parent.clone());
        Ok(parent)
    }

    /// Caches an organization or a team that a restore would store, for a dry run.
    pub(super) async fn assume_restored(&self, key: Vec<String>, record: &Value) {
        let parent = Parent {
            record: Some(record.clone()),
            // For the rest of the dry run, which takes less than a day.
            read_at: Instant::now() + Duration::from_secs(86_400),
        };
        self.cache.lock().await.insert(key, parent);
    }
}

/// Whether a record is older than the existing organization or team: it belonged to an earlier one.
fn is_older(record: &Value, existing: &Value) -> bool {
    let times = [record, existing].map(|record| string_attribute(record, "created_at"));
    match times.map(humantime::parse_rfc3339) {
        [Ok(record), Ok(existing)] => record + MAX_CLOCK_DIFFERENCE < existing,
        _ => false,
    }
}
