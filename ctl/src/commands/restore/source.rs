//! Where `restore` reads records: a file of `orgs export`, or a table, which is copied to a file.

use std::{
    collections::HashMap,
    fs::File,
    io::{BufRead as _, BufReader, BufWriter, Seek as _, Write as _},
    path::Path,
};

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::{Value, json};
use tempfile::tempfile;
use workspace_management::store::{Item, Table};

use super::{
    record::{organization, violation},
    scope::Scope,
};
use crate::{
    deployment::Deployment,
    records::{key, to_json},
    usage::{UsageError, table_of},
};

/// A file with a record in each line, of which those in the scope can be read several times.
pub(super) struct Source<'a> {
    name: &'a str,
    file: File,
    /// Whether it is a copy of a table.
    is_table: bool,
    scope: &'a Scope,
}

/// A record of a source.
pub(super) struct Line {
    pub(super) table: Table,
    pub(super) record: Value,
    /// Whether it is to be restored.
    pub(super) is_selected: bool,
}

/// What a source contains.
#[derive(Default)]
pub(super) struct Contents {
    /// The number of records in the scope.
    pub(super) records: usize,
    /// The number of API keys that were not asked for.
    pub(super) keys_left_out: usize,
    /// The records of organizations, also outside of the scope, by their id.
    pub(super) organizations: HashMap<String, Value>,
}

impl<'a> Source<'a> {
    /// Opens a file. `None` if the name is that of a table.
    ///
    /// # Errors
    /// If the file cannot be read, or there is none and an option for tables is missing.
    pub(super) fn open(name: &'a str, scope: &'a Scope) -> Result<Option<Self>> {
        if Path::new(name).is_file() {
            let file = File::open(name).with_context(|| format!("cannot open {name}"))?;
            return Ok(Some(Self {
                name,
                file,
                is_table: false,
                scope,
            }));
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

    /// Copies the records in the scope from a table to a temporary file, which has no name.
    pub(super) async fn download(
        name: &'a str,
        scope: &'a Scope,
        deployment: &Deployment,
    ) -> Result<Self> {
        let table = scope.to.context("a table needs --to")?;
        let mut file = BufWriter::new(tempfile().context("cannot create a temporary file")?);
        let mut after = None;
        loop {
            let scan = deployment.client.scan().table_name(name);
            let scan = scan.consistent_read(true).set_exclusive_start_key(after);
            let response = scan.send().await;
            let response = response.with_context(|| {
                format!("there is no file {name}, and the table {name} cannot be read")
            })?;
            for item in response.items.unwrap_or_default() {
                let record = to_json(item.clone());
                if !scope.contains(table, &record) {
                    continue;
                }
                let copy: Item = serde_dynamo::to_item(&record)?;
                if copy != item {
                    let reason = "it has an attribute with a type that no record has";
                    return Err(invalid(name, table, &record, reason));
                }
                let line = json!({ "table": table.noun, "record": record });
                writeln!(file, "{line}").context("cannot write a temporary file")?;
            }
            after = response.last_evaluated_key;
            if after.is_none() {
                break;
            }
        }
        let file = file.into_inner().context("cannot write a temporary file")?;
        Ok(Self {
            name,
            file,
            is_table: true,
            scope,
        })
    }

    /// Checks all records in the scope.
    ///
    /// # Errors
    /// If one is invalid, or the scope must name an organization.
    pub(super) fn inspect(&self) -> Result<Contents> {
        let Scope { org, all_orgs, .. } = self.scope;
        let mut contents = Contents::default();
        let mut first: Option<String> = None;
        for line in self.lines()? {
            let line = line?;
            let org_id = organization(line.table, &line.record).to_owned();
            if line.table == Table::ORGANIZATIONS {
                let organizations = &mut contents.organizations;
                organizations.insert(org_id.clone(), line.record.clone());
            }
            if !line.is_selected {
                let is_key = line.table == Table::KEYS;
                let is_left_out = is_key && self.scope.contains(line.table, &line.record);
                contents.keys_left_out += usize::from(is_left_out);
                continue;
            }
            contents.records += 1;
            let first = first.get_or_insert(org_id.clone());
            if org.is_none() && !all_orgs && *first != org_id {
                let from = self.name;
                let message = format!(
                    "{from} has records of {first} and {org_id}: choose one with --org, or use --all-orgs"
                );
                return Err(UsageError(message).into());
            }
        }
        Ok(contents)
    }

    /// All lines. Those that are selected are checked.
    pub(super) fn lines(&self) -> Result<impl Iterator<Item = Result<Line>>> {
        let mut file = &self.file;
        let rewound = file.rewind();
        rewound.with_context(|| format!("cannot read {}", self.name))?;
        let lines = BufReader::new(file).lines().enumerate();
        let lines = lines.filter(|(_, line)| !matches!(line, Ok(line) if line.trim().is_empty()));
        Ok(lines.map(|(index, line)| {
            let place = match self.is_table {
                true => self.name.to_owned(),
                false => format!("line {} of {}", index + 1, self.name),
            };
            let line = line.with_context(|| format!("cannot read {place}"))?;
            self.parse(&place, &line)
        }))
    }

    fn parse(&self, place: &str, line: &str) -> Result<Line> {
        let mut line: Value = serde_json::from_str(line)
            .map_err(|_| anyhow!("{place} is not complete JSON: use a file of `orgs export`"))?;
        let table = line["table"].as_str().and_then(table_of);
        let table = table.with_context(|| format!("{place} has no known table"))?;
        let record = line["record"].take();
        if !record.is_object() {
            bail!("{place} has no record: use a file of `orgs export`");
        }
        let is_selected = self.scope.selects(table, &record);
        if is_selected && let Some(reason) = violation(table, &record) {
            return Err(invalid(place, table, &record, &reason));
        }
        Ok(Line {
            table,
            record,
            is_selected,
        })
    }
}

/// The error of an invalid record.
fn invalid(place: &str, table: Table, record: &Value, reason: &str) -> anyhow::Error {
    let key: String = key(table, record).join(" ").chars().take(200).collect();
    anyhow!("{place}: {} {key}: {reason}", table.noun)
}
