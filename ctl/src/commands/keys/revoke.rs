//! `keys revoke`.

use anyhow::Result;

use super::{arguments::key_id, record};
use crate::{deployment::Deployment, output::print_record};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl keys revoke 0fzzzxjylrx3
  workspacectl keys revoke - < leaked-key.txt";

/// The options of `keys revoke`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The key, its id, or `-` to read one of them from standard input
    #[arg(value_name = "KEY|ID|-")]
    key: String,
}

/// Revokes a key.
///
/// # Errors
/// If the argument is invalid, there is no such key, or DynamoDB cannot be reached.
pub(crate) async fn run(options: &Options, deployment: &Deployment, json: bool) -> Result<()> {
    let id = key_id(&options.key)?;
    let key = record::revoke(deployment, &id).await?;
    eprintln!(
        "the key {id} is revoked: functions that cache it accept it for up to KeyCacheSeconds"
    );
    print_record(&record::to_display(key), &id, json)
}
