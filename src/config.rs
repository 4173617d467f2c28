//! Reads the configuration from environment variables. No other module reads them.

use std::{env, time::Duration};

use aws_config::Region;
use aws_sdk_dynamodb::config::Credentials;

use crate::{
    auth::AnonymousAccess,
    error::BoxError,
    store::{MAX_CACHE_TTL, TableNames, connection::DynamoDbConfig},
};

/// Looks up an environment variable, like [`read_variable`]. Tests pass a different lookup.
pub type EnvLookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The configuration of the function. Empty variables count as not set.
pub struct Config {
    /// The names of the tables: `TEAMS_TABLE` and so on. Required.
    pub table_names: TableNames,
    /// The settings for the connection to DynamoDB.
    pub dynamodb: DynamoDbConfig,
    /// `ANONYMOUS_OPERATIONS`: whether callers may omit the API key where the contract makes it
    /// optional. `allowed` or `denied` (default).
    pub anonymous_access: AnonymousAccess,
    /// `KEY_CACHE_SECONDS`: how long API keys and (despite the name) teams are cached. From 0 (no
    /// caching) to 60 (default).
    pub cache_ttl: Duration,
}

impl Config {
    /// Reads the configuration from the environment.
    ///
    /// # Errors
    /// If a variable is missing or invalid. The message names the variable.
    pub fn from_env() -> Result<Self, BoxError> {
        Self::read(&read_variable)
    }

    fn read(get_variable: EnvLookup) -> Result<Self, BoxError> {
        const MAX_SECONDS: u64 = MAX_CACHE_TTL.as_secs();
        let anonymous_access = match get_variable("ANONYMOUS_OPERATIONS").as_deref() {
            Some("allowed") => AnonymousAccess::Allowed,
            None | Some("denied") => AnonymousAccess::Denied,
            Some(other) => {
                return Err(format!(
                    "ANONYMOUS_OPERATIONS must be `allowed` or `denied`, not {other:?}."
                )
                .into());
            }
        };
        let text = get_variable("KEY_CACHE_SECONDS").unwrap_or_else(|| "60".to_owned());
        let cache_ttl = match text.parse() {
            Ok(seconds @ 0..=MAX_SECONDS) => Duration::from_secs(seconds),
            _ => {
                return Err(format!(
                    "KEY_CACHE_SECONDS must be a whole number from 0 to {MAX_SECONDS}, not {text:?}."
                )
                .into());
            }
        };
        let table_names = TableNames::new(|table| {
            let variable = table.env_variable;
            get_variable(variable).ok_or_else(|| format!("{variable} is required but not set."))
        })?;
        Ok(Self {
            table_names,
            dynamodb: dynamodb_config(get_variable)?,
            anonymous_access,
            cache_ttl,
        })
    }
}

