//! `keys revoke`.

use anyhow::Result;

use super::{arguments::KeyArgument, record};
use crate::{deployment::Deployment, output::print_record};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl keys revoke 0fzzzxjylrx3
  workspacectl keys revoke - < leaked-key.txt";

/// Revokes a key.
///
/// # Errors
/// If the argument is invalid, there is no such key, or DynamoDB cannot be reached.
pub(crate) async fn run(key: &KeyArgument, deployment: &Deployment, json: bool) -> Result<()> {
    let id = key.id()?;
    let key = record::revoke(deployment, &id).await?;
    eprintln!(
        "the key {id} is revoked: functions that cache it accept it for up to KeyCacheSeconds"
    );
    print_record(&record::to_display(key), &id, json)
}
