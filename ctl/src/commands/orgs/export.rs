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
    progress::Counter,
    query::{Query, Scope},
    records::to_json,
    session::Session,
    usage::identifier,
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
    /// The file to write. It is replaced when the export is complete [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Exports an organization.
///
/// # Errors
/// If there is no such organization, the file cannot be written, or DynamoDB cannot be reached.
pub(crate) async fn run(options: Options, session: &Session) -> Result<()> {
    let Options { org, out } = options;
    let deployment = session.deployment().await?;
    record::find(deployment, &org).await?;
    let count = match out {
        Some(file) => to_file(deployment, &org, &file).await?,
        None => {
            write(deployment, &org, BufWriter::new(io::stdout()))
                .await?
                .0
        }
    };
    eprintln!("{count} records of {org} were exported");
    Ok(())
}

/// Exports to a file, which is complete or does not change. Returns the number of records. What is
/// not a file, such as a pipe, is written and not replaced.
///
/// # Errors
/// If the file cannot be written, or DynamoDB cannot be reached.
pub(crate) async fn to_file(deployment: &Deployment, org: &str, file: &Path) -> Result<usize> {
    let failure = || format!("cannot write {}", file.display());
    if fs::metadata(file).is_ok_and(|existing| !existing.is_file()) {
        let out = File::create(file).with_context(failure)?;
        return Ok(write(deployment, org, BufWriter::new(out)).await?.0);
    }
    let folder = file.parent().filter(|path| !path.as_os_str().is_empty());
    let new = NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).with_context(failure)?;
    let (count, new) = write(deployment, org, BufWriter::new(new)).await?;
    let new = new.into_inner().map_err(io::IntoInnerError::into_error);
    let new = new.with_context(failure)?;
    new.as_file().sync_all().with_context(failure)?;
    new.persist(file).with_context(failure)?;
    Ok(count)
}

/// Writes the records of one request after the other, so that memory does not grow with their number.
/// Returns the number of records.
async fn write<W: Write>(deployment: &Deployment, org: &str, mut out: W) -> Result<(usize, W)> {
    let mut counter = Counter::new("records exported");
    // Organizations come first, and teams before members, in the order in which to restore them.
    for table in Table::ALL {
        let mut query = Query::new(*table, Scope::organization(*table, org));
        while let Some(items) = query.next(deployment).await? {
            counter.add(items.len());
            for mut item in items {
                item.remove("secret_sha256");
                let line = json!({ "table": table.name, "record": to_json(item) });
                writeln!(out, "{line}").context("cannot write the export")?;
            }
        }
    }
    out.flush().context("cannot write the export")?;
    Ok((counter.finish(), out))
}
