//! The records of organizations.

use anyhow::{Result, anyhow};
use serde_json::{Value, json};
use workspace_management::store::Table;

use crate::{deployment::Deployment, records};

/// The record of an organization, or `None` if it is not registered.
///
/// # Errors
/// If DynamoDB cannot be reached.
pub(crate) async fn get(deployment: &Deployment, org: &str) -> Result<Option<Value>> {
    records::get(deployment, Table::ORGANIZATIONS, &[org]).await
}

/// The record of an organization.
///
/// # Errors
/// If it is not registered, or DynamoDB cannot be reached.
pub(crate) async fn find(deployment: &Deployment, org: &str) -> Result<Value> {
    get(deployment, org).await?.ok_or_else(|| no_such(org))
}

pub(crate) fn no_such(org: &str) -> anyhow::Error {
    anyhow!("there is no organization {org}: run `workspacectl orgs list` to see the existing ones")
}

/// What an organization accepts: it is enabled, disabled, or being erased.
pub(crate) fn state(organization: &Value) -> &'static str {
    if !organization["erasing_id"].is_null() {
        "being erased"
    } else if !organization["disabled_at"].is_null() {
        "disabled"
    } else {
        "enabled"
    }
}

/// Adds the state to a record that is printed.
pub(crate) fn add_state(organization: &mut Value) {
    organization["state"] = json!(state(organization));
}
