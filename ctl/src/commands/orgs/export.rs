//! `orgs export`: all records of an organization as JSON Lines, one `{"table", "record"}` per line.
//! The records of keys have no digests, so a key cannot be restored from an export.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use serde_json::json;
use tempfile::NamedTempFile;
use workspace_management::store::Table;

use super::record;
use crate::{
    deployment::Deployment,
    index::partitions_of,
    output::{counted, escape_json},
    progress::Counter,
    query::{Query, Scope},
    records::to_json,
    session::Session,
    usage::{UsageError, identifier},
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl orgs export globex --out globex.jsonl
  workspacectl orgs export globex | jq -c 'select(.table == \"teams\") | .record'
  workspacectl restore --from globex.jsonl";

/// The options of `orgs export`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[arg(value_parser = identifier, help = super::ORG_HELP)]
    org: String,
    /// The file to write, or `-`. It is replaced when the export is complete [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Exports an organization.
///
/// # Errors
/// If there is no such organization, the file cannot be written, or DynamoDB cannot be reached.
pub(crate) async fn run(options: Options, session: &Session) -> Result<()> {
    let Options { org, out } = options;
    let file = out.filter(|file| file != Path::new("-"));
    let export = file.as_deref().map(Export::create).transpose()?;
    let deployment = session.deployment().await?;
    record::find(deployment, &org).await?;
    let count = match export {
        Some(export) => {
            let (count, export) = export.write(deployment, &org, Reads::Indexed).await?;
            export.finish()?;
            count
        }
        None => {
            write(
                deployment,
                &org,
                Reads::Indexed,
                BufWriter::new(io::stdout()),
            )
            .await?
            .0
        }
    };
    eprintln!("exported {} of {org}", counted(count, "record"));
    Ok(())
}

/// An export to a file, which is complete or does not change.
pub struct Export {
    path: PathBuf,
    out: Out,
}

/// How an export finds teams and members.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reads {
    /// In the index, which can lack a team that was just created.
    Indexed,
    /// By reading the whole tables, because nothing may be missing before an erasure.
    Complete,
}

/// Where an export is written.
enum Out {
    /// A temporary file, which becomes the file at the end.
    Temporary(BufWriter<NamedTempFile>),
    /// What is not a file, such as a pipe, is not replaced.
    Special(BufWriter<File>),
}

impl Export {
    /// Checks that the file can be written, before anything is read or marked.
    ///
    /// # Errors
    /// If it cannot.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let failure = || format!("cannot write {}", path.display());
        // The target of a link is replaced, and not the link.
        let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let out = if fs::metadata(path).is_ok_and(|existing| !existing.is_file()) {
            Out::Special(BufWriter::new(File::create(path).with_context(failure)?))
        } else {
            let folder = path.parent().filter(|path| !path.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new("."));
            if !folder.is_dir() {
                let folder = folder.display();
                return Err(UsageError(format!("the folder {folder} does not exist")).into());
            }
            let file = NamedTempFile::new_in(folder).with_context(failure)?;
            Out::Temporary(BufWriter::new(file))
        };
        let path = path.to_owned();
        Ok(Self { path, out })
    }

    /// Writes the records of an organization. Returns their number.
    ///
    /// # Errors
    /// If the file cannot be written, or DynamoDB cannot be reached.
    pub(crate) async fn write(
        self,
        deployment: &Deployment,
        org: &str,
        reads: Reads,
    ) -> Result<(usize, Self)> {
        let path = self.path;
        let (count, out) = match self.out {
            Out::Temporary(out) => {
                let (count, out) = write(deployment, org, reads, out).await?;
                (count, Out::Temporary(out))
            }
            Out::Special(out) => {
                let (count, out) = write(deployment, org, reads, out).await?;
                (count, Out::Special(out))
            }
        };
        Ok((count, Self { path, out }))
    }

    /// Puts the file in its place, where it replaces an older one.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn finish(self) -> Result<()> {
        let failure = || format!("cannot write {}", self.path.display());
        let Out::Temporary(out) = self.out else {
            return Ok(());
        };
        let flushed = out.into_inner().map_err(io::IntoInnerError::into_error);
        let file = flushed.with_context(failure)?;
        file.as_file().sync_all().with_context(failure)?;
        let persisted = file.persist(&self.path).map_err(|error| error.error);
        persisted.with_context(failure)?;
        Ok(())
    }
}

/// Writes the records of one request after the other, so that memory does not grow with their number.
/// Returns the number of records.
async fn write<W: Write>(
    deployment: &Deployment,
    org: &str,
    reads: Reads,
    mut out: W,
) -> Result<(usize, W)> {
    let mut counter = Counter::new("records exported");
    // Organizations come first, and teams before members, in the order in which to restore them.
    for table in Table::ALL {
        let scope = match (reads, *table) {
            (Reads::Indexed, Table::TEAMS | Table::TEAM_MEMBERS) => {
                let partitions = partitions_of(deployment, *table, org, None).await?;
                Scope::Partitions(table.primary_key[0], partitions)
            }
            _ => Scope::organization(*table, org),
        };
        let mut query = Query::new(*table, scope);
        while let Some(items) = query.next(deployment).await? {
            counter.add(items.len());
            for mut item in items {
                // Nothing can be restored to an organization that is being erased.
                for name in ["secret_sha256", "erasing_id", "erasing_at", "erasing_by"] {
                    item.remove(name);
                }
                let line = json!({ "table": table.noun, "record": to_json(item) });
                writeln!(out, "{}", escape_json(&line.to_string()))
                    .context("cannot write the export")?;
            }
        }
    }
    out.flush().context("cannot write the export")?;
    Ok((counter.finish(), out))
}
