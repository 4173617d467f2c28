//! Checks the API of a deployment with a request.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use aws_sdk_dynamodb::config::http::HttpRequest;
use aws_smithy_http_client::{
    Connector,
    tls::{Provider, rustls_provider::CryptoMode},
};
use aws_smithy_runtime_api::client::http::{HttpConnector as _, SharedHttpConnector};
use aws_smithy_types::{body::SdkBody, byte_stream::ByteStream};
use serde_json::Value;
use tokio::time::timeout;

use crate::output::humanize;

/// How long the API may take to respond, including a cold start.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Checks that the service responds to a request without an API key with its 401.
pub(super) async fn check(url: &str) -> Result<String> {
    let mut request = HttpRequest::new(SdkBody::from("{}"));
    request.set_method("POST")?;
    let path = "/api/v1/bot/playground/doctor/voice";
    request.set_uri(format!("{}{path}", url.trim_end_matches('/')))?;
    request
        .headers_mut()
        .insert("content-type", "application/json");
    let started = Instant::now();
    let response = timeout(TIMEOUT, send(request));
    let (status, request_id, body) = response
        .await
        .with_context(|| format!("no response within {}", humanize(TIMEOUT)))??;
    let problem: Value = serde_json::from_slice(&body).unwrap_or_default();
    match (status, request_id, problem["code"].as_str()) {
        (401, Some(_), Some("unauthenticated")) => {
            Ok(format!("responds in {} ms", started.elapsed().as_millis()))
        }
        (500.., Some(id), _) => {
            bail!("responds with {status}: search the function's log for the request id {id}")
        }
        _ => bail!("responds with {status}, but not as this service does: check the URL"),
    }
}

/// Sends a request. Returns the status, the `x-request-id` and the body of the response.
async fn send(request: HttpRequest) -> Result<(u16, Option<String>, Vec<u8>)> {
    let connector = Connector::builder()
        .tls_provider(Provider::rustls(CryptoMode::Ring))
        .build();
    let response = SharedHttpConnector::new(connector)
        .call(request)
        .await
        .context("cannot connect")?;
    let status = response.status().as_u16();
    let request_id = response.headers().get("x-request-id").map(str::to_owned);
    let body = ByteStream::new(response.into_body()).collect().await?;
    Ok((status, request_id, body.to_vec()))
}
