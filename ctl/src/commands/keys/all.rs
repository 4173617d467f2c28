//! What `keys revoke --all` and `keys rotate --all` have in common.

use anyhow::Result;

use super::record;
use crate::{commands::orgs, confirmation::Confirmation, deployment::Deployment};

/// Asks for confirmation before all keys of an organization change.
///
/// # Errors
/// If there is no such organization, it is not confirmed, or DynamoDB cannot be reached.
pub(crate) async fn confirm(
    deployment: &Deployment,
    org: &str,
    confirmation: Confirmation,
    change: &str,
) -> Result<()> {
    orgs::record::find(deployment, org).await?;
    let count = record::active_of(deployment, org).await?.len();
    confirmation.ask(&format!("{count} keys of {org} will be {change}."), org)
}
