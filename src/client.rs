//! How DynamoDB is reached: region, credentials, TLS and endpoint, out of the function's environment.
//!
//! The SDK's own default chain reads files and tries sources in turn, and its TLS gathers entropy for 33 ms and parses every
//! root certificate of the system. Lambda hands over all there is to know in variables.

use std::fs;

use aws_config::{
    BehaviorVersion, Region, default_provider::credentials::DefaultCredentialsChain,
    provider_config::ProviderConfig,
};
use aws_sdk_dynamodb::config::{Builder, Credentials, SharedHttpClient};
use aws_smithy_http_client::{
    Builder as HttpBuilder,
    tls::{Provider, TlsContext, TrustStore, rustls_provider::CryptoMode},
};

use crate::error::Cause;

/// The roots that certificates of AWS's endpoints lead to: Amazon Trust Services' four and Starfield's, which signed them
/// across. The first of them ends in 2037.
const AMAZON_ROOTS: &[u8] = include_bytes!("amazon-roots.pem");

/// The SDK's configuration that the variables ask for, as `variable` reads them: `None` for what is not set or empty.
///
/// Where they hold no credentials, those of a profile, a web identity, a container or SnapStart are found as the SDK finds
/// them, and refreshed before they expire.
///
/// # Errors
/// If there is no region, if the endpoint is no URL, or if a certificate file cannot be read.
pub async fn configure(variable: impl Fn(&str) -> Option<String>) -> Result<Builder, Cause> {
    let region = variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION"));
    let region = Region::new(region.ok_or("the environment variable AWS_REGION is not set")?);
    let http_client = http_client(&region, &variable)?;
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

/// HTTP over TLS with `ring`, which starts without gathering entropy and is smaller than aws-lc.
///
/// `AWS_CA_BUNDLE` or `SSL_CERT_FILE` name other roots than Amazon's; in the partitions apart, such as China's, the system's
/// are trusted.
fn http_client(
    region: &Region,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<SharedHttpClient, Cause> {
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
    let context = TlsContext::builder().with_trust_store(trusted).build()?;
    Ok(HttpBuilder::new()
        .tls_provider(Provider::rustls(CryptoMode::Ring))
        .tls_context(context)
        .build_https())
}
