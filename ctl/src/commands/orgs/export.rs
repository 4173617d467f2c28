//! `orgs export`: all records of an organization. The records of keys have no digests, so a key cannot
//! be restored from an export.

use std::path::{Path, PathBuf};

use anyhow::Result;
use workspace_records::item::to_json;

use super::organization::Organization;
use crate::{
    deployment::Deployment, export::Export, index::queries_of, query::Query, session::Session,
    text::counted, usage::identifier,
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
    let mut export = match out.filter(|file| file != Path::new("-")) {
        Some(file) => Export::create_partial(&file)?,
        None => Export::to_stdout(),
    };
    let deployment = session.deployment().await?;
    Organization::find(deployment, &org).await?;
    let queries = queries_of(deployment, &org).await?;
    let count = write_all(deployment, queries, &mut export).await?;
    export.finish()?;
    eprintln!("exported {} of {org}", counted(count, "record"));
    Ok(())
}

/// Writes what queries find, one request after the other, so that memory does not grow with the number of
/// records. Returns that number.
pub(super) async fn write_all(
    deployment: &Deployment,
    queries: Vec<Query>,
    export: &mut Export,
) -> Result<usize> {
    let mut count = 0;
    for mut query in queries {
        while let Some(items) = query.next(deployment).await? {
            count += items.len();
            for item in items {
                export.write(query.table(), to_json(item))?;
            }
        }
    }
    Ok(count)
}
