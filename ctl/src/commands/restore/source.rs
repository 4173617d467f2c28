//! Reads the records of a file of `orgs export`, or of a table.

use std::{
    collections::{BTreeMap, HashMap},
    fs::File,
    io::{BufRead as _, BufReader},
    path::Path,
};

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::Value;
use workspace_management::store::{Item, Table};
use workspace_records::{
    item::{primary_key, text, to_json},
    schemas,
};

use super::Scope;
use crate::{
    deployment::Deployment,
    errors::Response as _,
    export::is_mark,
    usage::{UsageError, table_of},
};

/// What a source contains.
#[derive(Default)]
pub(super) struct Source {
    /// The records in the scope, by their kind and primary key, without the marks of removals and
    /// erasures. All are valid.
    pub(super) records: BTreeMap<(&'static str, Vec<String>), (Table, Value)>,
    /// The `request_id`s of the organizations and teams, also outside of the scope, by their primary key.
    pub(super) registrations: HashMap<Vec<String>, String>,
    /// The number of API keys in the scope that are left out, because the file does not have their hashes.
    pub(super) keys_without_hash: usize,
}

/// Opens a file. `None` if the name is that of a table.
///
/// # Errors
/// If the file cannot be read, or there is none and an option for tables is missing.
pub(super) fn open(name: &str, scope: &Scope) -> Result<Option<File>> {
    if Path::new(name).is_file() {
        let file = File::open(name).with_context(|| format!("cannot open {name}"))?;
        return Ok(Some(file));
    }
    if scope.to.is_some() && (scope.org.is_some() || scope.all_orgs) {
        return Ok(None);
    }
    let message = format!(
        "there is no file {name}: if it is a table, give the kind of its records with --to, \
         and choose its records with --org, or use --all-orgs"
    );
    Err(UsageError(message).into())
}

impl Source {
    /// Reads all lines of a file.
    ///
    /// # Errors
    /// If a line is not one of an export, or a record in the scope is invalid.
    pub(super) fn read_file(name: &str, file: File, scope: &Scope) -> Result<Self> {
        let mut source = Self::default();
        for (number, line) in (1..).zip(BufReader::new(file).lines()) {
            let place = format!("line {number} of {name}");
            let line = line.with_context(|| format!("cannot read {place}"))?;
            if line.trim().is_empty() {
                continue;
            }
            let mut line: Value = serde_json::from_str(&line).map_err(|_| {
                anyhow!("{place} is not complete JSON: use a file of `orgs export`")
            })?;
            let table = line["table"].as_str().and_then(table_of);
            let table = table.with_context(|| format!("{place} has no known table"))?;
            let record = line["record"].take();
            if !record.is_object() {
                bail!("{place} has no record: use a file of `orgs export`");
            }
            if table != Table::KEYS || record.get("secret_sha256").is_some() {
                source.add(&place, table, record, scope)?;
            } else if scope.contains(table, &record) {
                source.keys_without_hash += 1;
            }
        }
        Ok(source)
    }

    /// Reads all records of a table.
    ///
    /// # Errors
    /// If the table cannot be read, or a record in the scope is invalid.
    pub(super) async fn scan_table(
        name: &str,
        scope: &Scope,
        deployment: &Deployment,
    ) -> Result<Self> {
        let table = scope.to.context("a table needs --to")?;
        let mut source = Self::default();
        let scan = deployment
            .client
            .scan()
            .table_name(name)
            .consistent_read(true);
        let mut items = scan.into_paginator().items().send();
        while let Some(item) = items.next().await {
            let item = item.or_fail(|| {
                format!("there is no file {name}, and the table {name} cannot be read")
            })?;
            let record = to_json(item.clone());
            if scope.contains(table, &record) && serde_dynamo::to_item::<_, Item>(&record)? != item
            {
                let reason = "it has an attribute with a type that no record has";
                return Err(invalid(name, table, &record, reason));
            }
            source.add(name, table, record, scope)?;
        }
        Ok(source)
    }

    /// Adds a record. Checks it if it is in the scope.
    fn add(&mut self, place: &str, table: Table, mut record: Value, scope: &Scope) -> Result<()> {
        if [Table::ORGANIZATIONS, Table::TEAMS].contains(&table) {
            let request_id = text(&record, "request_id").to_owned();
            let key = primary_key(table, &record);
            self.registrations.insert(key, request_id);
        }
        if !scope.contains(table, &record) {
            return Ok(());
        }
        if let Some(reason) = schemas::violation(table, &record) {
            return Err(invalid(place, table, &record, &reason));
        }
        if let Some(attributes) = record.as_object_mut() {
            attributes.retain(|name, _| !is_mark(name));
        }
        let key = (table.noun, primary_key(table, &record));
        if let Some((_, earlier)) = self.records.get(&key)
            && *earlier != record
        {
            let reason = "an earlier line has this record with other values";
            return Err(invalid(place, table, &record, reason));
        }
        self.records.insert(key, (table, record));
        Ok(())
    }
}

/// The error of an invalid record.
fn invalid(place: &str, table: Table, record: &Value, reason: &str) -> anyhow::Error {
    let key = primary_key(table, record).join(" ");
    let key: String = key.chars().take(200).collect();
    anyhow!("{place}: {} {key}: {reason}", table.noun)
}
