//! How to reach the DynamoDB of `cargo serve`.

use std::convert::Infallible;

use aws_sdk_dynamodb::config::{
    BehaviorVersion, Builder as ConfigBuilder, Credentials, Region, SharedHttpClient,
};
use aws_smithy_http_client::{Builder as HttpClientBuilder, tls::TrustStore};
use workspace_management::{
    records::Table,
    store::{TableNames, connection::https_connector},
};

use crate::kinds::ALL_TABLES;

/// The URL of DynamoDB in `cargo serve`, by default.
pub const DYNAMODB_URL: &str = "http://127.0.0.1:8000";

/// Where `cargo serve` has the log, at the URL of DynamoDB, because `workspacectl` knows that URL.
pub const LOG_PATH: &str = "/log";

/// The URL of the API in `cargo serve`, by default.
pub const API_URL: &str = "http://127.0.0.1:3000";

/// An SDK configuration for a local DynamoDB, which accepts any region and credentials.
pub fn sdk_config(dynamodb_url: &str) -> ConfigBuilder {
    // Without TLS, the client does not have to parse the system's root certificates.
    let http_client: SharedHttpClient = if dynamodb_url.starts_with("https:") {
        HttpClientBuilder::new().build_with_connector_fn(|settings, _| {
            let connector = https_connector(TrustStore::default(), None, settings.cloned());
            connector.expect("the system's root certificates")
        })
    } else {
        HttpClientBuilder::new().build_http()
    };
    ConfigBuilder::new()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "local"))
        .endpoint_url(dynamodb_url)
        .http_client(http_client)
}

/// The names of the tables on a local DynamoDB: their logical ids in `template.yaml`.
pub fn table_names() -> TableNames {
    let Ok(names) = TableNames::new(|table| Ok::<_, Infallible>(table.logical_id.to_owned()));
    names
}

/// Every table on a local DynamoDB, with its name.
pub fn tables() -> impl Iterator<Item = (Table, String)> {
    ALL_TABLES
        .into_iter()
        .map(|table| (table, table.logical_id.to_owned()))
}
