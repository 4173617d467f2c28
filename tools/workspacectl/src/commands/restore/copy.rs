//! Copies records, several at a time, and reports the outcome of each copy.

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, Result, anyhow, bail};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use workspace_management::store::{Table, timestamp};
use workspace_records::{
    item::{primary_key_values, string_attribute},
    kinds::Kind,
};

use super::{MAX_CLOCK_DIFFERENCE, source::Source};
use crate::{
    deployment::Deployment,
    output::{JsonArray, print},
    read,
    session::{Run, Session},
    text::{escape, pluralize},
    write::insert_if_absent,
};

/// The maximum number of records that are copied at the same time.
const CONCURRENCY: usize = 16;

/// The maximum time to check and copy a record. It is less than [`crate::wait::SAFE_WAIT`]: if a
/// record was checked before a mark was set, its copy ends before the deletion begins.
const COPY_TIMEOUT: Duration = Duration::from_secs(15);

/// A restore from a source that has been validated.
pub(super) struct Restore<'a> {
    pub(super) deployment: &'a Deployment,
    pub(super) run: Run,
    pub(super) source: Source,
    pub(super) is_dry_run: bool,
    pub(super) session: &'a Session,
}

/// The outcome of copying a record.
enum Outcome {
    Copied,
    /// The record exists with the same content.
    Exists,
    /// The existing record has different values of these attributes and is kept.
    Differs(String),
    /// The record was not copied, for this reason.
    Skipped(&'static str),
}

/// The number of records by outcome.
#[derive(Default)]
struct Counts {
    copied: usize,
    existing: usize,
    different: usize,
    skipped: usize,
}

impl Restore<'_> {
    /// Copies all records and prints the outcomes.
    /// Fails if a record differs or was skipped.
    pub(super) async fn execute(&self) -> Result<()> {
        let mut counts = Counts::default();
        let mut array = JsonArray::default();
        // The counts are printed even if this fails.
        let result = self.copy_all(&mut counts, &mut array).await;
        let introduction = if self.is_dry_run {
            "dry run, nothing was written. The result would be: "
        } else {
            ""
        };
        self.session.report(&format!(
            "{introduction}{} copied, {} exist, {} differ, {} skipped",
            counts.copied, counts.existing, counts.different, counts.skipped
        ));
        let closed = array.close(self.session);
        result?;
        closed?;
        let not_restored = counts.different + counts.skipped;
        if not_restored > 0 {
            let records_text = pluralize(not_restored, "record");
            bail!(
                "the restore is not complete: {records_text} skipped or different (see standard output)"
            );
        }
        Ok(())
    }

    /// Copies organizations and teams before the records that need them, and counts the outcomes.
    async fn copy_all(&self, counts: &mut Counts, array: &mut JsonArray) -> Result<()> {
        // The organizations are first in this list, and the teams are before their members.
        for table in Table::ALL {
            let all_records = self.source.records.iter();
            let records = all_records.filter(|((record_table, _), _)| record_table == table);
            let copies = stream::iter(records).map(async |((_, primary_key), record)| {
                let outcome = self.copy_in_time(*table, primary_key, record).await?;
                anyhow::Ok((record, outcome))
            });
            let mut copies = copies.buffered(CONCURRENCY);
            while let Some((record, outcome)) = copies.try_next().await? {
                match outcome {
                    Outcome::Copied => counts.copied += 1,
                    Outcome::Exists => counts.existing += 1,
                    Outcome::Differs(_) => counts.different += 1,
                    Outcome::Skipped(_) => counts.skipped += 1,
                }
                self.print_outcome(*table, record, outcome, array)?;
            }
        }
        Ok(())
    }

    /// Copies a record like [`Restore::copy`]. Fails if that takes longer than [`COPY_TIMEOUT`].
    async fn copy_in_time(
        &self,
        table: Table,
        primary_key: &[String],
        record: &Value,
    ) -> Result<Outcome> {
        timeout(COPY_TIMEOUT, self.copy(table, primary_key, record))
            .await
            .unwrap_or_else(|_| Err(anyhow!("DynamoDB did not respond in time")))
            .with_context(|| format!("{} {}", Kind::of(table).plural, primary_key.join(" ")))
    }

    /// Copies a record unless it exists, or must be skipped. A dry run only reads.
    async fn copy(&self, table: Table, primary_key: &[String], record: &Value) -> Result<Outcome> {
        if let Some(reason) = self.skip_reason(table, record).await? {
            return Ok(Outcome::Skipped(reason));
        }
        let existing = if self.is_dry_run {
            read::find(self.deployment, table, primary_key).await?
        } else {
            self.insert(table, record.clone()).await?
        };
        Ok(match existing {
            Some(existing) => compare(record, &existing),
            None => Outcome::Copied,
        })
    }

