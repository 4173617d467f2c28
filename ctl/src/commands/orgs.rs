//! `orgs`: the registered organizations. The API has no operation for them.

use std::time::SystemTime;

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::types::AttributeValue;
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
  workspacectl orgs list --json
  workspacectl --stack workspace-management orgs create globex";

/// Registers and lists organizations.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Register an organization. If it is already registered, nothing changes
    Create {
        /// The id, as in the paths of the API: 1 to 128 of A-Z a-z 0-9 . _ ~ : @ -, not `.` or `..`
        #[arg(value_parser = organization_id)]
        org: String,
    },
    /// List the registered organizations
    List,
}

/// Runs a command.
///
/// # Errors
/// If DynamoDB cannot be reached.
pub(crate) async fn run(command: Command, deployment: &Deployment, json: bool) -> Result<()> {
    match command {
        Command::Create { org } => {
            create(deployment, &org).await?;
            eprintln!("the organization {org} is registered");
            print_record(&json!({ "org_id": org }), &org, json)
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

/// Registers an organization. If it is already registered, its audit attributes do not change.
async fn create(deployment: &Deployment, org: &str) -> Result<()> {
    let table = Table::ORGANIZATIONS;
    deployment
        .client
        .update_item()
        .table_name(deployment.tables.name(table))
        .key(table.key[0], AttributeValue::S(org.to_owned()))
        .update_expression(
            "SET created_at = if_not_exists(created_at, :at), created_by = if_not_exists(created_by, :by), \
             request_id = if_not_exists(request_id, :by)",
        )
        .expression_attribute_values(":at", AttributeValue::S(timestamp(SystemTime::now())))
        .expression_attribute_values(":by", AttributeValue::S("workspacectl".to_owned()))
        .send()
        .await
        .with_context(|| format!("cannot register {org}"))?;
    Ok(())
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
