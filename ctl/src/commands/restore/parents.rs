//! The organization and the team that a record belongs to.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use anyhow::Result;
use serde_json::Value;
use tokio::sync::Mutex;
use workspace_management::store::Table;
use workspace_records::item::text;

use crate::{commands::orgs::MAX_CLOCK_DIFFERENCE, deployment::Deployment, query::get};

/// How long a read of an organization or a team counts, until the records that belong to it are stored.
/// It must be shorter than the wait of a removal, which then finds these records.
const MAX_AGE: Duration = Duration::from_secs(30);

const OTHER_REGISTRATION: &str = "it belongs to an earlier organization or team with this id";

/// Reads organizations and teams, and remembers them for a while.
pub(super) struct Parents<'a> {
    deployment: &'a Deployment,
    /// The `request_id`s of the organizations and teams in the source, by their primary key.
    registrations: HashMap<Vec<String>, String>,
    reads: Mutex<HashMap<Vec<String>, Parent>>,
}

/// An organization or a team, if it exists.
#[derive(Clone)]
struct Parent {
    record: Option<Value>,
    read_at: Instant,
}

/// Whether a record may be stored.
pub(super) enum Verdict {
    /// Until then.
    Until(Instant),
    /// Not, for this reason.
    Skip(&'static str),
}

impl<'a> Parents<'a> {
    pub(super) fn new(
        deployment: &'a Deployment,
        registrations: HashMap<Vec<String>, String>,
    ) -> Self {
        Self {
            deployment,
            registrations,
            reads: Mutex::default(),
        }
    }

    /// Whether a record may be stored: its organization and its team must exist, must not be marked, and
    /// must be those to which the record belonged.
    pub(super) async fn judge(&self, table: Table, record: &Value) -> Result<Verdict> {
        let org = || text(record, "org_id").to_owned();
        let mut parents = Vec::new();
        if table != Table::ORGANIZATIONS {
            parents.push((Table::ORGANIZATIONS, vec![org()]));
        }
        if table == Table::TEAM_MEMBERS {
            let project = format!("{}#{}", org(), text(record, "project_id"));
            parents.push((
                Table::TEAMS,
                vec![project, text(record, "team_id").to_owned()],
            ));
        }
        let mut until = Instant::now() + MAX_AGE;
        for (parent_table, key) in parents {
            let parent = self.read(parent_table, &key).await?;
            until = until.min(parent.read_at + MAX_AGE);
            let (mark, missing, marked) = if parent_table == Table::TEAMS {
                let marked = "its team is being removed";
                ("removing_id", "its team does not exist", marked)
            } else {
                let marked = "its organization is being erased";
                ("erasing_id", "its organization is not registered", marked)
            };
            let Some(existing) = parent.record else {
                return Ok(Verdict::Skip(missing));
            };
            if existing.get(mark).is_some() {
                return Ok(Verdict::Skip(marked));
            }
            let belongs = match self.registrations.get(&key) {
                Some(request_id) => text(&existing, "request_id") == request_id,
                None => !is_older(record, &existing),
            };
            if !belongs {
                return Ok(Verdict::Skip(OTHER_REGISTRATION));
            }
        }
        Ok(Verdict::Until(until))
    }

    async fn read(&self, table: Table, key: &[String]) -> Result<Parent> {
        // Held during the read, so that each parent is read once.
        let mut reads = self.reads.lock().await;
        if let Some(parent) = reads.get(key)
            // The rest of the time is for the attempts to store the record.
            && parent.read_at.elapsed() < MAX_AGE / 2
        {
            return Ok(parent.clone());
        }
        let read_at = Instant::now();
        let record = get(self.deployment, table, key).await?;
        let parent = Parent { record, read_at };
        reads.insert(key.to_vec(), parent.clone());
        Ok(parent)
    }

    /// Remembers an organization or a team that a dry run would have stored.
    pub(super) async fn plan(&self, key: Vec<String>, record: &Value) {
        let parent = Parent {
            record: Some(record.clone()),
            // A dry run does not take a day.
            read_at: Instant::now() + Duration::from_secs(86_400),
        };
        self.reads.lock().await.insert(key, parent);
    }
}

/// Whether a record is older than the organization or team that exists, so that it belonged to an earlier
/// one with the same id.
fn is_older(record: &Value, existing: &Value) -> bool {
    let times = [record, existing].map(|record| text(record, "created_at"));
    match times.map(humantime::parse_rfc3339) {
        [Ok(own), Ok(existing)] => own + MAX_CLOCK_DIFFERENCE < existing,
        _ => false,
    }
}
