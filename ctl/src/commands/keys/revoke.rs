//! `keys revoke`.

use anyhow::{Result, bail};

use super::{
    all,
    arguments::{KeySelection, Selected},
    record,
};
use crate::{
    output::{print_record, print_records},
    records::text_of,
    session::{Operator, Session},
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl keys revoke 0fzzzxjylrx3
  workspacectl keys revoke - < leaked-key.txt
  workspacectl keys revoke --all --org globex";

/// How often all keys are read.
const MAX_PASSES: u32 = 5;

/// Revokes a key, or all keys of an organization.
///
/// # Errors
/// If the arguments are invalid, there is no such key or organization, or DynamoDB cannot be
/// reached.
pub(crate) async fn run(keys: &KeySelection, session: &Session) -> Result<()> {
    let selected = keys.selected()?;
    let deployment = session.deployment().await?;
    let operator = Operator::of(deployment).await?;
    let org = match selected {
        Selected::Key(id) => {
            let key = record::revoke(deployment, &id, &operator).await?;
            eprintln!(
                "the key {id} is revoked: functions that cache it accept it for up to KeyCacheSeconds"
            );
            return print_record(&record::to_display(key), &id, session.json);
        }
        Selected::AllOf(org) => org,
    };
    let mut found = all::confirm(deployment, org, keys.confirmation, "revoked").await?;
    let mut revoked = Vec::new();
    for pass in 0.. {
        if found.is_empty() {
            break;
        }
        if pass == MAX_PASSES {
            bail!(
                "keys of {org} keep being created: run `workspacectl orgs disable {org}`, and then this command again"
            );
        }
        for key in found {
            let key = record::revoke(deployment, text_of(&key, "key_id"), &operator).await?;
            revoked.push(record::to_display(key));
        }
        // Another pass finds the keys that were created meanwhile.
        found = record::active_of(deployment, org).await?;
    }
    eprintln!(
        "{} keys of {org} are revoked: functions that cache them accept them for up to KeyCacheSeconds",
        revoked.len()
    );
    print_records(
        &revoked,
        &["key_id", "label", "state", "revoked_at"],
        session.json,
    )
}
