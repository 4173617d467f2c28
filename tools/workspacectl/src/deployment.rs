//! A deployment: the names of its tables, and the clients that access it.

use std::{
    collections::HashMap,
    env, fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Error, Result, anyhow, bail, ensure};
use aws_config::{BehaviorVersion, Region, SdkConfig, identity::IdentityCache, profile};
use aws_sdk_cloudformation::types::Stack as StackDescription;
use aws_sdk_dynamodb::{
    Client,
    config::{Builder as ConfigBuilder, retry::RetryConfig},
};
use aws_types::service_config::ServiceConfigKey;
use workspace_management::{
    config::{self, read_variable},
    store::{AdditionalRetryClassifier, Table, TableNames},
};
use workspace_records::local;

use crate::{
    errors::{RequestResultExt as _, UsageError},
    http::Http,
    text::join_lines,
};

/// The maximum number of attempts per request. Large removals run into throttling and conflicts.
const MAX_ATTEMPTS: u32 = 10;

/// The upper bound of the random wait before the second attempt. The bound doubles each time.
const INITIAL_BACKOFF: Duration = Duration::from_millis(50);

/// The pause before an index on AWS is read again. The index usually needs less than a second to
/// catch up.
pub const INDEX_PAUSE: Duration = Duration::from_secs(2);

/// How long getting credentials may take. Some programs of `credential_process` ask for a code.
const CREDENTIALS_TIMEOUT: Duration = Duration::from_secs(50);

/// The variable that makes the SDK ignore endpoint URLs in the environment and in files.
const IGNORE_ENDPOINT_URLS: &str = "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS";

/// The variable that names a file with root certificates.
const CA_BUNDLE: &str = "AWS_CA_BUNDLE";

/// What a command operates on: a stack, the tables named in the environment, or the local service.
pub struct Deployment {
    /// The DynamoDB client.
    pub dynamodb: Client,
    pub(crate) table_names: TableNames,
    /// The name of the deployment in messages.
    pub(crate) display_name: String,
    /// The URL of the local service's DynamoDB. `None` for a stack or named tables.
    pub(crate) local_service_dynamodb_url: Option<String>,
    /// [`INDEX_PAUSE`], or zero for the local service, whose indexes do not lag.
    pub index_pause: Duration,
    pub(crate) http: Http,
    /// The client for AWS STS. `None` unless the tables are on AWS.
    pub(crate) sts: Option<aws_sdk_sts::Client>,
    /// `None` unless the operator named a stack.
    pub(crate) stack: Option<Stack>,
}

impl Deployment {
    /// Resolves the deployment to work on, as the help of [`crate::Cli`] describes. Fails if the
    /// configuration of AWS or an endpoint URL is invalid, the stack is unreadable or incomplete,
    /// or only some table variables are set. The local service needs no configuration of AWS.
    pub(crate) async fn resolve(stack_name: Option<&str>) -> Result<Self> {
        let is_set = |table: &Table| read_variable(table.env_variable).is_some();
        if stack_name.is_none() && !Table::ALL.iter().any(is_set) {
            return Self::local_service(&local_service_url()?);
        }
        let (sdk_config, http) = load_sdk_config().await?;
        let endpoint_url = endpoint_url(&sdk_config, "DynamoDB")?;
        let stack = match stack_name {
            Some(name) => {
                check_endpoints(&sdk_config, endpoint_url.as_deref())?;
                Some(Stack::read(name, sdk_config.clone()).await?)
            }
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
            index_pause: INDEX_PAUSE,
            http,
            sts: is_on_aws.then(|| aws_sdk_sts::Client::new(&sdk_config)),
            stack,
        })
    }

    /// The local service whose DynamoDB is at this URL. Requests are not retried, so that they fail
    /// at once if nothing is listening. Fails if the file with root certificates is invalid.
    pub fn local_service(dynamodb_url: &str) -> Result<Self> {
        let http = Http::new(read_variable(CA_BUNDLE));
        let config = local::sdk_config(dynamodb_url)
            .http_client(http.client(dynamodb_url)?)
            .retry_config(RetryConfig::disabled());
        Ok(Self {
            dynamodb: Client::from_conf(config.build()),
            table_names: local::table_names(),
            display_name: format!("local DynamoDB at {dynamodb_url}"),
            local_service_dynamodb_url: Some(dynamodb_url.to_owned()),
            index_pause: Duration::ZERO,
            http,
            sts: None,
            stack: None,
        })
    }

    pub(crate) fn table_name(&self, table: Table) -> &str {
        self.table_names.get(table)
    }

    /// Whether the tables are on AWS and should therefore have backups and deletion protection.
    pub(crate) fn is_on_aws(&self) -> bool {
        self.sts.is_some()
    }
}

/// The URL of the local service's DynamoDB. Fails if the environment has an invalid URL, or one
/// that it tells to ignore.
fn local_service_url() -> Result<String, UsageError> {
    let url =
        config::endpoint_url(&read_variable).map_err(|error| UsageError(error.to_string()))?;
    let ignored = read_variable(IGNORE_ENDPOINT_URLS);
    if url.is_some() && ignored.is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Err(UsageError(format!(
            "{IGNORE_ENDPOINT_URLS} excludes AWS_ENDPOINT_URL_DYNAMODB and AWS_ENDPOINT_URL: unset one of them, or use a stack"
        )));
    }
    Ok(url.unwrap_or_else(|| local::DYNAMODB_URL.to_owned()))
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

