//! `orgs`: who is registered. The interface has no operation for it.

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::json;
use workspace_management::{caller::now, store::Table, values::Identifier};

use crate::{
    deployment::Deployment,
    output::{print_record, print_records},
    query::items,
};

/// Registers an organization or lists those that are.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Register an organization; one that is registered already stays as it is
    Create {
        /// Its id, as it stands in the paths: 1 to 128 of A-Z a-z 0-9 . _ ~ : @ -
        org: String,
    },
    /// List the registered organizations
    List,
}

/// Carries out a command.
///
/// # Errors
/// If the id is malformed or DynamoDB cannot be reached.
pub(crate) async fn run(command: Command, deployment: &Deployment, json: bool) -> Result<()> {
    match command {
        Command::Create { org } => {
            register(deployment, &org).await?;
            eprintln!("{org} is registered");
            print_record(&json!({ "org_id": org }), &org, json)
        }
        Command::List => {
            let organizations = items(deployment, Table::ORGANIZATIONS, None, None).await?;
            print_records(
                &organizations,
                &["org_id", "created_at", "created_by"],
                json,
            )
        }
    }
}

/// Registers an organization if it is not registered yet.
///
/// # Errors
/// If the id is malformed or DynamoDB cannot be reached.
pub(crate) async fn register(deployment: &Deployment, org: &str) -> Result<()> {
    Identifier::parse("org_id", org).map_err(|_| {
        anyhow::anyhow!(
            "{org:?} is no organization id: it must be 1 to 128 of A-Z a-z 0-9 . _ ~ : @ -"
        )
    })?;
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
        .expression_attribute_values(":at", AttributeValue::S(now()))
        .expression_attribute_values(":by", AttributeValue::S("workspacectl".to_owned()))
        .send()
        .await
        .with_context(|| format!("{org} cannot be registered"))?;
    Ok(())
}

/// Whether an organization is registered.
///
/// # Errors
/// If DynamoDB cannot be reached.
pub(crate) async fn is_registered(deployment: &Deployment, org: &str) -> Result<bool> {
    let table = Table::ORGANIZATIONS;
    let found = deployment
        .client
        .get_item()
        .consistent_read(true)
        .table_name(deployment.tables.name(table))
        .key(table.key[0], AttributeValue::S(org.to_owned()))
        .send()
        .await
        .with_context(|| format!("the organization {org} cannot be read"))?;
    Ok(found.item.is_some())
}
