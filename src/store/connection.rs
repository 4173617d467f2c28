//! Connects to DynamoDB.
//!
//! The SDK's default configuration would read files, gather entropy for 33 ms in its TLS library
//! and parse every root certificate of the system. Instead, `config` reads the environment
//! variables that Lambda sets, and this module uses `ring` and, by default, only Amazon's root
//! certificates.

use std::{fs, time::Duration};

use aws_config::{
    BehaviorVersion, Region, default_provider::credentials::DefaultCredentialsChain,
    provider_config::ProviderConfig,
};
use aws_sdk_dynamodb::config::{Builder as ConfigBuilder, Credentials, http::HttpRequest};
use aws_smithy_http_client::{
    Connector,
    proxy::ProxyConfig,
    tls::{Provider, TlsContext, TrustStore, rustls_provider::CryptoMode},
};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorSettings, SharedHttpConnector, http_client_fn,
};
use aws_smithy_types::byte_stream::ByteStream;
use tokio::time::timeout;

use crate::error::BoxError;

/// The root certificates of AWS's endpoints: the four of Amazon Trust Services, and the Starfield
/// root that cross-signed them. The earliest expiry is in 2037.
pub const AMAZON_ROOTS: &[u8] = include_bytes!("amazon-roots.pem");

/// The timeout for opening a connection, and for the health check that opens the first connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// The settings for the connection to DynamoDB.
pub struct DynamoDbConfig {
    pub(crate) region: Region,
    /// An endpoint to use instead of the region's.
    pub(crate) endpoint_url: Option<String>,
    pub(crate) use_fips: bool,
    pub(crate) use_dual_stack: bool,
    /// A PEM file with root certificates to use instead of Amazon's.
    pub(crate) ca_bundle_path: Option<String>,
    /// `None` if the environment lacks an id or a secret. The SDK then uses its default chain
    /// (profile, web identity or container) and refreshes credentials before they expire.
    pub(crate) credentials: Option<Credentials>,
}

impl DynamoDbConfig {
    /// Builds the configuration of a DynamoDB client, and opens the connection that it will use.
    ///
    /// Lambda gives a function more CPU while it initializes than while it serves requests, so it
    /// is faster to connect now. If DynamoDB does not respond within a second, the first request
    /// connects instead.
    ///
    /// # Errors
    /// If the file with root certificates cannot be read, or a certificate in it is malformed.
    pub async fn preconnect_and_build_client_config(self) -> Result<ConfigBuilder, BoxError> {
        let connector = dynamodb_connector(&self.region, self.ca_bundle_path.as_deref())?;
        let shared_connector = connector.clone();
        // The SDK asks for a connector several times. It always gets this one, because each new
        // connector would parse the root certificates again.
        let http_client = http_client_fn(move |_, _| shared_connector.clone());
        // The host name is known only for commercial regions and GovCloud, and only without FIPS
        // and dual-stack. Otherwise, the first request connects.
        let has_known_host =
            is_commercial_or_govcloud(&self.region) && !self.use_fips && !self.use_dual_stack;
        if let Some(url) = &self.endpoint_url {
            preconnect(&connector, url).await;
        } else if has_known_host {
            let url = format!("https://dynamodb.{}.amazonaws.com", self.region);
            preconnect(&connector, &url).await;
        }
        let mut client_config = ConfigBuilder::new()
            .behavior_version(BehaviorVersion::latest())
            .http_client(http_client.clone())
            .region(self.region.clone());
        client_config
            .set_endpoint_url(self.endpoint_url)
            .set_use_fips(Some(self.use_fips))
            .set_use_dual_stack(Some(self.use_dual_stack));
        Ok(match self.credentials {
            Some(credentials) => client_config.credentials_provider(credentials),
            None => {
                let provider_config = ProviderConfig::without_region()
                    .with_region(Some(self.region))
                    .with_http_client(http_client);
                let chain = DefaultCredentialsChain::builder().configure(provider_config);
                client_config.credentials_provider(chain.build().await)
            }
        })
    }
}

/// Whether a region is commercial or in GovCloud. The endpoints of these regions end with
/// `.amazonaws.com` and use Amazon's root certificates.
fn is_commercial_or_govcloud(region: &Region) -> bool {
    let name = region.as_ref();
    let prefix = name.split('-').next().unwrap_or_default();
    let prefixes = ["af", "ap", "ca", "eu", "il", "me", "mx", "sa", "us"];
    prefixes.contains(&prefix) && !name.contains("-iso")
}

/// Opens a connection with an unsigned `GET /`, DynamoDB's health check.
async fn preconnect(connector: &SharedHttpConnector, url: &str) {
    let Ok(request) = HttpRequest::get(url) else {
        return;
    };
    let exchange = async {
        if let Ok(response) = connector.call(request).await {
            // The connection can be reused only once the response has been read to the end.
            let _ = ByteStream::new(response.into_body()).collect().await;
        }
    };
    // Ignores failures, because the first request connects again and reports any failure.
    let _ = timeout(CONNECT_TIMEOUT, exchange).await;
}

/// Builds an HTTPS connector. `ring` is smaller than aws-lc and starts without gathering entropy.
/// Only `workspacectl` passes a proxy.
///
/// # Errors
/// If a root certificate in the trust store is malformed.
pub fn https_connector(
    trust_store: TrustStore,
    proxy: Option<ProxyConfig>,
    settings: Option<HttpConnectorSettings>,
) -> Result<Connector, BoxError> {
    let tls = TlsContext::builder()
        .with_trust_store(trust_store)
        .build()?;
    let mut connector = Connector::builder()
        .tls_provider(Provider::rustls(CryptoMode::Ring))
        .tls_context(tls);
    connector.set_connector_settings(settings);
    connector.set_proxy_config(proxy);
    Ok(connector.build())
}

/// Builds the connector to DynamoDB. Trusts the root certificates in the file, if there is one.
/// Otherwise trusts Amazon's in commercial regions and GovCloud, and the system's elsewhere.
fn dynamodb_connector(
    region: &Region,
    ca_bundle_path: Option<&str>,
) -> Result<SharedHttpConnector, BoxError> {
    let trust_store = match ca_bundle_path {
        Some(path) => {
            let pem = fs::read(path).map_err(|error| format!("Cannot read {path}: {error}"))?;
            TrustStore::empty().with_pem_certificate(pem)
        }
        None if is_commercial_or_govcloud(region) => {
            TrustStore::empty().with_pem_certificate(AMAZON_ROOTS)
        }
        None => TrustStore::default(),
    };
    let settings = HttpConnectorSettings::builder().connect_timeout(CONNECT_TIMEOUT);
    let connector = https_connector(trust_store, None, Some(settings.build()))?;
    Ok(SharedHttpConnector::new(connector))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commercial_regions_and_govcloud_are_recognized() {
        for region in ["us-east-1", "eu-central-1", "mx-central-1", "us-gov-west-1"] {
            assert!(is_commercial_or_govcloud(&Region::new(region)), "{region}");
        }
        for region in [
            "cn-north-1",
            "us-iso-east-1",
            "us-isob-east-1",
            "eu-isoe-west-1",
            "eusc-de-east-1",
        ] {
            assert!(!is_commercial_or_govcloud(&Region::new(region)), "{region}");
        }
    }
}
