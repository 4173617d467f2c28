//! How DynamoDB is reached: region, credentials, TLS and endpoint, out of the function's environment.
//!
//! The SDK's own default chain reads files and tries sources in turn, and its TLS gathers entropy for 33 ms and parses every
//! root certificate of the system. Lambda hands over all there is to know in variables.

use std::{fs, time::Duration};

use aws_config::{
    BehaviorVersion, Region, default_provider::credentials::DefaultCredentialsChain,
    provider_config::ProviderConfig,
};
use aws_sdk_dynamodb::config::{Builder, Credentials, http::HttpRequest};
use aws_smithy_http_client::{
    Connector,
    tls::{Provider, TlsContext, TrustStore, rustls_provider::CryptoMode},
};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorSettings, SharedHttpConnector, http_client_fn,
};
use aws_smithy_types::byte_stream::ByteStream;
use tokio::time::timeout;

use crate::error::Cause;

/// The roots that certificates of AWS's endpoints lead to: Amazon Trust Services' four and Starfield's, which signed them
/// across. The first of them ends in 2037.
const AMAZON_ROOTS: &[u8] = include_bytes!("amazon-roots.pem");

/// How long a connection to DynamoDB may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// The SDK's configuration that the variables ask for, as `variable` reads them: `None` for what is not set or empty.
/// The connection that the first request will use is open, unless DynamoDB could not be reached within a second: that
/// shows when a request tries again.
///
/// Where they hold no credentials, those of a profile, a web identity, a container or SnapStart are found as the SDK finds
/// them, and refreshed before they expire.
///
/// # Errors
/// If there is no region, if the endpoint is no URL, or if a certificate file cannot be read.
pub async fn connect(variable: impl Fn(&str) -> Option<String>) -> Result<Builder, Cause> {
    let region = variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION"));
    let region = Region::new(region.ok_or("the environment variable AWS_REGION is not set")?);
    let connector = connector(&region, &variable)?;
    let shared = connector.clone();
    // The SDK would make a connector, and read the roots, for itself once more than it needs.
    let http_client = http_client_fn(move |_, _| shared.clone());
    let mut config = Builder::new()
        .behavior_version(BehaviorVersion::latest())
        .http_client(http_client.clone())
        .region(region.clone());
    let endpoint = variable("AWS_ENDPOINT_URL_DYNAMODB").or_else(|| variable("AWS_ENDPOINT_URL"));
    let is_url = |url: &str| url.starts_with("http://") || url.starts_with("https://");
    if let Some(url) = endpoint.as_deref().filter(|url| !is_url(url)) {
        return Err(
            format!("AWS_ENDPOINT_URL_DYNAMODB must be an http or https URL, not {url:?}").into(),
        );
    }
    let is_on = |name| variable(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let (fips, dual_stack) = (
        is_on("AWS_USE_FIPS_ENDPOINT"),
        is_on("AWS_USE_DUALSTACK_ENDPOINT"),
    );
    let usual = (is_public(&region) && !fips && !dual_stack)
        .then(|| format!("https://dynamodb.{region}.amazonaws.com"));
    if let Some(url) = endpoint.as_ref().or(usual.as_ref()) {
        open(&connector, url).await;
    }
    config.set_endpoint_url(endpoint);
    config
        .set_use_fips(Some(fips))
        .set_use_dual_stack(Some(dual_stack));
    let access = variable("AWS_ACCESS_KEY_ID").zip(variable("AWS_SECRET_ACCESS_KEY"));
    Ok(match access {
        Some((id, secret)) => {
            let token = variable("AWS_SESSION_TOKEN");
            config.credentials_provider(Credentials::new(id, secret, token, None, "environment"))
        }
        None => {
            let lookup = ProviderConfig::without_region()
                .with_region(Some(region))
                .with_http_client(http_client);
            let chain = DefaultCredentialsChain::builder().configure(lookup);
            config.credentials_provider(chain.build().await)
        }
    })
}

/// Whether a region is one of AWS's public partition or of GovCloud, whose endpoints have certificates of Amazon's roots.
fn is_public(region: &Region) -> bool {
    let areas = [
        "af-", "ap-", "ca-", "eu-", "il-", "me-", "mx-", "sa-", "us-",
    ];
    let region = region.as_ref();
    areas.iter().any(|area| region.starts_with(area)) && !region.contains("-iso")
}

/// Opens a connection by a request that is not signed and that DynamoDB answers with a word on its health.
async fn open(connector: &SharedHttpConnector, url: &str) {
    let Ok(request) = HttpRequest::get(url) else {
        return;
    };
    let answered = async {
        let response = connector.call(request).await.ok()?;
        // A connection is used again when its response is read to the end.
        ByteStream::new(response.into_body()).collect().await.ok()
    };
    let _ = timeout(CONNECT_TIMEOUT, answered).await;
}

/// HTTP over TLS with `ring`, which starts without gathering entropy and is smaller than aws-lc.
///
/// `AWS_CA_BUNDLE` or `SSL_CERT_FILE` name other roots than Amazon's; in the partitions apart, such as China's, the system's
/// are trusted.
fn connector(
    region: &Region,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<SharedHttpConnector, Cause> {
    let file = variable("AWS_CA_BUNDLE").or_else(|| variable("SSL_CERT_FILE"));
    let trusted = match file {
        Some(file) => {
            let read =
                fs::read(&file).map_err(|error| format!("{file} cannot be read: {error}"))?;
            TrustStore::empty().with_pem_certificate(read)
        }
        None if !is_public(region) => TrustStore::default(),
        None => TrustStore::empty().with_pem_certificate(AMAZON_ROOTS),
    };
    let settings = HttpConnectorSettings::builder().connect_timeout(CONNECT_TIMEOUT);
    let connector = Connector::builder()
        .connector_settings(settings.build())
        .tls_provider(Provider::rustls(CryptoMode::Ring))
        .tls_context(TlsContext::builder().with_trust_store(trusted).build()?)
        .build();
    Ok(SharedHttpConnector::new(connector))
}
