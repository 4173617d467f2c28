//! Reads and validates the source of a restore: an export, or a table.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::ready,
    io::{BufRead as _, BufReader, Read},
    pin::pin,
};

use anyhow::{Context as _, Error, Result, anyhow, ensure};
use futures_util::{Stream, StreamExt as _, TryStreamExt as _, stream};
use serde_json::Value;
use workspace_management::{records::Table, store::Item, values::trim};
use workspace_records::{
    item::{primary_key_values, to_json},
    kinds::{HISTORY, Kind, PrimaryKey},
    schemas,
};

use super::RestoreFilter;
use crate::{
    deployment::Deployment,
    errors::{RequestResultExt as _, UsageError},
    marked_deletion::is_mark_attribute,
    record::Record,
};

/// What to restore. All records that match the filter are valid.
pub(super) struct Source<'a> {
    from: &'a str,
    filter: &'a RestoreFilter,
    records: Records,
    /// The organizations of the matching records.
    pub(super) orgs: BTreeSet<String>,
    /// The `request_id`s of all organizations and teams in an export, matching or not.
    pub(super) parent_creation_ids: BTreeMap<PrimaryKey, String>,
    /// The number of matching API keys that are left out, because the file lacks their hashes.
    pub(super) keys_without_hash_count: usize,
    /// The number of entries of the history, which are left out.
    pub(super) history_count: usize,
    /// Whether the source is a table without records.
    pub(super) is_empty_table: bool,
}

enum Records {
    /// The matching records of an export.
    InMemory(BTreeMap<PrimaryKey, Record>),
    /// A table with records of this kind. It is read twice, because it may not fit into memory.
    InTable(Table),
}

impl<'a> Source<'a> {
    fn new(from: &'a str, filter: &'a RestoreFilter, records: Records) -> Self {
        Self {
            from,
            filter,
            records,
            orgs: BTreeSet::new(),
            parent_creation_ids: BTreeMap::new(),
            keys_without_hash_count: 0,
            history_count: 0,
            is_empty_table: false,
        }
    }

    /// Reads all lines of an export.
    /// Fails if a line is not from an export, or a matching record is invalid.
    pub(super) fn read_export(
        from: &'a str,
        input: impl Read,
        filter: &'a RestoreFilter,
    ) -> Result<Self> {
        const ADVICE: &str = "use a file written by --export or `orgs export`";
        let mut source = Self::new(from, filter, Records::InMemory(BTreeMap::new()));
        let mut records = BTreeMap::new();
        for (line_number, line) in (1..).zip(BufReader::new(input).lines()) {
            let location = format!("line {line_number} of {from}");
            let line = line.with_context(|| format!("cannot read {location}"))?;
            let line = trim(&line);
            if line.is_empty() {
                continue;
            }
            let line: Value = serde_json::from_str(line)
                .map_err(|_| anyhow!("{location} is not valid JSON: {ADVICE}"))?;
            let kind = line["table"].as_str().and_then(Kind::named);
            let kind =
                kind.with_context(|| format!("{location} has an unknown kind in `table`"))?;
            let record = &line["record"];
            ensure!(record.is_object(), "{location} has no record: {ADVICE}");
            let item: Item = serde_dynamo::to_item(record)?;
            if kind.table == HISTORY {
                source.history_count += 1;
                continue;
            }
            if kind.table != Table::API_KEYS || item.contains_key("secret_sha256") {
                source.add(&location, kind.table, item, &mut records)?;
            } else if filter.matches(kind.table, &item) {
                source.keys_without_hash_count += 1;
            }
        }
        source.records = Records::InMemory(records);
        Ok(source)
    }

    /// Adds a record of an export if it matches the filter. Fails if that record is invalid or
    /// contradicts an earlier line. Keeps the `request_id` of every organization and team.
    fn add(
        &mut self,
        location: &str,
        table: Table,
        item: Item,
        records: &mut BTreeMap<PrimaryKey, Record>,
    ) -> Result<()> {
        if [Table::ORGANIZATIONS, Table::TEAMS].contains(&table)
            && let Some(key) = PrimaryKey::of(table, &item)
            && let Some(request_id) = item.get("request_id").and_then(|value| value.as_s().ok())
        {
            self.parent_creation_ids.insert(key, request_id.clone());
        }
        if !self.filter.matches(table, &item) {
            return Ok(());
        }
        let record = validate(location, table, item)?;
        if let Some(earlier) = records.get(&record.key)
            && earlier.item != record.item
        {
            let reason = "an earlier line has this record with different values";
            return Err(invalid_record_error(
                location,
                table,
                &record.to_json(),
                reason,
            ));
        }
        self.orgs.extend(record.text("org_id").map(str::to_owned));
        records.insert(record.key.clone(), record);
        Ok(())
    }

