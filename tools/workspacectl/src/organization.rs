//! Reads organizations, and prepares them for output.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use workspace_management::{
    records::{Organization, OrganizationState},
    store::Table,
};
use workspace_records::{item::string_attribute, stored::Stored};

use crate::{deployment::Deployment, read};

/// Reads an organization. `None` if it is not registered. Fails if its record is malformed.
pub async fn find(deployment: &Deployment, org: &str) -> Result<Option<Stored<Organization>>> {
    let record = read::find(deployment, Table::ORGANIZATIONS, &[org]).await?;
    record.map(parse).transpose()
}

/// Reads an organization. Fails if it is not registered.
pub async fn require(deployment: &Deployment, org: &str) -> Result<Stored<Organization>> {
    let organization = find(deployment, org).await?;
    organization
        .with_context(|| format!("there is no organization {org}: see `workspacectl orgs list`"))
}

/// Parses the record of an organization.
pub fn parse(record: Value) -> Result<Stored<Organization>> {
    let org = string_attribute(&record, "org_id").to_owned();
    Stored::parse(record)
        .with_context(|| format!("the record of the organization {org} is malformed"))
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
pub(crate) fn into_output(organization: Stored<Organization>) -> Value {
    let mut output = organization.attributes;
    output["state"] = json!(state_name(organization.record.state()));
    output
}

/// The distinct ids of the organizations to which these records belong, sorted.
pub(crate) fn org_ids<'a>(records: impl IntoIterator<Item = &'a Value>) -> BTreeSet<&'a str> {
    let records = records.into_iter();
    records
        .map(|record| string_attribute(record, "org_id"))
        .collect()
}
