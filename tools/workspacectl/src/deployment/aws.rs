//! The configuration of AWS.

use std::{
    env, fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Error, Result, anyhow, bail, ensure};
use aws_config::{BehaviorVersion, SdkConfig, identity::IdentityCache, profile};
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_types::service_config::ServiceConfigKey;
use workspace_management::config::{self, read_variable};

use super::CA_BUNDLE;
use crate::{errors::UsageError, http::Http, text::join_lines};

/// How long getting credentials may take. Some programs of `credential_process` ask for a code.
const CREDENTIALS_TIMEOUT: Duration = Duration::from_secs(50);

/// Loads the SDK's configuration, with the clients for HTTP. Fails if the configuration cannot be
/// used, although the SDK would ignore some of the reasons.
pub(super) async fn load_sdk_config() -> Result<(SdkConfig, Http)> {
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
pub(super) fn endpoint_url(config: &SdkConfig, service_id: &str) -> Result<Option<String>> {
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
pub(super) fn check_endpoints(config: &SdkConfig, dynamodb_url: Option<&str>) -> Result<()> {
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
