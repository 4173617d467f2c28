//! `orgs`: the registered organizations. The API has no operation for them.

use std::time::SystemTime;

use anyhow::{Context as _, Result, bail};
use aws_sdk_dynamodb::{
    operation::put_item::PutItemError,
    types::{AttributeValue, ReturnValuesOnConditionCheckFailure},
};
use serde_json::json;
use workspace_management::{
    store::{Table, timestamp},
    values::Identifier,
};

use crate::{
    deployment::Deployment,
    output::{print_record, print_records},
    query::all_records,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl orgs create globex
  workspacectl orgs create globex --if-absent --json
  workspacectl orgs list --json
  workspacectl --stack workspace-management orgs create globex";

/// Registers and lists organizations.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Register an organization
    Create {
        /// The id, as in the paths of the API: 1 to 128 of A-Z a-z 0-9 . _ ~ : @ -, not `.` or `..`
        #[arg(value_parser = organization_id)]
        org: String,
        /// Succeed if it is already registered. Its record does not change
        #[arg(long)]
        if_absent: bool,
    },
    /// List the registered organizations
    List,
}

/// Runs a command.
///
/// # Errors
/// If the organization is already registered, or DynamoDB cannot be reached.
pub(crate) async fn run(command: Command, deployment: &Deployment, json: bool) -> Result<()> {
    match command {
        Command::Create { org, if_absent } => {
            let created = create(deployment, &org).await?;
            match (created, if_absent) {
                (true, _) => eprintln!("the organization {org} was registered"),
                (false, true) => eprintln!("the organization {org} was already registered"),
                (false, false) => bail!(
                    "the organization {org} is already registered: choose another id, or use --if-absent"
                ),
            }
            print_record(&json!({ "org_id": org, "created": created }), &org, json)
        }
        Command::List => {
            let organizations = all_records(deployment, Table::ORGANIZATIONS).await?;
            print_records(
                &organizations,
                &["org_id", "created_at", "created_by"],
                json,
            )
        }
    }
}

/// Checks an id on the command line. The API could not name an organization with an invalid id.
fn organization_id(text: &str) -> Result<String, &'static str> {
    match Identifier::new(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err("use 1 to 128 of A-Z a-z 0-9 . _ ~ : @ -, but not `.` or `..`"),
    }
}

/// Registers an organization. Returns false if it is registered already: two callers who choose the
/// same id must not share an organization.
async fn create(deployment: &Deployment, org: &str) -> Result<bool> {
    let table = Table::ORGANIZATIONS;
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let run = text(&run_id()?);
    let created = deployment
        .client
        .put_item()
        .table_name(deployment.tables.name(table))
        .item(table.key[0], text(org))
        .item("created_at", text(&timestamp(SystemTime::now())))
        .item("created_by", text("workspacectl"))
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

/// A random id, which the records of this run have instead of the id of a request.
///
/// # Errors
/// If the operating system provides no random numbers.
pub(crate) fn run_id() -> Result<String> {
    let id = getrandom::u64().context("the operating system provides no random numbers")?;
    Ok(format!("{id:016x}"))
}

/// Whether an organization is registered.
///
/// # Errors
/// If DynamoDB cannot be reached.
pub(crate) async fn is_registered(deployment: &Deployment, org: &str) -> Result<bool> {
    let table = Table::ORGANIZATIONS;
    let response = deployment
        .client
        .get_item()
        .consistent_read(true)
        .table_name(deployment.tables.name(table))
        .key(table.key[0], AttributeValue::S(org.to_owned()))
        .send()
        .await
        .with_context(|| format!("cannot read the organization {org}"))?;
    Ok(response.item.is_some())
}
