//! Connects to AWS, to a local DynamoDB and to the API.

use std::{
    collections::HashMap,
    io::{self, ErrorKind},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::{Chain, Result, bail};
use aws_sdk_dynamodb::config::http::{HttpRequest, HttpResponse};
use aws_smithy_http_client::{
    Builder as HttpClientBuilder, Connector, proxy::ProxyConfig, tls::TrustStore,
};
use aws_smithy_runtime_api::client::{
    http::{
        HttpClient as _, HttpConnector, HttpConnectorFuture, HttpConnectorSettings,
        SharedHttpClient, SharedHttpConnector, http_client_fn,
    },
    result::ConnectorError,
};
use aws_smithy_types::{body::SdkBody, byte_stream::ByteStream};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use rustls_native_certs::{load_certs_from_paths, load_native_certs};
use tokio::time::{error::Elapsed, timeout};
use webpki::anchor_from_trusted_cert;
use workspace_management::store::connection::{AMAZON_ROOTS, https_connector};

use crate::text::humanize;

/// How long an endpoint may send nothing. The API needs some of this time for a cold start.
const MAX_SILENCE: Duration = Duration::from_secs(15);

/// After this many timeouts, an endpoint may send nothing for [`SHORT_SILENCE`], and requests to an
/// endpoint that did not respond fail at once and are not retried. So even a command that sends
/// requests to many services, such as `doctor`, ends within a minute.
const MAX_TIMEOUTS: usize = 3;
const SHORT_SILENCE: Duration = Duration::from_secs(3);

/// How a command connects.
#[derive(Debug, Clone, Default)]
pub(crate) struct Http {
    /// The file with root certificates to use instead of the system's, if one is configured.
    ca_bundle: Option<String>,
    /// The number of timeouts of each endpoint since its last response.
    timeouts: Arc<Mutex<HashMap<String, usize>>>,
}

impl Http {
    pub(crate) fn new(ca_bundle: Option<String>) -> Self {
        Self {
            ca_bundle,
            ..Self::default()
        }
    }

    /// The HTTP client for a URL, such as `https:` for AWS. Fails if the file with root
    /// certificates is invalid.
    pub(crate) fn client(&self, url: &str) -> Result<SharedHttpClient> {
        let connector = connector_fn(url, self.ca_bundle.as_deref())?;
        let client = HttpClientBuilder::new()
            .build_with_connector_fn(move |settings, _| connector(settings.cloned()));
        let http = self.clone();
        Ok(http_client_fn(move |settings, components| {
            let connector = client.http_connector(settings, components);
            SharedHttpConnector::new(TimeoutConnector(connector, http.clone()))
        }))
    }

    /// The connector of a [`Self::client`], for requests that the SDK does not send.
    pub(crate) fn connector(&self, url: &str) -> Result<SharedHttpConnector> {
        let connector = connector_fn(url, self.ca_bundle.as_deref())?(None);
        let connector = TimeoutConnector(SharedHttpConnector::new(connector), self.clone());
        Ok(SharedHttpConnector::new(connector))
    }

    /// Whether all requests to the endpoint of a URL fail at once.
    pub(crate) fn is_given_up(&self, url: &str) -> bool {
        self.is_out_of_time() && self.timeouts().contains_key(endpoint_of(url))
    }

    fn is_out_of_time(&self) -> bool {
        self.timeouts().values().sum::<usize>() >= MAX_TIMEOUTS
    }

    fn timeouts(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.timeouts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The host and the port in a URL.
fn endpoint_of(url: &str) -> &str {
    url.split('/').nth(2).unwrap_or_default()
}

/// Returns a function that builds a connector. For https, the connector uses the proxy in the
/// environment, as the SDK's default connector does, and the Lambda function's TLS library, because
/// the SDK's takes half a minute to compile. For http, it is fast, without root certificates.
fn connector_fn(
    url: &str,
    ca_bundle: Option<&str>,
) -> Result<impl Fn(Option<HttpConnectorSettings>) -> Connector + use<>> {
    let is_http = url.starts_with("http:");
    let trust_store = (!is_http).then(|| trust_store(ca_bundle)).transpose()?;
    Ok(move |settings| match trust_store.clone() {
        Some(trust_store) => https_connector(trust_store, Some(ProxyConfig::from_env()), settings)
            .expect("checked root certificates"),
        None => {
            let mut builder = Connector::builder();
            builder.set_connector_settings(settings);
            builder.build_http()
        }
    })
}

/// The root certificates in a file, which replace the system's, as in the AWS CLI. Without a file,
/// the system's or, if the system has none, as in small containers, Amazon's.
fn trust_store(ca_bundle: Option<&str>) -> Result<TrustStore> {
    let Some(path) = ca_bundle else {
        return Ok(if load_native_certs().certs.is_empty() {
            TrustStore::empty().with_pem_certificate(AMAZON_ROOTS)
        } else {
            TrustStore::default()
        });
    };
    let bundle = load_certs_from_paths(Some(Path::new(path)), None);
    let mut certificates = String::new();
    // The connector would panic at a certificate that it cannot use.
    for certificate in bundle.certs {
        if anchor_from_trusted_cert(&certificate).is_ok() {
            let base64 = STANDARD.encode(certificate);
            certificates +=
                &format!("-----BEGIN CERTIFICATE-----\n{base64}\n-----END CERTIFICATE-----\n");
        }
    }
    if certificates.is_empty() {
        let error = bundle.errors.first().map(ToString::to_string);
        let error = error.unwrap_or_else(|| "it has no root certificates in PEM format".to_owned());
        bail!("cannot use the file {path}, which AWS_CA_BUNDLE or ca_bundle names: {error}");
    }
    Ok(TrustStore::empty().with_pem_certificate(certificates))
}

/// Limits the time for which an endpoint sends nothing, but not the time of a transfer.
#[derive(Debug)]
struct TimeoutConnector(SharedHttpConnector, Http);

impl HttpConnector for TimeoutConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let Self(connector, http) = self;
        let endpoint = endpoint_of(request.uri()).to_owned();
        if http.is_given_up(request.uri()) {
            let message = format!("{endpoint} does not respond");
            return HttpConnectorFuture::ready(Err(ConnectorError::user(message.into())));
        }
        let max_silence = if http.is_out_of_time() {
            SHORT_SILENCE
        } else {
            MAX_SILENCE
        };
        let is_unencrypted = request.uri().starts_with("http:");
        let (response, http) = (connector.call(request), http.clone());
        HttpConnectorFuture::new(async move {
            match receive(response, max_silence).await {
                Err(error) if error.is_timeout() => {
                    *http.timeouts().entry(endpoint).or_default() += 1;
                    if !http.is_out_of_time() {
                        return Err(error);
                    }
                    // The SDK does not retry this kind of error.
                    Err(ConnectorError::user(error.into()))
                }
                // Nothing listens at a local endpoint, so a retry would fail too.
                Err(error) if is_unencrypted && is_refused(&error) => {
                    Err(ConnectorError::user(error.into()))
                }
                result => {
                    http.timeouts().remove(&endpoint);
                    result
                }
            }
        })
    }
}

fn is_refused(error: &ConnectorError) -> bool {
    let errors = Chain::new(error).filter_map(|cause| cause.downcast_ref::<io::Error>());
    errors.map(io::Error::kind).last() == Some(ErrorKind::ConnectionRefused)
}

/// Receives a whole response.
async fn receive(
    response: HttpConnectorFuture,
    max_silence: Duration,
) -> Result<HttpResponse, ConnectorError> {
    let timeout_error = |_: Elapsed| {
        let message = format!("no response within {}", humanize(max_silence));
        ConnectorError::timeout(message.into())
    };
    let response = timeout(max_silence, response).await;
    let mut response = response.map_err(timeout_error)??;
    let mut body = ByteStream::new(response.take_body());
    let mut bytes = Vec::new();
    while let Some(chunk) = timeout(max_silence, body.next())
        .await
        .map_err(timeout_error)?
    {
        bytes.extend_from_slice(&chunk.map_err(|error| ConnectorError::io(error.into()))?);
    }
    *response.body_mut() = SdkBody::from(bytes);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
        time::{Instant, sleep},
    };

    use super::*;

    /// Starts a server that sends the head of a response at once and then a byte per interval.
    async fn start_server(interval: Duration) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let _ = socket.read(&mut [0; 1024]).await;
                    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n";
                    let _ = socket.write_all(head).await;
                    for byte in b"moved" {
                        sleep(interval).await;
                        let _ = socket.write_all(&[*byte]).await;
                    }
                });
            }
        });
        url
    }

    async fn get(
        connector: &SharedHttpConnector,
        url: &str,
    ) -> Result<HttpResponse, ConnectorError> {
        let request = HttpRequest::get(url).expect("a request");
        connector.call(request).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_response_is_received_whole() {
        let url = start_server(MAX_SILENCE / 2).await;
        let connector = Http::default().connector(&url).expect("a connector");
        let response = get(&connector, &url).await.expect("a response");
        assert_eq!(response.body().bytes(), Some(&b"moved"[..]));
    }

    #[tokio::test]
    async fn a_connection_that_a_local_endpoint_refuses_is_not_retried() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        drop(listener);
        for (scheme, is_retried) in [("http", false), ("https", true)] {
            let url = format!("{scheme}://{address}");
            let connector = Http::default().connector(&url).expect("a connector");
            let error = get(&connector, &url).await.expect_err("a refusal");
            assert_eq!(error.is_user(), !is_retried, "{scheme}: {error:?}");
            assert_eq!(error.is_io(), is_retried, "{scheme}: {error:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn requests_to_endpoints_that_stall_fail_within_a_minute_altogether() {
        let http = Http::default();
        let started = Instant::now();
        let mut timeouts = 0;
        for _service in 0..5 {
            let url = start_server(MAX_SILENCE * 2).await;
            let connector = http.connector(&url).expect("a connector");
            for _ in 0..10 {
                let error = get(&connector, &url).await.expect_err("a timeout");
                timeouts += 1;
                // The SDK retries a timeout, but not a user error.
                assert_eq!(error.is_timeout(), timeouts < MAX_TIMEOUTS, "{error:?}");
                assert_eq!(error.is_user(), timeouts >= MAX_TIMEOUTS, "{error:?}");
            }
        }
        let silence = MAX_SILENCE * 3 + SHORT_SILENCE * 4;
        assert_eq!(started.elapsed().as_secs(), silence.as_secs());
        assert!(silence < Duration::from_secs(60));
    }
}
