//! `orgs export`: all records of an organization. The records of keys have no digests, so a key cannot
//! be restored from an export.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::organization::Organization;
use crate::{
    export::Export, index::queries_of, session::Session, text::counted, usage::identifier,
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
    let count = export.write_all(deployment, queries).await?;
    export.finish()?;
    eprintln!("exported {} of {org}", counted(count, "record"));
    Ok(())
}
