//! The history: who changed what, when and why. Every function that sends writes is here, and stores
//! an entry.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, SystemTime},
};

use anyhow::Result;
use aws_sdk_dynamodb::types::AttributeValue;
use workspace_management::store::{Item, timestamp};
use workspace_records::kinds::{HISTORY, Kind, PrimaryKey};

use super::{
    Change, MAX_WRITES, Outcome, Write,
    send::{put, transact},
};
use crate::{
    context::{Run, random_id},
    deployment::Deployment,
    marked_deletion::is_mark_attribute,
    record::Record,
};

/// The organization of an API key whose record names none.
const UNKNOWN_ORG: &str = "?";

/// Attributes that no entry has: secrets and their hashes.
const SECRETS: [&str; 2] = ["secret_sha256", "last_four"];

const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

/// Sends writes and an entry for each change, as one transaction. `verb` says what the command does,
/// such as `edit`.
pub(crate) async fn change(
    deployment: &Deployment,
    run: &Run,
    verb: &str,
    mut writes: Vec<Write>,
) -> Result<Outcome> {
    let mut entries = Vec::new();
    for write in &writes {
        if !matches!(write.change, Change::Check) {
            entries.push(Write::put(write.entry(run, verb)?));
        }
    }
    writes.extend(entries);
    transact(deployment, writes).await
}

/// A change that takes many requests, such as a removal of teams. Each record has an entry for its
/// beginning and one for its end.
pub(crate) struct LongChange<'a> {
    deployment: &'a Deployment,
    run: &'a Run,
    verb: &'static str,
}

/// How a long change of a record has ended.
pub(crate) struct Ending<'a> {
    /// The record as it was read.
    pub(crate) record: &'a Record,
    /// `done`, `changed` or `cancelled`, as in `records.schema.json`.
    pub(crate) result: &'static str,
    pub(crate) counts: BTreeMap<&'static str, usize>,
    /// The ids of erased API keys.
    pub(crate) key_ids: &'a BTreeSet<String>,
}

impl<'a> LongChange<'a> {
    /// Stores the entries of the beginning. Writes come after it.
    pub(crate) async fn begin(
        deployment: &'a Deployment,
        run: &'a Run,
        verb: &'static str,
        keys: &[PrimaryKey],
    ) -> Result<Self> {
        let change = Self {
            deployment,
            run,
            verb,
        };
        for keys in keys.chunks(MAX_WRITES) {
            let mut entries = Vec::new();
            for key in keys {
                let mut entry = entry(run, verb, &Record::empty(key))?;
                set_text(&mut entry, "phase", "begin");
                entries.push(Write::put(entry));
            }
            transact(deployment, entries).await?.done()?;
        }
        Ok(change)
    }

    pub(crate) fn run(&self) -> &'a Run {
        self.run
    }

    pub(crate) async fn transact(&self, writes: Vec<Write>) -> Result<Outcome> {
        transact(self.deployment, writes).await
    }

    pub(crate) async fn put(&self, record: Record) -> Result<Outcome> {
        put(self.deployment, record).await
    }

    /// Sends the last write of a record, if there is one, and the entry of its end, as one
    /// transaction.
    pub(crate) async fn end(
        &self,
        last_write: Option<Write>,
        ending: Ending<'_>,
    ) -> Result<Outcome> {
        let mut entry = match &last_write {
            // What is left of an organization says nothing about it.
            Some(write) if !matches!(write.record.key, PrimaryKey::Organization { .. }) => {
                write.entry(self.run, self.verb)?
            }
            _ => entry(self.run, self.verb, ending.record)?,
        };
        set_text(&mut entry, "phase", "end");
        set_text(&mut entry, "result", ending.result);
        let counts = ending.counts.into_iter();
        let counts = counts.map(|(name, count)| {
            let count = AttributeValue::N(count.to_string());
            (name.to_owned(), count)
        });
        set(&mut entry, "counts", AttributeValue::M(counts.collect()));
        if !ending.key_ids.is_empty() {
            let ids = ending.key_ids.iter().cloned().map(AttributeValue::S);
            set(&mut entry, "erased_keys", AttributeValue::L(ids.collect()));
        }
        let mut writes = Vec::from_iter(last_write);
        writes.push(Write::put(entry));
        transact(self.deployment, writes).await
    }
}

impl Write {
    /// The entry of this write, with the attributes that it changes.
    fn entry(&self, run: &Run, verb: &str) -> Result<Record> {
        let result = self.result();
        let [before, after] = [(&self.record, &result), (&result, &self.record)]
            .map(|(record, other)| AttributeValue::M(different_attributes(record, other)));
        // The record of a deleted API key names its organization too.
        let named = if result.item.is_empty() {
            &self.record
        } else {
            &result
        };
        let mut entry = entry(run, verb, named)?;
        set(&mut entry, "before", before);
        set(&mut entry, "after", after);
        Ok(entry)
    }
}

/// The attributes of a record that another version of it lacks, or has with different values. Leaves
/// out secrets and marks.
fn different_attributes(record: &Record, other: &Record) -> Item {
    let key = record.key.table().primary_key_attributes;
    let mut attributes = record.item.clone();
    attributes.retain(|name, value| {
        let name = name.as_str();
        let is_left_out = key.contains(&name) || SECRETS.contains(&name) || is_mark_attribute(name);
        !is_left_out && other.item.get(name) != Some(value)
    });
    attributes
}

/// An entry about a record.
fn entry(run: &Run, verb: &str, record: &Record) -> Result<Record> {
    let now = SystemTime::now();
    let at = timestamp(now);
    let key = &record.key;
    let org = key
        .org()
        .or_else(|| record.text("org_id").map(str::to_owned));
    let org = org.filter(|org| !org.is_empty());
    let kind = Kind::of(key.table()).singular();
    let expires_at = now + Duration::from_secs(u64::from(run.history_days) * SECONDS_PER_DAY);
    let expires_at = expires_at.duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
    let id = format!("{at}#{}", random_id()?);
    let org = org.unwrap_or_else(|| UNKNOWN_ORG.to_owned());
    let mut entry = Record::new(HISTORY, HISTORY.primary_key(&[&org, &id]))?;
    set_text(&mut entry, "at", &at);
    set_text(&mut entry, "by", &run.operator);
    set_text(&mut entry, "run_id", &run.id);
    set_text(&mut entry, "action", &format!("{verb} {kind}"));
    set_text(&mut entry, "kind", kind);
    if let Some(reason) = &run.reason {
        set_text(&mut entry, "reason", reason);
    }
    set(&mut entry, "key", AttributeValue::M(key.to_item()));
    let expires_at = AttributeValue::N(expires_at.to_string());
    set(&mut entry, "expires_at", expires_at);
    Ok(entry)
}

fn set(entry: &mut Record, name: &str, value: AttributeValue) {
    entry.item.insert(name.to_owned(), value);
}

fn set_text(entry: &mut Record, name: &str, text: &str) {
    set(entry, name, AttributeValue::S(text.to_owned()));
}
