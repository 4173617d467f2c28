//! The record of an organization and its state.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use workspace_management::store::Table;
use workspace_records::item::string_attribute;

use crate::{deployment::Deployment, read};

/// A registered organization.
#[derive(Debug, Clone)]
pub struct Organization {
    /// The record as JSON.
    pub record: Value,
}

/// Whether requests for an organization are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrgState {
    /// Requests are accepted.
    Enabled,
    /// Requests are rejected until the organization is enabled again.
    Disabled,
    /// Requests are rejected. `orgs erase` has marked it, so it cannot be enabled again.
    BeingErased,
}

impl OrgState {
    /// The state as commands print it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::Disabled => "disabled",
            Self::BeingErased => "being erased",
        }
    }
}

impl Organization {
    /// Reads an organization. `None` if it is not registered.
    pub async fn find(deployment: &Deployment, org: &str) -> Result<Option<Self>> {
        let record = read::find(deployment, Table::ORGANIZATIONS, &[org]).await?;
        Ok(record.map(|record| Self { record }))
    }

    /// Reads an organization. Fails if it is not registered.
    pub async fn require(deployment: &Deployment, org: &str) -> Result<Self> {
        let organization = Self::find(deployment, org).await?;
        organization.with_context(|| {
            format!("there is no organization {org}: see `workspacectl orgs list`")
        })
    }

    /// The state, derived from `erasing_id` and `disabled_at`.
    pub fn state(&self) -> OrgState {
        if self.record.get("erasing_id").is_some() {
            OrgState::BeingErased
        } else if self.record.get("disabled_at").is_some() {
            OrgState::Disabled
        } else {
            OrgState::Enabled
        }
    }

    /// The id of the registration: the `request_id`. Keys store it as `org_request_id`.
    pub fn registration_id(&self) -> Option<&str> {
        self.record["request_id"].as_str()
    }

    /// The record and its state, for output.
    pub(crate) fn into_output(mut self) -> Value {
        self.record["state"] = json!(self.state().as_str());
        self.record
    }
}

/// The distinct ids of the organizations to which these records belong, sorted.
pub(crate) fn org_ids<'a>(records: impl IntoIterator<Item = &'a Value>) -> BTreeSet<&'a str> {
    let records = records.into_iter();
    records
        .map(|record| string_attribute(record, "org_id"))
        .collect()
}
