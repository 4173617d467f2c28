//! Reads the source of a restore: an export, or a table.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead as _, BufReader, Read},
};

use anyhow::{Context as _, Error, Result, anyhow, ensure};
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

/// The records to restore, read and validated.
#[derive(Default)]
pub(super) struct Source {
    /// The valid records that match the filter, without their marks.
    pub(super) records: BTreeMap<PrimaryKey, Record>,
    /// The `request_id`s of all organizations and teams, matching or not.
    pub(super) parent_creation_ids: BTreeMap<PrimaryKey, String>,
    /// The number of matching API keys that are left out, because the file lacks their hashes.
    pub(super) keys_without_hash_count: usize,
    /// The number of entries of the history, which are left out.
    pub(super) history_count: usize,
}

impl Source {
    /// Reads all lines of an export.
    /// Fails if a line is not from an export, or a matching record is invalid.
    pub(super) fn read_export(
        from: &str,
        input: impl Read,
        filter: &RestoreFilter,
    ) -> Result<Self> {
        const ADVICE: &str = "use a file written by --export or `orgs export`";
        let mut source = Self::default();
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
                source.add(&location, kind.table, item, filter)?;
            } else if filter.matches(kind.table, &item) {
                source.keys_without_hash_count += 1;
            }
        }
        Ok(source)
    }

    /// Reads all records of a table, which are records of `table`.
    /// Fails if the table cannot be read, or a matching record is invalid.
    pub(super) async fn scan_table(
        name: &str,
        table: Table,
        filter: &RestoreFilter,
        deployment: &Deployment,
    ) -> Result<Self> {
        let mut source = Self::default();
        let scan = deployment.dynamodb.scan().consistent_read(true);
        let mut items = scan.table_name(name).into_paginator().items().send();
        while let Some(item) = items.next().await {
            let message = format!("there is no file {name}, and the table {name} cannot be read");
            source.add(
                name,
                table,
                item.request_context(deployment, message)?,
                filter,
            )?;
        }
        Ok(source)
    }

    /// Adds a record if it matches the filter. Fails if that record is invalid or contradicts an
    /// earlier line. Keeps the `request_id` of every organization and team, matching or not.
    fn add(
        &mut self,
        location: &str,
        table: Table,
        mut item: Item,
        filter: &RestoreFilter,
    ) -> Result<()> {
        if [Table::ORGANIZATIONS, Table::TEAMS].contains(&table)
            && let Some(key) = PrimaryKey::of(table, &item)
            && let Some(request_id) = item.get("request_id").and_then(|value| value.as_s().ok())
        {
            self.parent_creation_ids.insert(key, request_id.clone());
        }
        if !filter.matches(table, &item) {
            return Ok(());
        }
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
        let record = Record::new(table, item).context(location.to_owned())?;
        if let Some(earlier) = self.records.get(&record.key)
            && earlier.item != record.item
        {
            let reason = "an earlier line has this record with different values";
            return Err(invalid_record_error(location, table, &json, reason));
        }
        self.records.insert(record.key.clone(), record);
        Ok(())
    }

    /// The organizations of the records, sorted.
    pub(super) fn orgs(&self) -> impl Iterator<Item = &str> {
        let records = self.records.values();
        let orgs: BTreeSet<&str> = records.filter_map(|it| it.text("org_id")).collect();
        orgs.into_iter()
    }

    /// Checks that the records belong to one organization, unless `--org` or `--all-orgs` is given.
    pub(super) fn check_single_org(&self, from: &str, filter: &RestoreFilter) -> Result<()> {
        let orgs: Vec<&str> = self.orgs().collect();
        if orgs.len() < 2 || filter.org.is_some() || filter.all_orgs {
            return Ok(());
        }
        let examples: Vec<_> = orgs.into_iter().take(2).collect();
        let message = format!(
            "{from} has records of several organizations, such as {}: choose one with --org, or use --all-orgs",
            examples.join(" and ")
        );
        Err(UsageError(message).into())
    }
}

/// The error for an invalid record. Truncates its primary key, which can have any length.
fn invalid_record_error(location: &str, table: Table, record: &Value, reason: &str) -> Error {
    let kind = Kind::of(table).plural;
    let primary_key = primary_key_values(table, record).join(" ");
    anyhow!("{location}: {kind} {primary_key:.200}: {reason}")
}
