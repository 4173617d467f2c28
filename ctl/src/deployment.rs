//! A deployment: the names of its tables, and the clients that access it.

use std::{
    collections::HashMap, env, fs, io::ErrorKind, path::PathBuf, sync::LazyLock, time::Duration,
};

use anyhow::{Context as _, Error, Result, anyhow, bail, ensure};
use aws_config::{BehaviorVersion, Region, SdkConfig, identity::IdentityCache, profile};
use aws_sdk_cloudformation::types::Stack as StackDescription;
use aws_sdk_dynamodb::{
    Client,
    config::{Builder as ConfigBuilder, retry::RetryConfig},
};
use aws_smithy_http_client::{
    Builder as HttpClientBuilder, Connector, proxy::ProxyConfig, tls::TrustStore,
};
use aws_smithy_runtime_api::client::http::HttpConnectorSettings;
use rustls_native_certs::load_native_certs;
use workspace_management::{
    config::{self, read_variable},
    store::{
        AdditionalRetryClassifier, Table, TableNames,
        connection::{AMAZON_ROOTS, https_connector},
    },
};
use workspace_records::local;

use crate::{
    errors::{RequestResultExt as _, UsageError},
    text::join_lines,
};

/// The maximum number of attempts per request. Large removals run into throttling and conflicts.
const MAX_ATTEMPTS: u32 = 10;

/// The upper bound of the random wait before the second attempt. The bound doubles each time.
const INITIAL_BACKOFF: Duration = Duration::from_millis(50);

/// How long getting credentials may take. Some programs of `credential_process` ask for a code.
const CREDENTIALS_TIMEOUT: Duration = Duration::from_secs(50);

/// What a command operates on: a stack, the tables named in the environment, or the local service.
pub struct Deployment {
    /// The DynamoDB client.
    pub dynamodb: Client,
    pub(crate) table_names: TableNames,
    /// The name of the deployment in messages.
    pub(crate) display_name: String,
    /// The URL of the local service's DynamoDB. `None` for a stack or named tables.
    pub(crate) local_service_dynamodb_url: Option<String>,
    /// The client for AWS STS. `None` unless the tables are on AWS.
    pub(crate) sts: Option<aws_sdk_sts::Client>,
    /// `None` unless the operator named a stack.
    pub(crate) stack: Option<Stack>,
}

impl Deployment {
    /// Resolves the deployment to work on, as the help of [`crate::Cli`] describes. Fails if an
    /// endpoint URL in the environment is invalid, the stack is unreadable or incomplete, only some
    /// table variables are set, or no region is configured. The local service needs no region.
    pub(crate) async fn resolve(stack_name: Option<&str>) -> Result<Self> {
        let endpoint_url =
            config::endpoint_url(&read_variable).map_err(|error| UsageError(error.to_string()))?;
        let is_set = |table: &Table| read_variable(table.env_variable).is_some();
        if stack_name.is_none() && !Table::ALL.iter().any(is_set) {
            let url = endpoint_url.as_deref().unwrap_or(local::DYNAMODB_URL);
            return Ok(Self::local_service(url));
        }
        let sdk_config = load_sdk_config().await?;
        let stack = match stack_name {
            Some(name) => Some(Stack::read(name, sdk_config.clone()).await?),
            None => None,
        };
        // An endpoint URL is assumed to be a local DynamoDB's, unless there is a stack.
        let is_on_aws = stack.is_some() || endpoint_url.is_none();
        let table_names = TableNames::new(|table| match &stack {
            Some(stack) => stack.physical_id(table.logical_id).map(str::to_owned),
            None => read_variable(table.env_variable)
                .with_context(|| format!("{} is not set", table.env_variable)),
        })?;
        let display_name = match &stack {
            Some(stack) => format!("stack {}", stack.name),
            None => {
                let region = sdk_config.region().map_or("", Region::as_ref);
                let location = endpoint_url.as_deref().unwrap_or(region);
                // Any table's name would do.
                format!("{} in {location}", table_names.get(Table::ORGANIZATIONS))
            }
        };
        let retries = RetryConfig::standard()
            .with_max_attempts(MAX_ATTEMPTS)
            .with_initial_backoff(INITIAL_BACKOFF);
        let config = ConfigBuilder::from(&sdk_config)
            .retry_config(retries)
            // Also retries what the function retries, such as transaction conflicts.
            .retry_classifier(AdditionalRetryClassifier);
        Ok(Self {
            dynamodb: Client::from_conf(config.build()),
            table_names,
            display_name,
            local_service_dynamodb_url: None,
            sts: is_on_aws.then(|| aws_sdk_sts::Client::new(&sdk_config)),
            stack,
        })
    }

    /// The local service whose DynamoDB is at this URL. Requests are not retried, so that they fail
    /// at once if nothing is listening.
    pub fn local_service(dynamodb_url: &str) -> Self {
        let config = local::sdk_config(dynamodb_url).retry_config(RetryConfig::disabled());
        Self {
            dynamodb: Client::from_conf(config.build()),
            table_names: local::table_names(),
            display_name: format!("local DynamoDB at {dynamodb_url}"),
            local_service_dynamodb_url: Some(dynamodb_url.to_owned()),
            sts: None,
            stack: None,
        }
    }

