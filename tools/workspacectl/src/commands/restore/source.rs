//! Reads the source of a restore: an export, or a table.

use std::{
    collections::{BTreeMap, HashMap},
    io::{BufRead as _, BufReader, Read},
};

use anyhow::{Context as _, Error, Result, anyhow, ensure};
use serde_json::Value;
use workspace_management::{
    store::{Item, Table},
    values::trim,
};
use workspace_records::{
    item::{primary_key_values, string_attribute, to_json},
    kinds::Kind,
    schemas,
};

use super::RestoreFilter;
use crate::{
    deployment::Deployment,
    errors::{RequestResultExt as _, UsageError},
    organization::org_ids,
    write::is_mark_attribute,
};

/// The records to restore, read and validated.
#[derive(Default)]
pub(super) struct Source {
    /// The valid records that match the filter, without their marks, by table and primary key.
    pub(super) records: BTreeMap<(Table, Vec<String>), Value>,
    /// The `request_id`s of all organizations and teams, matching or not, by primary key. One map
    /// suffices, because the primary keys `[org]` and `[org#project, team]` differ in length.
    pub(super) parent_creation_ids: HashMap<Vec<String>, String>,
    /// The number of matching API keys that are left out, because the file lacks their hashes.
    pub(super) keys_without_hash_count: usize,
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
            let mut line: Value = serde_json::from_str(line)
                .map_err(|_| anyhow!("{location} is not valid JSON: {ADVICE}"))?;
            let table = Kind::named(string_attribute(&line, "table")).map(|kind| kind.table);
            let table =
                table.with_context(|| format!("{location} has an unknown kind in `table`"))?;
            let record = line["record"].take();
            ensure!(record.is_object(), "{location} has no record: {ADVICE}");
            if table != Table::API_KEYS || record.get("secret_sha256").is_some() {
                source.add(&location, table, record, filter)?;
            } else if filter.matches(table, &record) {
                source.keys_without_hash_count += 1;
            }
        }
        Ok(source)
    }

    /// Reads all records of a table.
    /// Fails if the table cannot be read, or a matching record is invalid.
    pub(super) async fn scan_table(
        name: &str,
        filter: &RestoreFilter,
        deployment: &Deployment,
    ) -> Result<Self> {
        let table = filter.table.context("a table needs --to")?;
        let mut source = Self::default();
        let scan = deployment.dynamodb.scan().consistent_read(true);
        let mut items = scan.table_name(name).into_paginator().items().send();
        while let Some(item) = items.next().await {
            let message = format!("there is no file {name}, and the table {name} cannot be read");
            let item = item.request_context(message)?;
            let record = to_json(item.clone());
            // The restore writes this JSON, so the conversion must not have lost anything.
            if filter.matches(table, &record) && serde_dynamo::to_item::<_, Item>(&record)? != item
            {
                let reason = "it has an attribute of an unexpected type";
                return Err(invalid_record_error(name, table, &record, reason));
            }
            source.add(name, table, record, filter)?;
        }
        Ok(source)
    }

    /// Adds a record if it matches the filter. Fails if that record is invalid or contradicts an
    /// earlier line. Keeps the `request_id` of every organization and team, matching or not.
    fn add(
        &mut self,
        location: &str,
        table: Table,
        mut record: Value,
        filter: &RestoreFilter,
    ) -> Result<()> {
        if [Table::ORGANIZATIONS, Table::TEAMS].contains(&table) {
            let request_id = string_attribute(&record, "request_id").to_owned();
            let primary_key = primary_key_values(table, &record);
            self.parent_creation_ids.insert(primary_key, request_id);
        }
        if !filter.matches(table, &record) {
            return Ok(());
        }
        if let Some(reason) = schemas::first_violation(table, &record) {
            return Err(invalid_record_error(location, table, &record, &reason));
        }
        if let Some(attributes) = record.as_object_mut() {
            attributes.retain(|name, _| !is_mark_attribute(name));
        }
        let table_and_primary_key = (table, primary_key_values(table, &record));
        if let Some(earlier) = self.records.get(&table_and_primary_key)
            && *earlier != record
        {
            let reason = "an earlier line has this record with different values";
            return Err(invalid_record_error(location, table, &record, reason));
        }
        self.records.insert(table_and_primary_key, record);
        Ok(())
    }

    /// Checks that the records belong to one organization, unless `--org` or `--all-orgs` is given.
    pub(super) fn check_single_org(&self, from: &str, filter: &RestoreFilter) -> Result<()> {
        let orgs = org_ids(self.records.values());
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
