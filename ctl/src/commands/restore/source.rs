//! Where `restore` reads records: a table of DynamoDB, or a file of `orgs export`.

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Lines},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::Value;
use workspace_management::store::{Item, Table};

use crate::{deployment::Deployment, usage::UsageError};

/// The maximum number of lines that are read together.
const BATCH: usize = 1_000;

/// A source of records.
#[derive(Debug)]
pub(crate) enum Source {
    /// The table with this name, whose records are of this kind.
    Table(String, Table),
    /// A file, whose records are of this kind if there is one.
    File(PathBuf, Option<Table>),
}

impl Source {
    /// The file with a name, or else the table.
    ///
    /// # Errors
    /// A [`UsageError`] if the kind of a table's records is missing.
    pub(crate) fn new(from: &str, to: Option<Table>) -> Result<Self, UsageError> {
        let path = Path::new(from);
        if path.is_file() {
            return Ok(Self::File(path.to_owned(), to));
        }
        let is_table_name = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        match to {
            _ if from.is_empty() || !from.chars().all(is_table_name) => Err(UsageError(format!(
                "there is no file {from}, and a table cannot have this name"
            ))),
            Some(table) => Ok(Self::Table(from.to_owned(), table)),
            None => Err(UsageError(format!(
                "there is no file {from}: if it is a table, give the kind of its records with --to"
            ))),
        }
    }

    /// The records of these tables.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub(super) fn batches<'a>(&'a self, tables: &'a [Table]) -> Result<Batches<'a>> {
        Ok(match self {
            Self::Table(name, table) => Batches::Table {
                name,
                table: *table,
                start: None,
                is_finished: !tables.contains(table),
            },
            Self::File(path, kind) => {
                let file =
                    File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
                Batches::File {
                    path,
                    kind: *kind,
                    tables,
                    lines: BufReader::new(file).lines(),
                    number: 0,
                    next: None,
                }
            }
        })
    }
}

/// The records of a source, in batches of one table each.
pub(crate) enum Batches<'a> {
    Table {
        name: &'a str,
        table: Table,
        start: Option<Item>,
        is_finished: bool,
    },
    File {
        path: &'a Path,
        kind: Option<Table>,
        tables: &'a [Table],
        lines: Lines<BufReader<File>>,
        number: usize,
        /// A record of another table than the batch before it.
        next: Option<(Table, Item)>,
    },
}

impl Batches<'_> {
    /// The next batch, or `None` at the end.
    ///
    /// # Errors
    /// If the source cannot be read, or a line of the file is not one of an export.
    pub(super) async fn next(
        &mut self,
        deployment: &Deployment,
    ) -> Result<Option<(Table, Vec<Item>)>> {
        match self {
            Self::Table {
                is_finished: true, ..
            } => Ok(None),
            Self::Table {
                name,
                table,
                start,
                is_finished,
            } => {
                let scan = deployment
                    .client
                    .scan()
                    .table_name(*name)
                    .consistent_read(true);
                let response = scan
                    .set_exclusive_start_key(start.take())
                    .send()
                    .await
                    .with_context(|| format!("cannot read {name}"))?;
                *start = response.last_evaluated_key;
                *is_finished = start.is_none();
                Ok(Some((*table, response.items.unwrap_or_default())))
            }
            Self::File { next, .. } => {
                let first = next.take();
                let Some((table, record)) =
                    first.map_or_else(|| self.line(), |first| Ok(Some(first)))?
                else {
                    return Ok(None);
                };
                let mut records = vec![record];
                while records.len() < BATCH {
                    match self.line()? {
                        Some((other, record)) if other == table => records.push(record),
                        other => {
                            self.keep(other);
                            break;
                        }
                    }
                }
                Ok(Some((table, records)))
            }
        }
    }

    fn keep(&mut self, record: Option<(Table, Item)>) {
        if let Self::File { next, .. } = self {
            *next = record;
        }
    }

    /// The next record of a file that belongs to one of the tables.
    fn line(&mut self) -> Result<Option<(Table, Item)>> {
        let Self::File {
            path,
            kind,
            tables,
            lines,
            number,
            ..
        } = self
        else {
            return Ok(None);
        };
        loop {
            *number += 1;
            let place = format!("line {number} of {}", path.display());
            let Some(line) = lines.next() else {
                return Ok(None);
            };
            let line = line.with_context(|| format!("cannot read {place}"))?;
            if line.trim().is_empty() {
                continue;
            }
            let line: Value = serde_json::from_str(&line)
                .map_err(|_| anyhow!("{place} is not JSON: use a file of `orgs export`"))?;
            let mut all = Table::ALL.iter().copied();
            let table = all.find(|table| line["table"] == table.noun);
            let table = table.with_context(|| format!("{place} has no known table"))?;
            let record = &line["record"];
            if !table
                .primary_key
                .iter()
                .all(|name| record[*name].is_string())
            {
                bail!("{place} has no record with the key of its table");
            }
            let is_wanted = tables.contains(&table) && kind.is_none_or(|kind| kind == table);
            if is_wanted {
                return Ok(Some((table, serde_dynamo::to_item(record)?)));
            }
        }
    }
}
