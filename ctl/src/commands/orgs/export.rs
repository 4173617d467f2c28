//! `orgs export`: all records of an organization as JSON Lines, one `{"table", "record"}` per line.
//! The records of keys have no digests, so a key cannot be restored from an export.

use std::{
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use workspace_management::store::Table;

use super::record;
use crate::{
    deployment::Deployment,
    export::{CompleteExport, line},
    index::partitions_of,
    output::counted,
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

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[arg(value_parser = identifier, help = super::ORG_HELP)]
    org: String,
    /// The new file to write, or `-`. Until it is complete, it is FILE.partial [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) async fn run(options: Options, session: &Session) -> Result<()> {
    let Options { org, out } = options;
    let file = out.filter(|file| file != Path::new("-"));
    let export = file.as_deref().map(CompleteExport::create).transpose()?;
    let deployment = session.deployment().await?;
    record::find(deployment, &org).await?;
    let count = match export {
        Some(mut export) => {
            let count = write(deployment, &org, Reads::Indexed, &mut export.out).await?;
            export.finish()?;
            count
        }
        None => {
            let mut out = BufWriter::new(io::stdout());
            write(deployment, &org, Reads::Indexed, &mut out).await?
        }
    };
    eprintln!("exported {} of {org}", counted(count, "record"));
    Ok(())
}

/// How an export finds teams and members.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reads {
    /// In the index, which can lack a team that was just created.
    Indexed,
    /// By reading the whole tables, because nothing may be missing before an erasure.
    Complete,
}

/// Writes the records of one request after the other, so that memory does not grow with their number.
/// Returns the number of records.
pub(super) async fn write(
    deployment: &Deployment,
    org: &str,
    reads: Reads,
    out: &mut impl Write,
) -> Result<usize> {
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
            for item in items {
                writeln!(out, "{}", line(*table, to_json(item)))
                    .context("cannot write the export")?;
            }
        }
    }
    out.flush().context("cannot write the export")?;
    Ok(counter.finish())
}
