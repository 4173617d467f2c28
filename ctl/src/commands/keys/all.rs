//! What `keys revoke --all` and `keys rotate --all` have in common.

use anyhow::Result;
use serde_json::Value;

use super::record;
use crate::{commands::orgs, confirmation::Confirmation, deployment::Deployment};

/// Asks for confirmation before all active keys of an organization change, and returns them.
///
/// # Errors
/// If there is no such organization, it is not confirmed, or DynamoDB cannot be reached.
pub(crate) async fn confirm(
    deployment: &Deployment,
    org: &str,
    confirmation: Confirmation,
    change: &str,
) -> Result<Vec<Value>> {
    orgs::record::find(deployment, org).await?;
    let keys = record::active_of(deployment, org).await?;
    let question = format!("{} keys of {org} will be {change}.", keys.len());
    confirmation.ask(&question, org)?;
    Ok(keys)
}