/// Loads the SDK's configuration, with the clients for HTTP. Fails if the configuration cannot be
/// used, although the SDK would ignore some of the reasons.
async fn load_sdk_config() -> Result<(SdkConfig, Http)> {
    let config_file = read_config_file("AWS_CONFIG_FILE", "config")?;
    read_config_file("AWS_SHARED_CREDENTIALS_FILE", "credentials")?;
    let (fs, env) = Default::default();
    let profiles = profile::load(&fs, &env, &Default::default(), None)
        .await
        .map_err(|error| anyhow!("{}", join_lines(&format!("{:#}", Error::new(error)))))?;
    let mut loader = aws_config::defaults(BehaviorVersion::latest());
    let mut settings = profiles.get_profile("default");
    // The AWS CLI prefers the first one too.
    for variable in ["AWS_DEFAULT_PROFILE", "AWS_PROFILE"] {
        let Some(name) = read_variable(variable) else {
            continue;
        };
        settings = profiles.get_profile(&name);
        ensure!(
            settings.is_some(),
            "there is no AWS profile {name}: check {variable}, or see `aws configure list-profiles`"
        );
        loader = loader.profile_name(name);
        break;
    }
    if let Some(name) = settings.and_then(|settings| settings.get("services")) {
        ensure!(
            has_services_section(&config_file, name),
            "the AWS profile has services = {name}, but the configuration file has no section [services {name}] with settings"
        );
    }
    let from_profile =
        || Some(settings?.get("ca_bundle")?.to_owned()).filter(|path| !path.is_empty());
    let http = Http::new(read_variable(CA_BUNDLE).or_else(from_profile));
    let config = loader
        .http_client(http.client("https:")?)
        // The SDK would panic at an invalid AWS_RETRY_MODE or AWS_MAX_ATTEMPTS.
        .retry_config(RetryConfig::standard())
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
    Ok((config, http))
}

/// Reads a configuration file of AWS. Empty if there is no file. Fails if the file cannot be read or
/// is not text, which the SDK would only log.
fn read_config_file(variable: &str, name: &str) -> Result<String> {
    let path = read_variable(variable).unwrap_or_else(|| format!("~/.aws/{name}"));
    let mut path = PathBuf::from(path);
    if let (Ok(rest), Some(home)) = (path.strip_prefix("~"), env::home_dir()) {
        path = home.join(rest);
    }
    match fs::read_to_string(&path) {
        Ok(text) => Ok(text),
        // A service often has a home folder that does not exist or that it cannot enter.
        Err(_) if path.is_dir() || !path.parent().is_some_and(Path::exists) => Ok(String::new()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(error) => bail!("cannot read {}: {error}", path.display()),
    }
}

/// Whether a configuration file of AWS has a section `[services NAME]` that is not empty.
fn has_services_section(config_file: &str, name: &str) -> bool {
    let lines = config_file.lines().map(str::trim);
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with(['#', ';']));
    let is_header = |line: &str| {
        let header = line
            .strip_prefix('[')
            .and_then(|line| line.split(']').next());
        header.is_some_and(|header| header.split_whitespace().eq(["services", name]))
    };
    lines.any(is_header) && lines.next().is_some_and(|line| !line.starts_with('['))
}

/// The endpoint URL that is configured for a service. `None` means the region's. Fails if it is not
/// an http or https URL.
fn endpoint_url(config: &SdkConfig, service_id: &str) -> Result<Option<String>> {
    let key = ServiceConfigKey::builder()
        .service_id(service_id)
        .env("AWS_ENDPOINT_URL")
        .profile("endpoint_url")
        .build()?;
    let url = config
        .service_config()
        .and_then(|service| service.load_config(key));
    let Some(url) = url else {
        return Ok(None);
    };
    let normalized = config::normalize_url(&url).ok_or_else(|| {
        UsageError(format!(
            "the endpoint of {service_id} must be an http or https URL, not {url:?}"
        ))
    })?;
    Ok(Some(normalized))
}

/// Fails if the stack, its tables and the operator's identity would not be in the same place: at
/// the same endpoint, or all on AWS, for example at the endpoints of a VPC.
fn check_endpoints(config: &SdkConfig, dynamodb_url: Option<&str>) -> Result<()> {
    let cloudformation_url = endpoint_url(config, "CloudFormation")?;
    let sts_url = endpoint_url(config, "STS")?;
    let endpoints = [
        cloudformation_url.as_deref(),
        dynamodb_url,
        sts_url.as_deref(),
    ];
    let [stack, tables, identity] = endpoints.map(|url| match url {
        Some(url) if !url.contains(".amazonaws.") && !url.contains(".api.aws") => {
            url.trim_end_matches('/')
        }
        _ => "AWS",
    });
    if stack != tables || stack != identity {
        return Err(UsageError(format!(
            "the stack would be read from {stack}, its tables from {tables} and your identity from {identity}: set all three endpoints or none, in the environment (AWS_ENDPOINT_URL) and in the AWS profile (endpoint_url)"
        ))
        .into());
    }
    Ok(())
}
