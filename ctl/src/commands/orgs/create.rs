//! `orgs create`.

use std::time::SystemTime;

use anyhow::{Context as _, Result, bail};
use aws_sdk_dynamodb::{
    operation::put_item::PutItemError, types::ReturnValuesOnConditionCheckFailure,
};
use serde_json::json;
use workspace_management::store::{Table, timestamp};

use super::record;
use crate::{
    deployment::Deployment,
    output::print_record,
    session::{Operator, Session},
    usage::identifier,
    write::text,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl orgs create globex
  workspacectl orgs create globex --if-absent --json
  workspacectl --stack workspace-management orgs create globex";

/// The options of `orgs create`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The id, as in the paths of the API: 1 to 128 of A-Z a-z 0-9 . _ ~ : @ -, not `.` or `..`
    #[arg(value_parser = identifier)]
    org: String,
    /// Succeed if it is already registered. Its record does not change
    #[arg(long)]
    if_absent: bool,
}

/// Registers an organization.
///
/// # Errors
/// If it is already registered, or DynamoDB cannot be reached.
pub(crate) async fn run(options: Options, session: &Session) -> Result<()> {
    let Options { org, if_absent } = options;
    let deployment = session.deployment().await?;
    let operator = Operator::of(deployment).await?;
    let created = create(deployment, &org, &operator).await?;
    match (created, if_absent) {
        (true, _) => eprintln!("the organization {org} was registered"),
        (false, true) => eprintln!("the organization {org} was already registered"),
        (false, false) => bail!(
            "the organization {org} is already registered: choose another id, or use --if-absent"
        ),
    }
    let mut organization = record::find(deployment, &org).await?;
    record::add_state(&mut organization);
    organization["created"] = json!(created);
    print_record(&organization, &org, session.json)
}

/// Registers an organization. Returns false if it is registered already: two callers who choose the
/// same id must not share an organization.
async fn create(deployment: &Deployment, org: &str, operator: &Operator) -> Result<bool> {
    let table = Table::ORGANIZATIONS;
    let run = text(&operator.run_id);
    let created = deployment
        .client
        .put_item()
        .table_name(deployment.tables.name(table))
        .item(table.key[0], text(org))
        .item("created_at", text(&timestamp(SystemTime::now())))
        .item("created_by", text(&operator.name))
        .item("request_id", run.clone())
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