    /// Reads a table, and keeps only the organizations of its records.
    /// Fails if the table cannot be read, or a matching record is invalid.
    pub(super) async fn check_table(
        from: &'a str,
        table: Table,
        filter: &'a RestoreFilter,
        deployment: &Deployment,
    ) -> Result<Self> {
        let mut source = Self::new(from, filter, Records::InTable(table));
        source.is_empty_table = true;
        let mut items = pin!(scan(from, deployment));
        while let Some(item) = items.try_next().await? {
            source.is_empty_table = false;
            if filter.matches(table, &item) {
                let record = validate(from, table, item)?;
                source.orgs.extend(record.text("org_id").map(str::to_owned));
            }
        }
        Ok(source)
    }

    /// The matching records of a kind, without their marks.
    pub(super) fn records(
        &self,
        wanted: Table,
        deployment: &Deployment,
    ) -> impl Stream<Item = Result<Record>> {
        match &self.records {
            Records::InMemory(records) => {
                let records = records.values();
                let records = records.filter(move |record| record.key.table() == wanted);
                stream::iter(records.cloned().map(Ok)).left_stream()
            }
            Records::InTable(table) if *table == wanted => {
                let items = scan(self.from, deployment);
                let matching = items
                    .try_filter(move |item| ready(self.filter.matches(wanted, item)))
                    .map(move |item| validate(self.from, wanted, item?));
                matching.left_stream().right_stream()
            }
            Records::InTable(_) => stream::empty().right_stream().right_stream(),
        }
    }

    /// Whether API keys match.
    pub(super) fn has_keys(&self) -> bool {
        match &self.records {
            Records::InMemory(records) => {
                let mut keys = records.keys();
                keys.any(|key| key.table() == Table::API_KEYS)
            }
            Records::InTable(table) => *table == Table::API_KEYS,
        }
    }

    /// A matching record of an export.
    pub(super) fn find(&self, key: &PrimaryKey) -> Option<&Record> {
        match &self.records {
            Records::InMemory(records) => records.get(key),
            Records::InTable(_) => None,
        }
    }

    /// Checks that the records belong to one organization, unless `--org` or `--all-orgs` is given.
    pub(super) fn check_single_org(&self) -> Result<()> {
        if self.orgs.len() < 2 || self.filter.org.is_some() || self.filter.all_orgs {
            return Ok(());
        }
        let examples: Vec<_> = self.orgs.iter().take(2).map(String::as_str).collect();
        let message = format!(
            "{} has records of several organizations, such as {}: choose one with --org, or use --all-orgs",
            self.from,
            examples.join(" and ")
        );
        Err(UsageError(message).into())
    }
}

/// All items of the table, page by page.
fn scan(name: &str, deployment: &Deployment) -> impl Stream<Item = Result<Item>> {
    let scan = deployment.dynamodb.scan().consistent_read(true);
    let items = scan.table_name(name).into_paginator().items().send();
    stream::unfold(items, move |mut items| async move {
        let message = format!("there is no file {name}, and the table {name} cannot be read");
        let item = items.next().await?.request_context(deployment, message);
        Some((item, items))
    })
}

/// The record without its marks. Fails if it is invalid.
fn validate(location: &str, table: Table, mut item: Item) -> Result<Record> {
    let json = to_json(item.clone());
    if let Some(reason) = schemas::first_violation(table, &json) {
        return Err(invalid_record_error(location, table, &json, &reason));
    }
    // The schemas do not know the types of DynamoDB, such as sets.
    if serde_dynamo::to_item::<_, Item>(&json)? != item {
        let reason = "it has an attribute of an unexpected type";
        return Err(invalid_record_error(location, table, &json, reason));
    }
    item.retain(|name, _| !is_mark_attribute(name));
    Record::new(table, item).context(location.to_owned())
}

/// The error for an invalid record. Truncates its primary key, which can have any length.
fn invalid_record_error(location: &str, table: Table, record: &Value, reason: &str) -> Error {
    let kind = Kind::of(table).plural;
    let primary_key = primary_key_values(table, record).join(" ");
    anyhow!("{location}: {kind} {primary_key:.200}: {reason}")
}
