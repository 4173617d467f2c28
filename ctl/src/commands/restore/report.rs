//! Prints what became of each record.

use std::cell::RefCell;

use anyhow::{Result, anyhow, bail};
use serde_json::{Map, Value, json};
use workspace_management::store::Table;
use workspace_records::item::primary_key;

use crate::{
    output::write_line,
    progress::Counter,
    text::{counted, escape, escape_json},
};

/// What became of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    pub(super) is_dry_run: bool,
    json: bool,
    state: RefCell<State>,
}

struct State {
    counter: Counter,
    copied: usize,
    exist: usize,
    differ: usize,
    skipped: usize,
}

impl Report {
    pub(super) fn new(is_dry_run: bool, json: bool) -> Self {
        let state = State {
            counter: Counter::new("records processed"),
            copied: 0,
            exist: 0,
            differ: 0,
            skipped: 0,
        };
        Self {
            is_dry_run,
            json,
            state: RefCell::new(state),
        }
    }

    /// Adds a record. Prints its line in a dry run, or if the operator must know of it.
    pub(super) fn add(&self, table: Table, record: &Value, outcome: &Outcome) -> Result<()> {
        let mut state = self.state.borrow_mut();
        state.counter.add(1);
        let (word, detail) = match outcome {
            Outcome::Copied => {
                state.copied += 1;
                ("copied", None)
            }
            Outcome::Exists => {
                state.exist += 1;
                ("exists", None)
            }
            Outcome::Differs(attributes) => {
                state.differ += 1;
                ("differs", Some(attributes))
            }
            Outcome::Skipped(reason) => {
                state.skipped += 1;
                ("skipped", Some(reason))
            }
        };
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
            let detail = detail.map(|detail| format!(": {}", escape(detail)));
            let key = escape(&key.join(" "));
            format!(
                "{}\t{key}\t{word}{}",
                table.noun,
                detail.unwrap_or_default()
            )
        };
        let printed = state.counter.suspend(|| write_line(&line));
        // A restore that stops in the middle is a failure, also if the reader has closed the pipe.
        printed.map_err(|error| anyhow!("cannot write to standard output: {error}"))
    }

    /// How many records have each outcome.
    pub(super) fn summary(&self) -> String {
        let state = self.state.borrow();
        state.counter.finish();
        let mode = if self.is_dry_run {
            "dry run, nothing was written. Without --dry-run: "
        } else {
            ""
        };
        let State {
            copied,
            exist,
            differ,
            skipped,
            ..
        } = &*state;
        format!("{mode}{copied} copied, {exist} exist, {differ} differ, {skipped} skipped")
    }

    /// Checks that every record is, or would be, stored as it is in the source.
    pub(super) fn check(&self) -> Result<()> {
        let state = self.state.borrow();
        let different = state.differ + state.skipped;
        if different > 0 {
            let records = counted(different, "record");
            bail!("{records} not as in the source: standard output says which, and why");
        }
        Ok(())
    }
}
