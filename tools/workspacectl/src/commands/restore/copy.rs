//! Copies records, several at a time, and reports the outcome of each copy.

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::pin,
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, Result, anyhow, bail};
use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::TryStreamExt as _;
use serde_json::json;
use tokio::time::timeout;
use workspace_management::{records::Table, store::timestamp};
use workspace_records::{
    item::to_json,
    kinds::{Kind, PrimaryKey},
};

use super::{
    MAX_CLOCK_DIFFERENCE,
    outcome::{CopyOutcome, Counts},
    pace::Pace,
    source::Source,
};
use crate::{
    context::Context,
    organization,
    output::{JsonArray, allow_closed_pipe, print},
    read,
    record::Record,
    text::{escape, pluralize},
    write::{Ending, LongChange, Outcome},
};

/// The maximum number of records that are copied at the same time.
const CONCURRENCY: usize = 16;

/// The maximum time to check and copy a record. It is less than [`crate::wait::SAFE_WAIT`]: if a
/// record was checked before a mark was set, its copy ends before the deletion begins.
const COPY_TIMEOUT: Duration = Duration::from_secs(15);

/// A restore from a source that has been validated.
pub(super) struct Restore<'a> {
    pub(super) context: &'a Context,
    /// `None` for a dry run.
    pub(super) change: Option<LongChange<'a>>,
    pub(super) source: Source<'a>,
    pub(super) pace: Pace,
}

