//! `keys check`.

use anyhow::Result;

use super::{arguments::KeyArgument, record};
use crate::{output::print_records, session::Session};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl keys check 0fzzzxjylrx3
  workspacectl keys check - < keys.txt";

const COLUMNS: [&str; 6] = [
    "key_id",
    "org_id",
    "label",
    "state",
    "expires_at",
    "operations",
];

/// Shows keys. Does not compare their secrets, which the service does.
///
/// # Errors
/// If the argument is invalid, a key does not exist, or DynamoDB cannot be reached.
pub(crate) async fn run(key: &KeyArgument, session: &Session) -> Result<()> {
    let ids = key.ids()?;
    let keys = record::find_all(session.deployment().await?, &ids).await?;
    let keys: Vec<_> = keys.into_iter().map(record::to_display).collect();
    print_records(&keys, &COLUMNS, session.json)
}
