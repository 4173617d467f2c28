//! The client for DynamoDB: how it connects, and which failures it retries.

use std::{sync::LazyLock, time::Duration};

use aws_sdk_dynamodb::{
    Client,
    config::{Builder, retry::RetryConfig},
};
use aws_smithy_http_client::{Connector, proxy::ProxyConfig, tls::TrustStore};
use aws_smithy_runtime_api::client::http::HttpConnectorSettings;
use rustls_native_certs::load_native_certs;
use workspace_management::store::{
    AdditionalRetries,
    client::{AMAZON_ROOTS, https_connector},
};
use workspace_records::local::sdk_config;

/// The maximum number of attempts of a request to DynamoDB. Large removals meet conflicts with
/// other writers and throttling.
const MAX_ATTEMPTS: u32 = 10;

/// The maximum wait before the second attempt. It doubles for each further attempt.
const INITIAL_BACKOFF: Duration = Duration::from_millis(50);

/// A client that also retries what the function retries, such as conflicts of transactions.
pub(crate) fn client(config: Builder) -> Client {
    let retries = RetryConfig::standard()
        .with_max_attempts(MAX_ATTEMPTS)
        .with_initial_backoff(INITIAL_BACKOFF);
    let config = config
        .retry_config(retries)
        .retry_classifier(AdditionalRetries);
    Client::from_conf(config.build())
}

/// A client for a local service, which fails at once if nothing listens.
pub(crate) fn local_client(endpoint: &str) -> Client {
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
