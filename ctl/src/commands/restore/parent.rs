//! The organization and the team that a record belongs to.

use std::{collections::HashMap, time::Duration};

use anyhow::Result;
use aws_sdk_dynamodb::types::TransactWriteItem;
use serde_json::Value;
use workspace_management::store::Table;

use super::record::organization;
use crate::{
    deployment::Deployment,
    records::{get, has, text_of},
    write::Condition,
};

/// How much the clocks of operators and functions can differ.
const MAX_CLOCK_DIFFERENCE: Duration = Duration::from_secs(5 * 60);

const OTHER_REGISTRATION: &str = "it belongs to another registration of its organization";
const OLDER: &str = "it is older than its organization or team, so it belonged to an earlier one: \
    to copy it, use --force-older";

/// A record that others belong to: an organization or a team.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Parent {
    table: Table,
    /// The attribute that it has while it is being deleted.
    mark: &'static str,
    record: Value,
}

impl Parent {
    /// Checks that the record is still the one that was read, and is not being deleted.
    pub(super) fn check(&self, deployment: &Deployment) -> Result<TransactWriteItem> {
        let is_unmarked = format!("attribute_not_exists({})", self.mark);
        Condition::unchanged(self.table, &self.record, &["created_at", "request_id"])
            .and(&is_unmarked, &[])
            .check(deployment)
    }
}

/// The noun of a table, and the key of a record.
type Id = (&'static str, Vec<String>);

/// Reads organizations and teams, each once.
pub(super) struct Parents<'a> {
    pub(super) deployment: &'a Deployment,
    /// The records of organizations in the source, by their id.
    pub(super) organizations: HashMap<String, Value>,
    pub(super) force_older: bool,
    /// What was read, or why records that belong to it are skipped.
    pub(super) cache: HashMap<Id, Result<Parent, &'static str>>,
    /// The records that a dry run would have copied.
    pub(super) planned: HashMap<Id, Value>,
}

impl Parents<'_> {
    /// What a record belongs to, or why the record must be skipped.
    pub(super) async fn of(
        &mut self,
        table: Table,
        record: &Value,
    ) -> Result<Result<Vec<Parent>, &'static str>> {
        let mut ids = Vec::new();
        if table != Table::ORGANIZATIONS {
            let org = organization(table, record).to_owned();
            ids.push((Table::ORGANIZATIONS, vec![org]));
        }
        if table == Table::TEAM_MEMBERS {
            let names = ["org_id", "project_id", "team_id"];
            let [org, project, team] = names.map(|name| text_of(record, name));
            let key = vec![format!("{org}#{project}"), team.to_owned()];
            ids.push((Table::TEAMS, key));
        }
        let mut parents = Vec::new();
        for (of, key) in ids {
            let parent = match self.parent(of, key).await? {
                Ok(parent) => parent,
                Err(reason) => return Ok(Err(reason)),
            };
            let registration = &record["org_request_id"];
            if table != Table::KEYS {
                if !self.force_older && self.is_older(record, &parent) {
                    return Ok(Err(OLDER));
                }
            } else if !registration.is_string() || *registration != parent.record["request_id"] {
                return Ok(Err(OTHER_REGISTRATION));
            }
            parents.push(parent);
        }
        Ok(Ok(parents))
    }

    /// Whether a record belonged to an earlier organization or team with the same id: it is older,
    /// and the source does not contain it together with this registration of the organization.
    fn is_older(&self, record: &Value, parent: &Parent) -> bool {
        let org = text_of(&parent.record, "org_id");
        let is_same = |org: &Value| {
            let mut audit = ["created_at", "request_id"].into_iter();
            audit.all(|name| org[name] == parent.record[name])
        };
        if parent.table == Table::ORGANIZATIONS && self.organizations.get(org).is_some_and(is_same)
        {
            return false;
        }
        let times = [record, &parent.record].map(|record| text_of(record, "created_at"));
        match times.map(humantime::parse_rfc3339) {
            [Ok(own), Ok(created)] => own + MAX_CLOCK_DIFFERENCE < created,
            _ => false,
        }
    }

    async fn parent(
        &mut self,
        table: Table,
        key: Vec<String>,
    ) -> Result<Result<Parent, &'static str>> {
        let id = (table.noun, key);
        if let Some(parent) = self.cache.get(&id) {
            return Ok(parent.clone());
        }
        let [mark, missing, marked] = match table {
            Table::TEAMS => [
                "removing_id",
                "its team does not exist",
                "its team is being removed",
            ],
            _ => [
                "erasing_id",
                "its organization is not registered",
                "its organization is being erased",
            ],
        };
        let parent = match self.read(table, &id.1).await? {
            None => Err(missing),
            Some(record) if has(&record, mark) => Err(marked),
            Some(record) => Ok(Parent {
                table,
                mark,
                record,
            }),
        };
        self.cache.insert(id, parent.clone());
        Ok(parent)
    }

    /// The record that is stored, or that a dry run would have stored.
    pub(super) async fn read(&self, table: Table, key: &[String]) -> Result<Option<Value>> {
        let planned = self.planned.get(&(table.noun, key.to_vec()));
        if planned.is_some() {
            return Ok(planned.cloned());
        }
        let key: Vec<_> = key.iter().map(String::as_str).collect();
        get(self.deployment, table, &key).await
    }
}