    pub(crate) fn table_name(&self, table: Table) -> &str {
        self.table_names.get(table)
    }

    /// Whether the tables are on AWS and should therefore have backups and deletion protection.
    pub(crate) fn is_on_aws(&self) -> bool {
        self.sts.is_some()
    }
}

/// A CloudFormation stack and its resources.
pub(crate) struct Stack {
    pub(crate) name: String,
    /// The configuration for clients of other AWS services.
    pub(crate) sdk_config: SdkConfig,
    /// The physical id of each resource, by its logical id.
    resources: HashMap<String, String>,
}

impl Stack {
    /// Reads the resources of a stack.
    async fn read(name: &str, sdk_config: SdkConfig) -> Result<Self> {
        let mut resource_summaries = aws_sdk_cloudformation::Client::new(&sdk_config)
            .list_stack_resources()
            .stack_name(name)
            .into_paginator()
            .items()
            .send();
        let mut resources = HashMap::new();
        while let Some(resource) = resource_summaries.next().await {
            let resource = resource.request_context(format!("cannot read the stack {name}"))?;
            if let (Some(logical_id), Some(physical_id)) =
                (resource.logical_resource_id, resource.physical_resource_id)
            {
                resources.insert(logical_id, physical_id);
            }
        }
        Ok(Self {
            name: name.to_owned(),
            sdk_config,
            resources,
        })
    }

    /// The physical id of a resource, such as the name of a table.
    pub(crate) fn physical_id(&self, logical_id: &str) -> Result<&str> {
        let physical_id = self.resources.get(logical_id).map(String::as_str);
        physical_id.with_context(|| {
            let name = &self.name;
            format!("the stack {name} has no {logical_id}: check that it was deployed from template.yaml")
        })
    }

    /// Reads the outputs and settings of the stack.
    pub(crate) async fn describe(&self) -> Result<StackDescription> {
        let client = aws_sdk_cloudformation::Client::new(&self.sdk_config);
        let result = client.describe_stacks().stack_name(&self.name).send().await;
        let response = result.request_context(format!("cannot read the stack {}", self.name))?;
        let stack = response.stacks.unwrap_or_default().into_iter().next();
        stack.context("CloudFormation returned no stack")
    }
}

/// Loads the SDK's configuration, with the connector of [`build_connector`]. Fails if it cannot be
/// used, although the SDK would ignore some of the reasons.
async fn load_sdk_config() -> Result<SdkConfig> {
    check_config_files()?;
    let (fs, env) = Default::default();
    let profiles = profile::load(&fs, &env, &Default::default(), None)
        .await
        .map_err(|error| anyhow!("{}", join_lines(&format!("{:#}", Error::new(error)))))?;
    let mut loader = aws_config::defaults(BehaviorVersion::latest());
    if let Some(name) =
        read_variable("AWS_PROFILE").or_else(|| read_variable("AWS_DEFAULT_PROFILE"))
    {
        ensure!(
            profiles.get_profile(&name).is_some(),
            "there is no AWS profile {name}: check AWS_PROFILE, or see `aws configure list-profiles`"
        );
        loader = loader.profile_name(name);
    }
    let http_client = HttpClientBuilder::new()
        .build_with_connector_fn(|settings, _| build_connector(settings.cloned()));
    let config = loader
        .http_client(http_client)
        .identity_cache(
            IdentityCache::lazy()
                .load_timeout(CREDENTIALS_TIMEOUT)
                .build(),
        )
        .load()
        .await;
    if config.region().is_none() {
        bail!("no AWS region is configured: set AWS_REGION, or a region in your AWS profile");
    }
    Ok(config)
}

/// Fails if a configuration file of AWS exists and is not text, which the SDK would only log.
fn check_config_files() -> Result<()> {
    for (variable, name) in [
        ("AWS_CONFIG_FILE", "config"),
        ("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
    ] {
        let default = || Some(env::home_dir()?.join(".aws").join(name));
        let Some(path) = read_variable(variable).map(PathBuf::from).or_else(default) else {
            continue;
        };
        if let Err(error) = fs::read_to_string(&path)
            && error.kind() == ErrorKind::InvalidData
        {
            bail!("cannot read {}: {error}", path.display());
        }
    }
    Ok(())
}

/// Builds a connector that uses the proxy in the environment, as the SDK's default connector does.
/// It differs from the default in two ways:
///
/// - It uses the Lambda function's TLS library, because the SDK's takes half a minute to compile.
/// - If the system has no root certificates, as in small containers, it trusts Amazon's.
pub(crate) fn build_connector(settings: Option<HttpConnectorSettings>) -> Connector {
    // Cached, because loading the roots can be slow, and the SDK builds several connectors.
    static HAS_SYSTEM_ROOTS: LazyLock<bool> =
        LazyLock::new(|| !load_native_certs().certs.is_empty());
    let trust_store = if *HAS_SYSTEM_ROOTS {
        TrustStore::default()
    } else {
        TrustStore::empty().with_pem_certificate(AMAZON_ROOTS)
    };
    let connector = https_connector(trust_store, Some(ProxyConfig::from_env()), settings);
    connector.expect("valid root certificates")
}
