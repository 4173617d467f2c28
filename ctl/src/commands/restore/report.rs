//! Prints what became of each record.

use anyhow::{Result, anyhow, bail};
use serde_json::{Map, Value, json};
use workspace_management::store::Table;
use workspace_records::item::primary_key;

use crate::{
    output::write_line,
    text::{counted, escape, escape_json},
};

/// What became of a record.
pub(super) enum Outcome {
    Copied,
    /// It exists with the same content.
    Exists,
    /// It exists with other values of these attributes, which stay.
    Differs(String),
    /// It was not copied, for this reason.
    Skipped(String),
}

/// Prints lines, and counts the records by their outcome.
pub(super) struct Report {
    is_dry_run: bool,
    json: bool,
    /// Copied, existing, different and skipped.
    counts: [usize; 4],
}

impl Report {
    pub(super) fn new(is_dry_run: bool, json: bool) -> Self {
        Self {
            is_dry_run,
            json,
            counts: [0; 4],
        }
    }

    /// Adds a record. Prints its line in a dry run, or if the operator must know of it.
    pub(super) fn add(&mut self, table: Table, record: &Value, outcome: Outcome) -> Result<()> {
        let (index, word, detail) = match outcome {
            Outcome::Copied => (0, "copied", None),
            Outcome::Exists => (1, "exists", None),
            Outcome::Differs(attributes) => (2, "differs", Some(attributes)),
            Outcome::Skipped(reason) => (3, "skipped", Some(reason)),
        };
        self.counts[index] += 1;
        if !self.is_dry_run && detail.is_none() {
            return Ok(());
        }
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

    /// Prints how many records have each outcome.
    pub(super) fn print_summary(&self) {
        let mode = if self.is_dry_run {
            "dry run, nothing was written. Without --dry-run: "
        } else {
            ""
        };
        let [copied, exist, differ, skipped] = self.counts;
        eprintln!("{mode}{copied} copied, {exist} exist, {differ} differ, {skipped} skipped");
    }

    /// Checks that every record is, or would be, stored as it is in the source.
    pub(super) fn check(&self) -> Result<()> {
        let [_, _, differ, skipped] = self.counts;
        let different = differ + skipped;
        if different > 0 {
            let records = counted(different, "record");
            bail!("{records} not as in the source: standard output says which, and why");
        }
        Ok(())
    }
}
