//! A deployment: the names of its tables, and how to connect to them.

use std::{collections::HashMap, sync::LazyLock, time::Duration};

use anyhow::{Context as _, Result, bail};
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_cloudformation::types::Stack as StackDescription;
use aws_sdk_dynamodb::{
    Client,
    config::{Builder, retry::RetryConfig},
};
use aws_smithy_http_client::{
    Builder as HttpClientBuilder, Connector, proxy::ProxyConfig, tls::TrustStore,
};
use aws_smithy_runtime_api::client::http::HttpConnectorSettings;
use rustls_native_certs::load_native_certs;
use workspace_management::{
    config::{self, variable},
    store::{
        AdditionalRetries, Table, TableNames,
        client::{AMAZON_ROOTS, https_connector},
    },
};
use workspace_records::local::{DYNAMODB, sdk_config, table_names};

use crate::{errors::Response as _, usage::UsageError};

/// The maximum number of attempts of a request to DynamoDB. Large removals meet conflicts with
/// other writers and throttling.
const MAX_ATTEMPTS: u32 = 10;

/// The maximum wait before the second attempt. It doubles for each further attempt.
const INITIAL_BACKOFF: Duration = Duration::from_millis(50);

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
    /// Its stack, if the operator named one.
    pub(crate) stack: Option<Stack>,
}

impl Deployment {
    /// Finds the deployment to work on: the given stack; or the tables that the function's
    /// environment variables name; or the local service.
    ///
    /// # Errors
    /// If there is no region or no such stack, or if only some of the environment variables are
    /// set.
    pub(crate) async fn find(stack: Option<&str>) -> Result<Self> {
        let endpoint =
            config::endpoint_url(&variable).map_err(|error| UsageError(error.to_string()))?;
        let mut tables = Table::ALL.iter();
        if stack.is_none() && tables.all(|table| variable(table.variable).is_none()) {
            return Ok(Self::local(endpoint.as_deref().unwrap_or(DYNAMODB)));
        }
        let config = aws_config().await?;
        let stack = match stack {
            Some(name) => Some(Stack::read(name, config.clone()).await?),
            None => None,
        };
        let is_on_aws = stack.is_some() || endpoint.is_none();
        let tables = TableNames::new(|table| match &stack {
            Some(stack) => stack.resource(table.logical_id).map(str::to_owned),
            None => {
                variable(table.variable).with_context(|| format!("{} is not set", table.variable))
            }
        })?;
        let name = match &stack {
            Some(stack) => format!("stack {}", stack.name),
            None => {
                let place = config.region().map_or("", Region::as_ref);
                let place = endpoint.as_deref().unwrap_or(place);
                format!("{} in {place}", tables.name(Table::ORGANIZATIONS))
            }
        };
        Ok(Self {
            client: client(Builder::from(&config)),
            tables,
            name,
            local_endpoint: None,
            sts: is_on_aws.then(|| aws_sdk_sts::Client::new(&config)),
            stack,
        })
    }

    /// The local service, with its DynamoDB at the given address.
    pub fn local(endpoint: &str) -> Self {
        Self {
            client: local_client(endpoint),
            tables: table_names(),
            name: format!("local DynamoDB at {endpoint}"),
            local_endpoint: Some(endpoint.to_owned()),
            sts: None,
            stack: None,
        }
    }

    /// Whether the tables are on AWS and should therefore have backups and deletion protection.
    pub(crate) fn is_on_aws(&self) -> bool {
        self.sts.is_some()
    }
}

/// A CloudFormation stack.
pub(crate) struct Stack {
    pub(crate) name: String,
    /// How to reach AWS.
    pub(crate) config: SdkConfig,
    /// The physical id of each resource, by its logical id.
    resources: HashMap<String, String>,
}

impl Stack {
    /// Reads which resources a stack has.
    async fn read(name: &str, config: SdkConfig) -> Result<Self> {
        let mut pages = aws_sdk_cloudformation::Client::new(&config)
            .list_stack_resources()
            .stack_name(name)
            .into_paginator()
            .items()
            .send();
        let mut resources = HashMap::new();
        while let Some(resource) = pages.next().await {
            let resource = resource.or_fail(|| format!("cannot read the stack {name}"))?;
            if let (Some(logical_id), Some(physical_id)) =
                (resource.logical_resource_id, resource.physical_resource_id)
            {
                resources.insert(logical_id, physical_id);
            }
        }
        Ok(Self {
            name: name.to_owned(),
            config,
            resources,
        })
    }

    /// The physical id of a resource, such as the name of a table.
    pub(crate) fn resource(&self, logical_id: &str) -> Result<&str> {
        let name = self.resources.get(logical_id).with_context(|| {
            let stack = &self.name;
            format!(
                "the stack {stack} lacks {logical_id}: check that it is a stack of template.yaml"
            )
        });
        name.map(String::as_str)
    }

    /// The outputs and settings of the stack.
    pub(crate) async fn describe(&self) -> Result<StackDescription> {
        let client = aws_sdk_cloudformation::Client::new(&self.config);
        let response = client.describe_stacks().stack_name(&self.name).send().await;
        let response = response.or_fail(|| format!("cannot read the stack {}", self.name))?;
        let mut stacks = response.stacks.into_iter().flatten();
        stacks.next().context("CloudFormation returned no stack")
    }
}

/// The SDK's default configuration.
///
/// # Errors
/// If no region is configured.
async fn aws_config() -> Result<SdkConfig> {
    let http_client = HttpClientBuilder::new()
        .build_with_connector_fn(|settings, _| connector(settings.cloned()));
    let config = aws_config::defaults(BehaviorVersion::latest())
        .http_client(http_client)
        .load()
        .await;
    if config.region().is_none() {
        bail!("no AWS region is configured: set AWS_REGION, or a region in your AWS profile");
    }
    Ok(config)
}

/// A client that also retries what the function retries, such as conflicts of transactions.
fn client(config: Builder) -> Client {
    let retries = RetryConfig::standard()
        .with_max_attempts(MAX_ATTEMPTS)
        .with_initial_backoff(INITIAL_BACKOFF);
    let config = config
        .retry_config(retries)
        .retry_classifier(AdditionalRetries);
    Client::from_conf(config.build())
}

/// A client for a local service, which fails at once if nothing listens.
fn local_client(endpoint: &str) -> Client {
    let config = sdk_config(endpoint).retry_config(RetryConfig::disabled());
    Client::from_conf(config.build())
}

/// Connects as the SDK does by default, through the proxy that the environment names. There are two
/// differences: the TLS library is the function's, because the SDK's takes half a minute to compile,
/// and Amazon's root certificates are trusted if the system has none, as in small containers.
pub(crate) fn connector(settings: Option<HttpConnectorSettings>) -> Connector {
    // Loading them takes a while on some systems, and the SDK makes several connectors.
    static HAS_ROOTS: LazyLock<bool> = LazyLock::new(|| !load_native_certs().certs.is_empty());
    let trust_store = if *HAS_ROOTS {
        TrustStore::default()
    } else {
        TrustStore::empty().with_pem_certificate(AMAZON_ROOTS)
    };
    let connector = https_connector(trust_store, Some(ProxyConfig::from_env()), settings);
    connector.expect("valid root certificates")
}