    /// Inserts a record and its `restored_*` attributes, unless its primary key exists. Returns the
    /// existing record, if there is one.
    async fn insert(&self, table: Table, mut record: Value) -> Result<Option<Value>> {
        record["restored_at"] = json!(timestamp(SystemTime::now()));
        record["restored_by"] = json!(self.run.operator);
        record["restored_request_id"] = json!(self.run.id);
        let message = "cannot copy the record".to_owned();
        match insert_if_absent(self.deployment, table, &record, message).await? {
            // A retry finds the record that was stored by an earlier attempt.
            Some(existing) if existing["restored_request_id"] == self.run.id => Ok(None),
            existing => Ok(existing),
        }
    }

    /// Why a record must not be stored, or `None`. Its organization and team must exist, must not
    /// be marked, and must be the original ones, not later ones with the same ids:
    ///
    /// - A parent that is in the source must have the same `request_id` in the table.
    /// - A parent that is not in the source must not be newer than the record.
    async fn skip_reason(&self, table: Table, record: &Value) -> Result<Option<&'static str>> {
        let [org, project, team] =
            ["org_id", "project_id", "team_id"].map(|name| string_attribute(record, name));
        let mut parents = Vec::new();
        if table != Table::ORGANIZATIONS {
            parents.push((Table::ORGANIZATIONS, vec![org.to_owned()]));
        }
        if table == Table::TEAM_MEMBERS {
            let primary_key = vec![format!("{org}#{project}"), team.to_owned()];
            parents.push((Table::TEAMS, primary_key));
        }
        for (parent_table, primary_key) in parents {
            let Some(parent) = self.find_parent(parent_table, &primary_key).await? else {
                return Ok(Some(match parent_table {
                    Table::TEAMS => "its team does not exist",
                    _ => "its organization is not registered",
                }));
            };
            if parent.get("removing_id").is_some() {
                return Ok(Some("its team is being removed"));
            }
            if parent.get("erasing_id").is_some() {
                return Ok(Some("its organization is being erased"));
            }
            let is_same_parent = match self.source.parent_creation_ids.get(&primary_key) {
                Some(request_id) => string_attribute(&parent, "request_id") == request_id,
                None => !predates(record, &parent),
            };
            if !is_same_parent {
                return Ok(Some(
                    "it belongs to an earlier organization or team with this id",
                ));
            }
        }
        Ok(None)
    }

    /// Reads an organization or a team. A dry run also finds those that it would copy.
    async fn find_parent(&self, table: Table, primary_key: &[String]) -> Result<Option<Value>> {
        let existing = read::find(self.deployment, table, primary_key).await?;
        if existing.is_some() || !self.is_dry_run {
            return Ok(existing);
        }
        let in_source = self.source.records.get(&(table, primary_key.to_vec()));
        Ok(in_source.cloned())
    }

    /// Prints a line about a record. Without `--dry-run`, only if it differs or was skipped.
    fn print_outcome(
        &self,
        table: Table,
        record: &Value,
        outcome: Outcome,
        array: &mut JsonArray,
    ) -> Result<()> {
        let (outcome_name, detail) = match outcome {
            Outcome::Copied => ("copied", None),
            Outcome::Exists => ("exists", None),
            Outcome::Differs(attributes) => ("differs", Some(attributes)),
            Outcome::Skipped(reason) => ("skipped", Some(reason.to_owned())),
        };
        if detail.is_none() && !self.is_dry_run {
            return Ok(());
        }
        let kind = Kind::of(table).plural;
        let line = if self.session.global_args.json {
            let mut entry = json!({ "table": kind, "result": outcome_name, "reason": detail });
            for name in table.primary_key_attributes {
                entry["key"][*name] = json!(string_attribute(record, name));
            }
            array.next_line(&entry)
        } else {
            let primary_key = primary_key_values(table, record).join(" ");
            let line = format!("{kind}\t{}\t{outcome_name}", escape(&primary_key));
            match detail {
                Some(detail) => format!("{line}: {}", escape(&detail)),
                None => line,
            }
        };
        print(&line)
    }
}

/// The outcome for a record whose primary key exists.
fn compare(record: &Value, existing: &Value) -> Outcome {
    let objects = [record, existing].into_iter().filter_map(Value::as_object);
    let mut names: BTreeSet<&str> = objects.flat_map(Map::keys).map(String::as_str).collect();
    // Ignores the attributes that a restore adds.
    names.retain(|name| !name.starts_with("restored_") && record[*name] != existing[*name]);
    if names.is_empty() {
        return Outcome::Exists;
    }
    Outcome::Differs(Vec::from_iter(names).join(", "))
}

/// Whether a record is older than its parent by more than [`MAX_CLOCK_DIFFERENCE`].
fn predates(record: &Value, parent: &Value) -> bool {
    let times = [record, parent].map(|record| string_attribute(record, "created_at"));
    match times.map(humantime::parse_rfc3339) {
        [Ok(record_time), Ok(parent_time)] => record_time + MAX_CLOCK_DIFFERENCE < parent_time,
        _ => false,
    }
}
