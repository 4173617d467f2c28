//! Checks the API of a deployment with a request that the function cannot respond to without
//! DynamoDB.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use aws_sdk_dynamodb::config::http::HttpRequest;
use aws_smithy_http_client::Connector;
use aws_smithy_runtime_api::client::http::{HttpConnector as _, SharedHttpConnector};
use aws_smithy_types::{body::SdkBody, byte_stream::ByteStream};
use serde_json::Value;
use tokio::time::timeout;

use crate::{commands::keys::NewKey, deployment::connector, text::humanize};

/// How long the API may take to respond, including a cold start.
const TIMEOUT: Duration = Duration::from_secs(15);

/// The request that is sent. The function reads its key and its organization together.
const PATH: &str = "/api/v1/project/doctor/doctor/createNewTeamOnProject";

/// Checks that the service rejects a well-formed API key that does not exist. The key is random, so
/// the function has not cached it: it must read the tables of keys and organizations.
pub(super) async fn check(url: &str) -> Result<String> {
    let key = NewKey::generate("doctor", "", None, None)?.key;
    let mut request = HttpRequest::new(SdkBody::from("{}"));
    request.set_method("POST")?;
    request.set_uri(format!("{}{PATH}", url.trim_end_matches('/')))?;
    let headers = request.headers_mut();
    headers.insert("content-type", "application/json");
    headers.insert("authorization", format!("Bearer {key}"));
    let started = Instant::now();
    let response = timeout(TIMEOUT, send(request)).await.with_context(|| {
        let time = humanize(TIMEOUT);
        format!("no response within {time}: check the URL and the network to it")
    })?;
    let (status, request_id, body) = response?;
    let problem = serde_json::from_slice(&body).unwrap_or_default();
    judge(status, request_id.as_deref(), &problem)?;
    let time = started.elapsed().as_millis();
    Ok(format!("reads API keys and organizations, in {time} ms"))
}

/// Whether a response shows that the function has read the tables. `request_id` is the one that the
/// function sends.
fn judge(status: u16, request_id: Option<&str>, problem: &Value) -> Result<()> {
    match (status, request_id, problem["code"].as_str()) {
        (401, Some(_), Some("unauthenticated")) if has_no_key(problem) => bail!(
            "responds as if no API key was sent: let what is between clients and the API pass the header `authorization`"
        ),
        (401, Some(_), Some("unauthenticated")) => Ok(()),
        (503, Some(id), Some("unavailable")) => bail!(
            "responds with 503, because the function cannot reach DynamoDB or is throttled by it: \
            check the function's variable AWS_ENDPOINT_URL_DYNAMODB, and search its log for the request id {id}"
        ),
        (500, Some(id), Some("internal")) => bail!(
            "responds with 500, such as when the function's role lacks a permission or a table variable is wrong: \
            search the function's log for the request id {id}"
        ),
        (500.., _, _) => bail!(
            "responds with {status}, but the function does not: check whether it is throttled, crashes or times out"
        ),
        _ => bail!("responds with {status}, but not as this service does: check the URL"),
    }
}

/// Whether a 401 is the one for a request without an API key, which needs no DynamoDB.
fn has_no_key(problem: &Value) -> bool {
    let detail = problem["detail"].as_str();
    detail.is_none_or(|detail| detail.starts_with("No API key"))
}

/// Sends a request. Returns the status, the `x-request-id` and the body of the response.
async fn send(request: HttpRequest) -> Result<(u16, Option<String>, Vec<u8>)> {
    let connector = if request.uri().starts_with("https:") {
        connector(None)
    } else {
        Connector::builder().build_http()
    };
    let response = SharedHttpConnector::new(connector).call(request).await;
    // As text, because the hint for this error is about DynamoDB.
    let response = response.map_err(|error| {
        let error = anyhow!(error);
        let cause = error.root_cause();
        anyhow!("cannot connect: {cause}: start the service, or name its URL with --url")
    })?;
    let status = response.status().as_u16();
    let request_id = response.headers().get("x-request-id").map(str::to_owned);
    let body = ByteStream::new(response.into_body()).collect().await?;
    Ok((status, request_id, body.to_vec()))
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_api_that_does_not_respond_fails() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let error = check(&url).await.expect_err("a timeout").to_string();
        assert!(
            error.starts_with("no response within 15 seconds"),
            "{error}"
        );
    }
}
