//! What `keys revoke --all` and `keys rotate --all` have in common.

use anyhow::{Result, bail};
use serde_json::Value;

use super::record;
use crate::{commands::orgs, confirmation::Confirmation, deployment::Deployment, output::counted};

/// How often all keys are read after the confirmation.
const MAX_PASSES: u32 = 6;

/// Asks for confirmation, and changes the keys of an organization that are selected. Repeats this
/// until none is selected: keys can be created meanwhile, also while the operator confirms.
pub(crate) async fn change(
    deployment: &Deployment,
    org: &str,
    (confirmation, changed): (Confirmation, &str),
    is_selected: impl Fn(&Value) -> bool,
    mut change: impl AsyncFnMut(Value) -> Result<()>,
) -> Result<()> {
    orgs::record::find(deployment, org).await?;
    for pass in 0..=MAX_PASSES {
        let mut keys = record::of(deployment, org).await?;
        keys.retain(&is_selected);
        if pass == 0 {
            let question = format!("{} of {org} will be {changed}.", counted(keys.len(), "key"));
            confirmation.ask(&question, org)?;
        } else if keys.is_empty() {
            return Ok(());
        } else {
            for key in keys {
                change(key).await?;
            }
        }
    }
    bail!(
        "keys of {org} keep being created: run `workspacectl orgs disable {org}`, and then this command again"
    )
}
