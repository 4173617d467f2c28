//! Reads organizations, and prepares them for output.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use workspace_management::{
    records::{Organization, OrganizationState},
    values::DisplayName,
};
use workspace_records::kinds::PrimaryKey;

use crate::{
    arguments::parse_as_api,
    deployment::Deployment,
    read,
    record::{Record, Stored},
};

/// The options that describe an organization to people.
#[derive(Debug, clap::Args)]
pub(crate) struct NameArgs {
    /// The name of the customer, such as "Globex Inc": at most 100 characters. Empty for none
    #[arg(long, value_parser = parse_name)]
    name: Option<String>,
    /// The customer's id in a different system, such as CRM-42: at most 100 characters. Empty for none
    #[arg(long, value_name = "ID", value_parser = parse_name)]
    reference: Option<String>,
}

fn parse_name(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Ok(String::new());
    }
    parse_as_api(text, DisplayName::parse).map(DisplayName::into_string)
}

impl NameArgs {
    /// The given attributes, with their values.
    pub(crate) fn into_attributes(self) -> Vec<(&'static str, String)> {
        let attributes = [("name", self.name), ("reference", self.reference)];
        let given = attributes.into_iter();
        given
            .filter_map(|(name, text)| Some((name, text?)))
            .collect()
    }
}

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

/// The id of an organization and, if there is one, its name, such as `globex (Globex Inc)`.
pub(crate) fn id_and_name(organization: &Record) -> String {
    let id = organization.key.id();
    match organization.text("name") {
        Some(name) => format!("{id} ({name})"),
        None => id,
    }
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
