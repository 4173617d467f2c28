//! `keys check`.

use anyhow::Result;

use super::{arguments::KeyArgument, record};
use crate::{output::print_records, session::Session};

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

/// Shows a key. Does not compare its secret, which the service does.
///
/// # Errors
/// If the argument is invalid, there is no such key, or DynamoDB cannot be reached.
pub(crate) async fn run(key: &KeyArgument, session: &Session) -> Result<()> {
    let id = key.id()?;
    let deployment = session.deployment().await?;
    let key = record::to_display(record::find(deployment, &id).await?);
    print_records(&[key], &COLUMNS, session.json)
}