/// Reads the settings for the connection to DynamoDB. The SDK's own loader takes too long: see
/// `store/connection.rs`.
fn dynamodb_config(get_variable: EnvLookup) -> Result<DynamoDbConfig, BoxError> {
    let is_true = |name| get_variable(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let access_key_id = get_variable("AWS_ACCESS_KEY_ID");
    let credentials = match (access_key_id, get_variable("AWS_SECRET_ACCESS_KEY")) {
        (Some(access_key_id), Some(secret)) => {
            let token = get_variable("AWS_SESSION_TOKEN");
            Some(Credentials::new(
                access_key_id,
                secret,
                token,
                None,
                "environment",
            ))
        }
        _ => None,
    };
    let region = get_variable("AWS_REGION").or_else(|| get_variable("AWS_DEFAULT_REGION"));
    Ok(DynamoDbConfig {
        region: Region::new(region.ok_or("AWS_REGION is required but not set.")?),
        endpoint_url: endpoint_url(get_variable)?,
        use_fips: is_true("AWS_USE_FIPS_ENDPOINT"),
        use_dual_stack: is_true("AWS_USE_DUALSTACK_ENDPOINT"),
        ca_bundle_path: get_variable("AWS_CA_BUNDLE").or_else(|| get_variable("SSL_CERT_FILE")),
        credentials,
    })
}

/// Reads DynamoDB's endpoint. `None` if no variable sets it, so that the region's endpoint is used.
///
/// # Errors
/// If the endpoint is not an http or https URL. The message names the variable.
pub fn endpoint_url(get_variable: EnvLookup) -> Result<Option<String>, BoxError> {
    for name in ["AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL"] {
        let Some(url) = get_variable(name) else {
            continue;
        };
        return match normalize_url(&url) {
            Some(url) => Ok(Some(url)),
            None => Err(format!("{name} must be an http or https URL, not {url:?}.").into()),
        };
    }
    Ok(None)
}

/// An http or https URL with its scheme in lower case. `None` if the URL has a different scheme.
pub fn normalize_url(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    matches!(&*scheme, "http" | "https").then(|| format!("{scheme}://{rest}"))
}

/// Reads an environment variable. `None` if it is empty, not set or not Unicode.
pub fn read_variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Table;

    /// Reads a valid configuration in which some variables are changed. `None` unsets a variable.
    fn read(changes: &[(&str, Option<&str>)]) -> Result<Config, BoxError> {
        Config::read(&|name: &str| {
            if let Some((_, value)) = changes.iter().find(|(changed, _)| *changed == name) {
                return value.map(str::to_owned);
            }
            if name == "AWS_REGION" {
                return Some("eu-central-1".to_owned());
            }
            let table = Table::ALL.iter().find(|table| table.env_variable == name)?;
            Some(table.logical_id.to_owned())
        })
    }

    #[test]
    fn every_variable_except_the_tables_and_the_region_has_a_default() {
        let config = read(&[]).unwrap();

        assert_eq!(config.table_names.get(Table::TEAMS), "TeamsTable");
        assert_eq!(config.dynamodb.region.as_ref(), "eu-central-1");
        assert_eq!(config.anonymous_access, AnonymousAccess::Denied);
        assert_eq!(config.cache_ttl, Duration::from_secs(60));
        assert_eq!(config.dynamodb.endpoint_url, None);
        assert_eq!(config.dynamodb.ca_bundle_path, None);
        assert!(config.dynamodb.credentials.is_none());
        assert!(!config.dynamodb.use_fips && !config.dynamodb.use_dual_stack);
    }

    #[test]
    fn every_variable_is_read() {
        let config = read(&[
            ("ANONYMOUS_OPERATIONS", Some("allowed")),
            ("KEY_CACHE_SECONDS", Some("0")),
            ("AWS_ENDPOINT_URL_DYNAMODB", Some("http://127.0.0.1:8000")),
            ("AWS_ENDPOINT_URL", Some("ignored")),
            ("AWS_USE_FIPS_ENDPOINT", Some("true")),
            ("AWS_USE_DUALSTACK_ENDPOINT", Some("TRUE")),
            ("AWS_CA_BUNDLE", Some("/bundle.pem")),
            ("SSL_CERT_FILE", Some("/cert.pem")),
            ("AWS_ACCESS_KEY_ID", Some("id")),
            ("AWS_SECRET_ACCESS_KEY", Some("secret")),
            ("AWS_SESSION_TOKEN", Some("token")),
        ])
        .unwrap();

        assert_eq!(config.anonymous_access, AnonymousAccess::Allowed);
        assert_eq!(config.cache_ttl, Duration::ZERO);
        let dynamodb = config.dynamodb;
        assert_eq!(dynamodb.endpoint_url.unwrap(), "http://127.0.0.1:8000");
        assert_eq!(dynamodb.ca_bundle_path.as_deref(), Some("/bundle.pem"));
        assert!(dynamodb.use_fips && dynamodb.use_dual_stack);
        let credentials = dynamodb.credentials.unwrap();
        assert_eq!(credentials.access_key_id(), "id");
        assert_eq!(credentials.secret_access_key(), "secret");
        assert_eq!(credentials.session_token(), Some("token"));
    }

    #[test]
    fn general_variables_are_used_if_specific_ones_are_not_set() {
        let config = read(&[
            ("AWS_REGION", None),
            ("AWS_DEFAULT_REGION", Some("us-east-1")),
            ("AWS_ENDPOINT_URL", Some("HTTPS://localhost")),
            ("SSL_CERT_FILE", Some("/cert.pem")),
            ("AWS_ACCESS_KEY_ID", Some("an id without its secret")),
        ])
        .unwrap()
        .dynamodb;

        assert_eq!(config.region.as_ref(), "us-east-1");
        assert_eq!(config.endpoint_url.as_deref(), Some("https://localhost"));
        assert_eq!(config.ca_bundle_path.as_deref(), Some("/cert.pem"));
        assert!(config.credentials.is_none());
    }
}
