//! Prints what became of each record.

use std::time::SystemTime;

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value, json};
use workspace_management::{api_key::KeyRecord, store::Table};

use crate::{
    output::{counted, escape, escape_json, write_line},
    progress::Counter,
    records::key,
};

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Copied,
    /// It exists with the same content.
    Exists,
    /// It exists with other content, which stays.
    Differs,
    Skipped,
}

/// Prints lines, and counts the records by their outcome.
pub(super) struct Report {
    pub(super) is_dry_run: bool,
    json: bool,
    counter: Counter,
    counts: [usize; 4],
}

impl Report {
    pub(super) fn new(is_dry_run: bool, json: bool) -> Self {
        let counter = Counter::new("records processed");
        Self {
            is_dry_run,
            json,
            counter,
            counts: [0; 4],
        }
    }

    /// Adds a record. Prints its line in a dry run, or if the operator must know of it. The reason
    /// is empty unless it was skipped.
    pub(super) fn add(
        &mut self,
        table: Table,
        record: &Value,
        outcome: Outcome,
        reason: &str,
    ) -> Result<()> {
        self.counts[outcome as usize] += 1;
        self.counter.add(1);
        let word = ["copied", "exists", "differs", "skipped"][outcome as usize];
        let reason = match outcome {
            Outcome::Copied if is_usable(table, record) => "it can be used again",
            _ => reason,
        };
        if !self.is_dry_run && reason.is_empty() && outcome != Outcome::Differs {
            return Ok(());
        }
        let key = key(table, record);
        let line = if self.json {
            let names = table.primary_key.iter().map(|name| (*name).to_owned());
            let key: Map<_, _> = names.zip(key.into_iter().map(Value::from)).collect();
            let reason = (!reason.is_empty()).then_some(reason);
            let line = json!({ "table": table.noun, "key": key, "result": word, "reason": reason });
            escape_json(&line.to_string())
        } else {
            let separator = if reason.is_empty() { "" } else { ": " };
            let [key, reason] = [key.join(" ").as_str(), reason].map(escape);
            format!("{}\t{key}\t{word}{separator}{reason}", table.noun)
        };
        let printed = self.counter.suspend(|| write_line(&line));
        printed.context("cannot write to standard output")
    }

    /// How many records have each outcome.
    pub(super) fn summary(&self) -> String {
        self.counter.finish();
        let [copied, exist, differ, skipped] = self.counts;
        let mode = match self.is_dry_run {
            true => "dry run, nothing was written. Without --dry-run: ",
            false => "",
        };
        format!("{mode}{copied} copied, {exist} exist, {differ} differ, {skipped} skipped")
    }

    /// Checks that every record is, or would be, stored as it is in the source.
    pub(super) fn check(&self) -> Result<()> {
        let [.., differ, skipped] = self.counts;
        match counted(differ + skipped, "record") {
            _ if differ + skipped == 0 => Ok(()),
            records => bail!("{records} not as in the source: standard output says which, and why"),
        }
    }
}

/// Whether it is the record of an API key that is neither expired nor revoked.
fn is_usable(table: Table, record: &Value) -> bool {
    let key = || serde_json::from_value::<KeyRecord>(record.clone());
    table == Table::KEYS && key().is_ok_and(|key| key.is_valid_at(SystemTime::now()))
}
