//! The records of organizations.

use std::time::SystemTime;

use anyhow::{Context as _, Result, anyhow};
use aws_sdk_dynamodb::{
    operation::put_item::PutItemError, types::ReturnValuesOnConditionCheckFailure,
};
use serde_json::{Value, json};
use workspace_management::store::{Table, timestamp};

use crate::{
    deployment::Deployment,
    records::{self, has},
    session::Operator,
    write::{Values, text},
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
///
/// # Errors
/// If DynamoDB cannot be reached.
pub(crate) async fn create(
    deployment: &Deployment,
    operator: &Operator,
    org: &str,
    attributes: Values<'_>,
) -> Result<bool> {
    let table = Table::ORGANIZATIONS;
    let run = text(&operator.run_id);
    let mut put = deployment
        .client
        .put_item()
        .table_name(deployment.tables.name(table))
        .item(table.primary_key[0], text(org))
        .item("created_at", text(&timestamp(SystemTime::now())))
        .item("created_by", text(&operator.name))
        .item("request_id", run.clone());
    for (name, value) in attributes {
        put = put.item(*name, text(value));
    }
    let created = put
        .condition_expression("attribute_not_exists(org_id)")
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
        .send()
        .await;
    let Err(error) = created else {
        return Ok(true);
    };
    match error.as_service_error() {
        // If the response to this run's write was lost, the SDK has sent it again.
        Some(PutItemError::ConditionalCheckFailedException(failure)) => {
            let existing = failure.item().and_then(|item| item.get("request_id"));
            Ok(existing == Some(&run))
        }
        _ => Err(error).with_context(|| format!("cannot register {org}")),
    }
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
