//! The parents of a record: the organization and the team to which it belongs.

use std::collections::{HashMap, HashSet};

use anyhow::Result;
use serde_json::Value;
use tokio::sync::Mutex;
use workspace_management::store::Table;
use workspace_records::item::string_attribute;

use crate::{commands::orgs::MAX_CLOCK_DIFFERENCE, deployment::Deployment, query::get};

/// Reads organizations and teams.
pub(super) struct Parents<'a> {
    deployment: &'a Deployment,
    /// The `request_id`s of the organizations and teams in the source, by their primary key.
    request_ids: HashMap<Vec<String>, String>,
    /// The primary keys of the organizations and teams that a dry run would copy.
    assumed: Mutex<HashSet<Vec<String>>>,
}

impl<'a> Parents<'a> {
    pub(super) fn new(
        deployment: &'a Deployment,
        request_ids: HashMap<Vec<String>, String>,
    ) -> Self {
        Self {
            deployment,
            request_ids,
            assumed: Mutex::default(),
        }
    }

    /// Why a record must not be stored. `None` if it may be stored: its organization and its team
    /// exist and are not marked. They are also the ones to which the record belonged, not later ones
    /// with the same id: if the source has them, their `request_id` is the same. Otherwise, the
    /// record is not older than they are.
    pub(super) async fn objection(
        &self,
        table: Table,
        record: &Value,
    ) -> Result<Option<&'static str>> {
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
        for (parent_table, key) in parents {
            if self.assumed.lock().await.contains(&key) {
                continue;
            }
            let Some(existing) = get(self.deployment, parent_table, &key).await? else {
                return Ok(Some(if parent_table == Table::TEAMS {
                    "its team does not exist"
                } else {
                    "its organization is not registered"
                }));
            };
            if existing.get("removing_id").is_some() {
                return Ok(Some("its team is being removed"));
            }
            if existing.get("erasing_id").is_some() {
                return Ok(Some("its organization is being erased"));
            }
            let belongs = match self.request_ids.get(&key) {
                Some(request_id) => string_attribute(&existing, "request_id") == request_id,
                None => !is_older(record, &existing),
            };
            if !belongs {
                return Ok(Some(
                    "it belongs to an earlier organization or team with this id",
                ));
            }
        }
        Ok(None)
    }

    /// Assumes that an organization or a team exists, because a restore would copy it.
    pub(super) async fn assume(&self, key: Vec<String>) {
        self.assumed.lock().await.insert(key);
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
