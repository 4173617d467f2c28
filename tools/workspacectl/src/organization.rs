//! Reads organizations, and prepares them for output.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use workspace_management::records::{Organization, OrganizationState};
use workspace_records::kinds::PrimaryKey;

use crate::{deployment::Deployment, read, record::Stored};

/// The primary key of an organization.
pub(crate) fn key(org: &str) -> PrimaryKey {
    let org = org.to_owned();
    PrimaryKey::Organization { org }
}

/// Reads an organization. `None` if it is not registered. Fails if its record is malformed.
pub async fn find(deployment: &Deployment, org: &str) -> Result<Option<Stored<Organization>>> {
    let record = read::find(deployment, &key(org)).await?;
    record.map(|record| record.parse()).transpose()
}

/// Reads an organization. Fails if it is not registered.
pub async fn require(deployment: &Deployment, org: &str) -> Result<Stored<Organization>> {
    let organization = find(deployment, org).await?;
    organization
        .with_context(|| format!("there is no organization {org}: see `workspacectl orgs list`"))
}

/// The state of an organization as commands print it.
pub(crate) fn state_name(state: OrganizationState) -> &'static str {
    match state {
        OrganizationState::Enabled => "enabled",
        OrganizationState::Disabled => "disabled",
        OrganizationState::BeingErased => "being erased",
    }
}

/// The record of an organization and its state, for output.
pub(crate) fn to_output(organization: &Stored<Organization>) -> Value {
    let mut output = organization.record.to_json();
    output["state"] = json!(state_name(organization.fields.state()));
    output
}
