//! `keys revoke`.

use std::time::SystemTime;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::{
    all,
    arguments::{KeySelection, Selected},
    record,
};
use crate::{
    output::{counted, escape_json, print, print_records},
    records::text_of,
    session::{Operator, Session},
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl keys revoke 0fzzzxjylrx3
  workspacectl keys revoke - < leaked-keys.txt
  workspacectl keys revoke --all --org globex";

pub(crate) async fn run(keys: &KeySelection, session: &Session) -> Result<()> {
    let selected = keys.selected()?;
    let deployment = session.deployment().await?;
    let operator = Operator::of(deployment).await?;
    let mut revoked = Vec::new();
    let mut revoke = async |key: Value| {
        let key = record::revoke(deployment, text_of(&key, "key_id"), &operator).await;
        let key = key.context("not all keys were revoked, run the command again")?;
        revoked.push(record::to_display(key));
        Ok(())
    };
    match &selected {
        Selected::Keys(ids) => {
            for key in record::find_all(deployment, ids).await? {
                revoke(key).await?;
            }
        }
        Selected::AllOf(org) => {
            // The local clock may be wrong, so keys that seem to be expired are revoked too.
            let is_selected = |key: &Value| !key["revoked_at"].is_string();
            let confirmation = (keys.confirmation, "revoked");
            all::change(deployment, org, confirmation, is_selected, revoke).await?;
        }
    }
    let until = record::accepted_until(SystemTime::now());
    eprintln!("revoked {}{until}", counted(revoked.len(), "key"));
    if let Selected::AllOf(_) = selected {
        let columns = ["key_id", "label", "state", "revoked_at"];
        return print_records(&revoked, &columns, session);
    }
    for key in revoked {
        match session.json {
            true => print(&escape_json(&key.to_string()))?,
            false => print(text_of(&key, "key_id"))?,
        }
    }
    Ok(())
}
