//! The records of organizations.

use std::time::SystemTime;

use anyhow::{Context as _, Result, anyhow};
use serde_json::{Value, json};
use workspace_management::store::{Table, timestamp};

use crate::{
    deployment::Deployment,
    records::{self, has},
    session::Operator,
    write::{Values, put, transact},
};

/// The record of an organization, or `None` if it is not registered.
///
/// # Errors
/// If DynamoDB cannot be reached.
pub async fn get(deployment: &Deployment, org: &str) -> Result<Option<Value>> {
    records::get(deployment, Table::ORGANIZATIONS, &[org]).await
}

/// The record of an organization.
///
/// # Errors
/// If it is not registered, or DynamoDB cannot be reached.
pub async fn find(deployment: &Deployment, org: &str) -> Result<Value> {
    get(deployment, org).await?.ok_or_else(|| no_such(org))
}

/// Stores the record of an organization, with these attributes in addition to its creation. Returns
/// false if it has one already: two callers who choose the same id must not share an organization.
pub(crate) async fn create(
    deployment: &Deployment,
    operator: &Operator,
    org: &str,
    attributes: Values<'_>,
) -> Result<bool> {
    let mut record = json!({
        "org_id": org, "created_at": timestamp(SystemTime::now()),
        "created_by": operator.name, "request_id": operator.run_id,
    });
    for (name, value) in attributes {
        record[*name] = json!(value);
    }
    let action = put(deployment, Table::ORGANIZATIONS, &record)?;
    let failed = transact(deployment, vec![action]).await;
    let failed = failed.with_context(|| format!("cannot register {org}"))?;
    Ok(failed.is_empty())
}

pub(crate) fn no_such(org: &str) -> anyhow::Error {
    anyhow!("there is no organization {org}: run `workspacectl orgs list` to see the existing ones")
}

/// What an organization accepts: it is enabled, disabled, or being erased.
pub fn state(organization: &Value) -> &'static str {
    if has(organization, "erasing_id") {
        "being erased"
    } else if has(organization, "disabled_at") {
        "disabled"
    } else {
        "enabled"
    }
}

/// Adds the state to a record that is printed.
pub(crate) fn add_state(organization: &mut Value) {
    organization["state"] = json!(state(organization));
}
