//! Copies records, several at a time.

use std::time::{Instant, SystemTime};

use anyhow::{Context as _, Result, anyhow};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};
use tokio::time::timeout;
use workspace_management::store::{Table, insert_item, timestamp};
use workspace_records::item::{primary_key, to_json};

use super::{
    parents::{Parents, Verdict},
    report::{Outcome, Report},
};
use crate::{deployment::Deployment, errors::Response as _, query::get, session::Operator};

/// How many records are copied at a time.
const CONCURRENCY: usize = 16;

/// The attributes that a restore adds, which do not count as a difference.
const ADDED: [&str; 3] = ["restored_at", "restored_by", "restored_request_id"];

/// A restore of records that were checked.
pub(super) struct Restore<'a> {
    pub(super) deployment: &'a Deployment,
    pub(super) operator: Operator,
    pub(super) parents: Parents<'a>,
    pub(super) is_dry_run: bool,
}

impl Restore<'_> {
    /// Copies organizations, then teams, then the rest: a record needs those that it belongs to.
    pub(super) async fn run(
        &self,
        mut records: Vec<(Table, Value)>,
        report: &mut Report,
    ) -> Result<()> {
        let stage = |table| match table {
            Table::ORGANIZATIONS => 0,
            Table::TEAMS => 1,
            _ => 2,
        };
        records.sort_by_key(|(table, _)| stage(*table));
        for records in records.chunk_by(|one, other| stage(one.0) == stage(other.0)) {
            let copies = stream::iter(records).map(async |(table, record)| {
                let outcome = self.copy(*table, record).await;
                let name = || format!("{} {}", table.noun, primary_key(*table, record).join(" "));
                anyhow::Ok((*table, record, outcome.with_context(name)?))
            });
            let mut copies = copies.buffered(CONCURRENCY);
            while let Some((table, record, outcome)) = copies.try_next().await? {
                report.add(table, record, outcome)?;
            }
        }
        Ok(())
    }

    async fn copy(&self, table: Table, record: &Value) -> Result<Outcome> {
        let until = match self.parents.judge(table, record).await? {
            Verdict::Until(until) => until,
            Verdict::Skip(reason) => return Ok(Outcome::Skipped(reason.to_owned())),
        };
        if self.is_dry_run {
            return self.plan(table, record).await;
        }
        let mut restored = record.clone();
        restored[ADDED[0]] = json!(timestamp(SystemTime::now()));
        restored[ADDED[1]] = json!(self.operator.name);
        restored[ADDED[2]] = json!(self.operator.run_id);
        let item = serde_dynamo::to_item(restored)?;
        let (client, tables) = (&self.deployment.client, &self.deployment.tables);
        let insert = insert_item(client, tables, table, item);
        let time_left = until.saturating_duration_since(Instant::now());
        let inserted = timeout(time_left, insert).await;
        let inserted = inserted.map_err(|_| anyhow!("DynamoDB does not respond in time"))?;
        match inserted.or_fail(|| "cannot copy the record".to_owned())? {
            None => Ok(Outcome::Copied),
            Some(existing) => {
                let existing = to_json(existing);
                // A repeated attempt finds the record that an earlier one has stored.
                let is_own = existing[ADDED[2]] == self.operator.run_id;
                Ok(if is_own {
                    Outcome::Copied
                } else {
                    compare(record, &existing)
                })
            }
        }
    }

    /// What a copy would do.
    async fn plan(&self, table: Table, record: &Value) -> Result<Outcome> {
        let key = primary_key(table, record);
        if let Some(existing) = get(self.deployment, table, &key).await? {
            return Ok(compare(record, &existing));
        }
        if [Table::ORGANIZATIONS, Table::TEAMS].contains(&table) {
            self.parents.plan(key, record).await;
        }
        Ok(Outcome::Copied)
    }
}

/// The outcome of a record whose primary key exists.
fn compare(record: &Value, existing: &Value) -> Outcome {
    let names = [record, existing].map(|record| record.as_object().into_iter().flatten());
    let mut names: Vec<&str> = names
        .into_iter()
        .flatten()
        .map(|(name, _)| &**name)
        .collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| !ADDED.contains(name) && record[*name] != existing[*name]);
    if names.is_empty() {
        Outcome::Exists
    } else {
        Outcome::Differs(names.join(", "))
    }
}