impl Restore<'_> {
    /// Copies all records and prints the outcomes.
    /// Fails if a record differs or was skipped.
    pub(super) async fn execute(&self) -> Result<()> {
        let mut counts = BTreeMap::new();
        let mut array = JsonArray::default();
        // The counts are printed even if this fails.
        let result = self.copy_all(&mut counts, &mut array).await;
        let total = Counts::total(counts.values());
        let introduction = if self.change.is_none() {
            "dry run, nothing was written. The result would be: "
        } else {
            ""
        };
        self.context.report(&format!(
            "{introduction}{} copied, {} exist, {} differ, {} skipped",
            total.copied, total.existing, total.different, total.skipped
        ));
        array.close(result, &self.context.options)?;
        self.end(&counts).await?;
        let not_restored = total.different + total.skipped;
        if not_restored > 0 {
            let records_text = pluralize(not_restored, "record");
            bail!(
                "the restore is not complete: {records_text} skipped or different (see standard output)"
            );
        }
        Ok(())
    }

    /// Stores the entries of the end.
    async fn end(&self, counts: &BTreeMap<String, Counts>) -> Result<()> {
        let Some(change) = &self.change else {
            return Ok(());
        };
        for (org, counts) in counts {
            let ending = Ending {
                record: &Record::empty(&organization::key(org)),
                result: "done",
                counts: counts.to_map(),
                key_ids: &BTreeSet::new(),
            };
            change.end(None, ending).await?.done()?;
        }
        Ok(())
    }

    /// Copies organizations and teams before the records that need them, and counts the outcomes by
    /// organization.
    async fn copy_all(
        &self,
        counts: &mut BTreeMap<String, Counts>,
        array: &mut JsonArray,
    ) -> Result<()> {
        // The organizations are first in this list, and the teams are before their members.
        for table in Table::ALL {
            let records = self.source.records(*table, &self.context.deployment);
            // Before the copy, because it must end within COPY_TIMEOUT.
            let records = records.and_then(async |record| {
                if self.change.is_some() {
                    self.pace.wait(&record).await;
                }
                Ok(record)
            });
            let copies = records.map_ok(async |record| {
                let outcome = self.copy_in_time(&record).await?;
                anyhow::Ok((record, outcome))
            });
            let mut copies = pin!(copies.try_buffered(CONCURRENCY));
            while let Some((record, outcome)) = copies.try_next().await? {
                let org = record.text("org_id").unwrap_or_default();
                let counts = counts.entry(org.to_owned()).or_default();
                counts.add(&outcome);
                self.print_outcome(&record.key, outcome, array)?;
            }
        }
        Ok(())
    }

    /// Copies a record like [`Restore::copy`]. Fails if that takes longer than [`COPY_TIMEOUT`].
    async fn copy_in_time(&self, record: &Record) -> Result<CopyOutcome> {
        timeout(COPY_TIMEOUT, self.copy(record))
            .await
            .unwrap_or_else(|_| Err(anyhow!("DynamoDB did not respond in time")))
            .with_context(|| {
                let kind = Kind::of(record.key.table()).plural;
                format!("{kind} {}", record.key.values().join(" "))
            })
    }

    /// Copies a record unless it exists, or must be skipped. A dry run only reads.
    async fn copy(&self, record: &Record) -> Result<CopyOutcome> {
        if let Some(reason) = self.skip_reason(record).await? {
            return Ok(CopyOutcome::Skipped(reason));
        }
        let existing = match &self.change {
            Some(change) => insert(record.clone(), change).await?,
            None => read::find(&self.context.deployment, &record.key).await?,
        };
        Ok(match existing {
            Some(existing) => compare(record, &existing),
            None => CopyOutcome::Copied,
        })
    }

    /// Why a record must not be stored, or `None`. Its organization and team must exist, must not
    /// be marked, and must be the original ones, not later ones with the same ids:
    ///
    /// - A parent that is in the source must have the same `request_id` in the table.
    /// - A parent that is not in the source must not be newer than the record.
    async fn skip_reason(&self, record: &Record) -> Result<Option<&'static str>> {
        let mut parents = record.key.parents();
        if let (PrimaryKey::ApiKey { .. }, Some(org)) = (&record.key, record.text("org_id")) {
            parents.push(organization::key(org));
        }
        for key in parents {
            let Some(parent) = self.find_parent(&key).await? else {
                return Ok(Some(match key {
                    PrimaryKey::Team { .. } => "its team does not exist",
                    _ => "its organization is not registered",
                }));
            };
            if parent.has("removing_id") {
                return Ok(Some("its team is being removed"));
            }
            if parent.has("erasing_id") {
                return Ok(Some("its organization is being erased"));
            }
            let is_same_parent = match self.source.parent_creation_ids.get(&key) {
                Some(request_id) => parent.text("request_id") == Some(request_id),
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
    async fn find_parent(&self, key: &PrimaryKey) -> Result<Option<Record>> {
        let existing = read::find(&self.context.deployment, key).await?;
        if existing.is_some() || self.change.is_some() {
            return Ok(existing);
        }
        Ok(self.source.find(key).cloned())
    }

    /// Prints a line about a record. Without `--dry-run`, only if it differs or was skipped.
    fn print_outcome(
        &self,
        key: &PrimaryKey,
        outcome: CopyOutcome,
        array: &mut JsonArray,
    ) -> Result<()> {
        let (outcome_name, detail) = match outcome {
            CopyOutcome::Copied => ("copied", None),
            CopyOutcome::Exists => ("exists", None),
            CopyOutcome::Differs(attributes) => ("differs", Some(attributes)),
            CopyOutcome::Skipped(reason) => ("skipped", Some(reason.to_owned())),
        };
        if detail.is_none() && self.change.is_some() {
            return Ok(());
        }
        let kind = Kind::of(key.table()).plural;
        if self.context.options.json {
            return allow_closed_pipe(array.print_next(&json!({
                "table": kind, "result": outcome_name, "reason": detail,
                "key": to_json(key.to_item()),
            })));
        }
        let primary_key = key.values().join(" ");
        let mut line = format!("{kind}\t{}\t{outcome_name}", escape(&primary_key));
        if let Some(detail) = detail {
            line += &format!(": {}", escape(&detail));
        }
        print(&line)
    }
}

/// Inserts a record and its `restored_*` attributes, unless its primary key exists. Returns the
/// existing record, if there is one.
async fn insert(mut record: Record, change: &LongChange<'_>) -> Result<Option<Record>> {
    let run = change.run();
    let restored_at = timestamp(SystemTime::now());
    for (name, text) in [
        ("restored_at", &restored_at),
        ("restored_by", &run.operator),
        ("restored_request_id", &run.id),
    ] {
        let value = AttributeValue::S(text.clone());
        record.item.insert(name.to_owned(), value);
    }
    match change.put(record).await? {
        Outcome::Done => Ok(None),
        Outcome::Refused(refusal) => {
            // A retry finds the record that was stored by an earlier attempt.
            let existing = refusal.existing;
            Ok(existing.filter(|record| record.text("restored_request_id") != Some(&run.id)))
        }
    }
}

/// The outcome for a record whose primary key exists.
fn compare(record: &Record, existing: &Record) -> CopyOutcome {
    let names: BTreeSet<&String> = record.item.keys().chain(existing.item.keys()).collect();
    // Ignores the attributes that a restore, or the cancel of a removal, adds.
    let is_different = |name: &&String| {
        !name.starts_with("restored_")
            && !name.starts_with("removal_cancelled_")
            && record.item.get(*name) != existing.item.get(*name)
    };
    let names: Vec<&str> = names
        .into_iter()
        .filter(is_different)
        .map(String::as_str)
        .collect();
    if names.is_empty() {
        return CopyOutcome::Exists;
    }
    CopyOutcome::Differs(names.join(", "))
}

/// Whether a record is older than its parent by more than [`MAX_CLOCK_DIFFERENCE`].
fn predates(record: &Record, parent: &Record) -> bool {
    let times = [record, parent].map(|record| {
        let time = record.text("created_at").map(humantime::parse_rfc3339);
        time.and_then(Result::ok)
    });
    match times {
        [Some(record_time), Some(parent_time)] => record_time + MAX_CLOCK_DIFFERENCE < parent_time,
        _ => false,
    }
}
