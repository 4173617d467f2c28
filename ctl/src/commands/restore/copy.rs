//! Copies records, several at a time, and reports what became of each.

use std::{
    collections::BTreeSet,
    time::{Instant, SystemTime},
};

use anyhow::{Context as _, Result, anyhow, bail};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use workspace_management::store::{Table, insert_item, timestamp};
use workspace_records::item::{primary_key, to_json};

use super::parents::{Parents, Verdict};
use crate::{
    deployment::Deployment,
    errors::Response as _,
    output::write_line,
    query::get,
    session::Operator,
    text::{counted, escape, escape_json},
};

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
    /// Whether to print JSON.
    pub(super) json: bool,
}

/// What became of a record.
enum Outcome {
    Copied,
    /// It exists with the same content.
    Exists,
    /// It exists with other values of these attributes, which stay.
    Differs(String),
    /// It was not copied, for this reason.
    Skipped(&'static str),
}

impl Restore<'_> {
    /// Copies records, and prints what became of them.
    ///
    /// # Errors
    /// If DynamoDB cannot be reached, or a record is not stored as it is in the source. In a dry run, if
    /// it would not be.
    pub(super) async fn run(&self, records: Vec<(Table, Value)>) -> Result<()> {
        let mut counts = [0; 4];
        let result = self.copy_all(records, &mut counts).await;
        let [copied, exist, differ, skipped] = counts;
        let mode = if self.is_dry_run {
            "dry run, nothing was written. Without --dry-run: "
        } else {
            ""
        };
        eprintln!("{mode}{copied} copied, {exist} exist, {differ} differ, {skipped} skipped");
        result?;
        if differ + skipped > 0 {
            let records = counted(differ + skipped, "record");
            bail!("{records} not as in the source: standard output says which, and why");
        }
        Ok(())
    }

    /// Copies organizations, then teams, then the rest: a record needs those that it belongs to. Counts
    /// the records that are copied, exist, differ and are skipped.
    async fn copy_all(
        &self,
        mut records: Vec<(Table, Value)>,
        counts: &mut [usize; 4],
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
                let index = match outcome {
                    Outcome::Copied => 0,
                    Outcome::Exists => 1,
                    Outcome::Differs(_) => 2,
                    Outcome::Skipped(_) => 3,
                };
                counts[index] += 1;
                self.print(table, record, outcome)?;
            }
        }
        Ok(())
    }

    async fn copy(&self, table: Table, record: &Value) -> Result<Outcome> {
        let until = match self.parents.judge(table, record).await? {
            Verdict::Until(until) => until,
            Verdict::Skip(reason) => return Ok(Outcome::Skipped(reason)),
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

    /// Prints the line of a record in a dry run, or if the operator must know of the record.
    fn print(&self, table: Table, record: &Value, outcome: Outcome) -> Result<()> {
        let (word, detail) = match outcome {
            Outcome::Copied | Outcome::Exists if !self.is_dry_run => return Ok(()),
            Outcome::Copied => ("copied", None),
            Outcome::Exists => ("exists", None),
            Outcome::Differs(attributes) => ("differs", Some(attributes)),
            Outcome::Skipped(reason) => ("skipped", Some(reason.to_owned())),
        };
        let key = primary_key(table, record);
        let line = if self.json {
            let names = table.primary_key.iter().map(|name| (*name).to_owned());
            let key: Map<_, _> = names.zip(key.into_iter().map(Value::from)).collect();
            let line = json!({ "table": table.noun, "key": key, "result": word, "reason": detail });
            escape_json(&line.to_string())
        } else {
            let detail = detail.map_or_else(String::new, |detail| format!(": {}", escape(&detail)));
            format!("{}\t{}\t{word}{detail}", table.noun, escape(&key.join(" ")))
        };
        let printed = write_line(&line);
        // A restore that stops in the middle is a failure, also if the reader has closed the pipe.
        printed.map_err(|error| anyhow!("cannot write to standard output: {error}"))
    }
}

/// The outcome of a record whose primary key exists.
fn compare(record: &Value, existing: &Value) -> Outcome {
    let records = [record, existing].into_iter();
    let names: BTreeSet<&str> = records
        .filter_map(Value::as_object)
        .flat_map(|record| record.keys().map(String::as_str))
        .filter(|name| !ADDED.contains(name) && record[*name] != existing[*name])
        .collect();
    if names.is_empty() {
        return Outcome::Exists;
    }
    Outcome::Differs(Vec::from_iter(names).join(", "))
}
