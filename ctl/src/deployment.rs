//! A deployment: which tables it has, and how they are reached.

use std::env;

use anyhow::{Context as _, Result, bail};
use aws_config::BehaviorVersion;
use aws_sdk_dynamodb::Client;
use workspace_local::tables::{sdk_config, table_names};
use workspace_management::store::{Table, Tables};

/// Where `serve` puts DynamoDB if it is not told otherwise.
pub(crate) const LOCAL_ENDPOINT: &str = "http://127.0.0.1:8000";

/// Where `serve` puts the API if it is not told otherwise.
const LOCAL_API: &str = "http://127.0.0.1:3000";

/// A deployment's tables, and a client that reaches them.
pub(crate) struct Deployment {
    /// The client.
    pub(crate) client: Client,
    /// The tables' names.
    pub(crate) tables: Tables,
    /// What to call it in a sentence.
    pub(crate) name: String,
    /// Whether the tables are AWS's own, with backups and protection, as far as can be known.
    pub(crate) is_on_aws: bool,
    api: Api,
}

/// Where a deployment's API may be.
enum Api {
    /// Where the stack's output says.
    Stack(Box<aws_sdk_cloudformation::Client>, String),
    /// Where `serve` puts it if it is not told otherwise.
    Local,
    Unknown,
}

impl Deployment {
    /// Finds a deployment: the stack of that name; else the tables that the function's own environment variables name,
    /// both through the SDK's default configuration; else what `serve` runs on this machine.
    ///
    /// # Errors
    /// If there is no region or no such stack, or if some but not all of the variables are set.
    pub(crate) async fn find(stack: Option<&str>) -> Result<Self> {
        let variable = |table: Table| {
            env::var(table.variable)
                .ok()
                .filter(|name| !name.is_empty())
        };
        if let Some(stack) = stack {
            let config = aws_config().await?;
            let stacks = aws_sdk_cloudformation::Client::new(&config);
            return Ok(Self {
                client: Client::new(&config),
                tables: tables_of_stack(&stacks, stack).await?,
                name: format!("the stack {stack}"),
                is_on_aws: true,
                api: Api::Stack(Box::new(stacks), stack.to_owned()),
            });
        }
        if Table::ALL
            .into_iter()
            .any(|table| variable(table).is_some())
        {
            return Ok(Self {
                client: Client::new(&aws_config().await?),
                tables: Tables::named(variable)?,
                name: "the tables that the environment names".to_owned(),
                is_on_aws: endpoint().is_none(),
                api: Api::Unknown,
            });
        }
        Ok(Self::local(endpoint().as_deref().unwrap_or(LOCAL_ENDPOINT)))
    }

    /// What `serve` runs on this machine, with DynamoDB at that address.
    pub(crate) fn local(endpoint: &str) -> Self {
        Self {
            client: Client::from_conf(sdk_config(endpoint).build()),
            tables: table_names(),
            name: format!(
                "what `cargo serve` runs, with DynamoDB at {endpoint} \
                 (AWS_ENDPOINT_URL_DYNAMODB says where else)"
            ),
            is_on_aws: false,
            api: Api::Local,
        }
    }

    /// The API's address, if it can be known.
    ///
    /// # Errors
    /// If the stack cannot be read.
    pub(crate) async fn api_url(&self) -> Result<Option<String>> {
        match &self.api {
            Api::Unknown => Ok(None),
            Api::Local => Ok(Some(LOCAL_API.to_owned())),
            Api::Stack(client, stack) => {
                let described = client.describe_stacks().stack_name(stack).send().await;
                let described =
                    described.with_context(|| format!("the stack {stack} cannot be read"))?;
                let mut outputs = described
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

/// The address of DynamoDB, if the environment says another than AWS's.
fn endpoint() -> Option<String> {
    let endpoint =
        ["AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL"].map(|name| env::var(name).ok());
    endpoint.into_iter().flatten().find(|url| !url.is_empty())
}

async fn aws_config() -> Result<aws_config::SdkConfig> {
    let config = aws_config::load_defaults(BehaviorVersion::latest()).await;
    if config.region().is_none() {
        bail!("no AWS region is configured: set AWS_REGION, or a region in your profile");
    }
    Ok(config)
}

async fn tables_of_stack(client: &aws_sdk_cloudformation::Client, stack: &str) -> Result<Tables> {
    let mut pages = client
        .list_stack_resources()
        .stack_name(stack)
        .into_paginator()
        .items()
        .send();
    let mut found = Vec::new();
    while let Some(resource) = pages.next().await {
        let resource = resource.with_context(|| format!("the stack {stack} cannot be read"))?;
        if let (Some(logical), Some(physical)) =
            (resource.logical_resource_id, resource.physical_resource_id)
        {
            found.push((logical, physical));
        }
    }
    let name = |table: Table| {
        let of_table = |(logical, _): &&(String, String)| logical == table.logical_id;
        found
            .iter()
            .find(of_table)
            .map(|(_, physical)| physical.clone())
    };
    Tables::named(name)
        .map_err(|_| anyhow::anyhow!("the stack {stack} has not all of the service's tables"))
}
