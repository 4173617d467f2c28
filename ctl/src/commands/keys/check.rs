//! `keys check`.

use anyhow::Result;

use super::{arguments::key_id, record};
use crate::{deployment::Deployment, output::print_records};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl keys check 0fzzzxjylrx3
  workspacectl keys check - < key.txt";

const COLUMNS: [&str; 6] = [
    "key_id",
    "org_id",
    "label",
    "state",
    "expires_at",
    "operations",
];

/// The options of `keys check`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The key, its id, or `-` to read one of them from standard input
    #[arg(value_name = "KEY|ID|-")]
    key: String,
}

/// Shows a key. Does not compare its secret, which the service does.
///
/// # Errors
/// If the argument is invalid, there is no such key, or DynamoDB cannot be reached.
pub(crate) async fn run(options: &Options, deployment: &Deployment, json: bool) -> Result<()> {
    let id = key_id(&options.key)?;
    let key = record::to_display(record::get(deployment, &id).await?);
    print_records(&[key], &COLUMNS, json)
}
