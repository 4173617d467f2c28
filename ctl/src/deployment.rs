//! A deployment: the names of its tables, and how to reach them and the API.

use std::env;

use anyhow::{Context as _, Result, bail};
use aws_config::BehaviorVersion;
use aws_sdk_dynamodb::Client;
use workspace_local::tables::{sdk_config, table_names};
use workspace_management::store::{Table, TableNames};

use crate::{client::client, usage::UsageError};

/// The default address of DynamoDB with `serve`.
pub(crate) const LOCAL_ENDPOINT: &str = "http://127.0.0.1:8000";

/// The default address of the API with `serve`.
const LOCAL_API: &str = "http://127.0.0.1:3000";

/// A deployment.
pub struct Deployment {
    /// A client for its DynamoDB.
    pub client: Client,
    /// The names of its tables.
    pub(crate) tables: TableNames,
    /// What error messages call it.
    pub(crate) name: String,
    /// The address of its DynamoDB if it is the local service.
    pub(crate) local_endpoint: Option<String>,
    /// AWS's identity service, if the tables are on AWS.
    pub(crate) sts: Option<aws_sdk_sts::Client>,
    api: Api,
}

/// How to find the URL of a deployment's API.
enum Api {
    /// At the address in an output of this stack.
    Stack(Box<aws_sdk_cloudformation::Client>, String),
    /// At the default address of `serve`.
    Local,
    Unknown,
}

impl Deployment {
    /// Finds the deployment to work on: the given stack; or the tables that the function's
    /// environment variables name; or the local service.
    ///
    /// # Errors
    /// If there is no region or no such stack, or if only some of the environment variables are
    /// set.
    pub(crate) async fn find(stack: Option<&str>) -> Result<Self> {
        let endpoint = endpoint()?;
        if let Some(stack) = stack {
            check_endpoints()?;
            let config = aws_config().await?;
            let cloudformation = aws_sdk_cloudformation::Client::new(&config);
            return Ok(Self {
                client: client(aws_sdk_dynamodb::config::Builder::from(&config)),
                tables: stack_tables(&cloudformation, stack).await?,
                name: format!("stack {stack}"),
                local_endpoint: None,
                sts: Some(aws_sdk_sts::Client::new(&config)),
                api: Api::Stack(Box::new(cloudformation), stack.to_owned()),
            });
        }
        if Table::ALL
            .iter()
            .any(|table| variable(table.variable).is_some())
        {
            let config = aws_config().await?;
            return Ok(Self {
                client: client(aws_sdk_dynamodb::config::Builder::from(&config)),
                tables: TableNames::new(|table| {
                    let name = variable(table.variable);
                    name.with_context(|| format!("{} is not set", table.variable))
                })?,
                name: "tables from the environment variables".to_owned(),
                local_endpoint: None,
                sts: endpoint
                    .is_none()
                    .then(|| aws_sdk_sts::Client::new(&config)),
                api: Api::Unknown,
            });
        }
        Ok(Self::local(endpoint.as_deref().unwrap_or(LOCAL_ENDPOINT)))
    }

    /// The local service, with its DynamoDB at the given address.
    pub fn local(endpoint: &str) -> Self {
        Self {
            client: client(sdk_config(endpoint)),
            tables: table_names(),
            name: format!("local DynamoDB at {endpoint}"),
            local_endpoint: Some(endpoint.to_owned()),
            sts: None,
            api: Api::Local,
        }
    }

    /// Whether the tables are on AWS and should therefore have backups and deletion protection.
    pub(crate) fn is_on_aws(&self) -> bool {
        self.sts.is_some()
    }

    /// The address of the API, or `None` if it is unknown.
    ///
    /// # Errors
    /// If the stack cannot be read.
    pub(crate) async fn api_url(&self) -> Result<Option<String>> {
        match &self.api {
            Api::Unknown => Ok(None),
            Api::Local => Ok(Some(LOCAL_API.to_owned())),
            Api::Stack(client, stack) => {
                let response = client.describe_stacks().stack_name(stack).send().await;
                let response =
                    response.with_context(|| format!("cannot read the stack {stack}"))?;
                let mut outputs = response
                    .stacks
                    .into_iter()
                    .flatten()
                    .flat_map(|stack| stack.outputs.unwrap_or_default());
                let url = outputs.find(|output| output.output_key.as_deref() == Some("ApiUrl"));
                Ok(url.and_then(|url| url.output_value))
            }
        }
    }
}

/// An environment variable that is not empty.
pub(crate) fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// The address of DynamoDB, if the environment sets one.
///
/// # Errors
/// If it is not a URL.
fn endpoint() -> Result<Option<String>> {
    for name in ["AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL"] {
        let Some(url) = variable(name) else { continue };
        if !["http://", "https://"]
            .iter()
            .any(|scheme| url.starts_with(scheme))
        {
            return Err(UsageError(format!(
                "{name} is {url:?}: set it to a URL such as {LOCAL_ENDPOINT}, or remove it"
            ))
            .into());
        }
        return Ok(Some(url));
    }
    Ok(None)
}

/// Rejects a DynamoDB that is not where the stack is. The stack's tables do not exist there, or are
/// those of another deployment.
fn check_endpoints() -> Result<()> {
    let has_one_for_all = variable("AWS_ENDPOINT_URL").is_some()
        || variable("AWS_ENDPOINT_URL_CLOUDFORMATION").is_some();
    match variable("AWS_ENDPOINT_URL_DYNAMODB") {
        Some(url) if !has_one_for_all => Err(UsageError(format!(
            "AWS_ENDPOINT_URL_DYNAMODB is {url}, but the stack is on AWS: run `unset AWS_ENDPOINT_URL_DYNAMODB`, or do not name a stack"
        ))
        .into()),
        _ => Ok(()),
    }
}

/// The SDK's default configuration.
///
/// # Errors
/// If no region is configured.
async fn aws_config() -> Result<aws_config::SdkConfig> {
    let config = aws_config::load_defaults(BehaviorVersion::latest()).await;
    if config.region().is_none() {
        bail!("no AWS region is configured: set AWS_REGION, or a region in your AWS profile");
    }
    Ok(config)
}

async fn stack_tables(client: &aws_sdk_cloudformation::Client, stack: &str) -> Result<TableNames> {
    let mut pages = client
        .list_stack_resources()
        .stack_name(stack)
        .into_paginator()
        .items()
        .send();
    let mut resources = Vec::new();
    while let Some(resource) = pages.next().await {
        let resource = resource.with_context(|| format!("cannot read the stack {stack}"))?;
        if let (Some(logical_id), Some(name)) =
            (resource.logical_resource_id, resource.physical_resource_id)
        {
            resources.push((logical_id, name));
        }
    }
    let name = |table: Table| {
        let mut resources = resources.iter();
        let (_, name) = resources.find(|(logical_id, _)| logical_id == table.logical_id)?;
        Some(name.clone())
    };
    TableNames::new(|table| {
        name(table).with_context(|| {
            let id = table.logical_id;
            format!("the stack {stack} lacks {id}: check that it is a stack of template.yaml")
        })
    })
}
