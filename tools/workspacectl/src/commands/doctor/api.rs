//! Checks the API: whether the function reads its tables and, with an API key, writes to them.

use std::{cell::Cell, time::Duration};

use anyhow::{Result, anyhow, ensure};
use aws_sdk_dynamodb::config::http::HttpRequest;
use aws_smithy_runtime_api::client::http::{HttpConnector as _, SharedHttpConnector};
use aws_smithy_types::{body::SdkBody, byte_stream::ByteStream};
use serde_json::Value;
use tokio::time::{Instant, sleep};
use workspace_management::operations::Operation;
use workspace_records::contract::{self, Request};

use super::{ORGANIZATION, Status};
use crate::{http::Http, key_record};

/// The wait before the first retry of a request. It doubles before each further retry.
const INITIAL_BACKOFF: Duration = Duration::from_secs(1);

/// The wait before the only retry after a 5xx. Three 5xx would raise alarms.
const SERVER_ERROR_WAIT: Duration = Duration::from_secs(20);

pub(super) struct Api {
    /// The URL of the API, without a slash at the end.
    base_url: String,
    http: Http,
    connector: SharedHttpConnector,
    /// When retries end. Until then, a request that gets a 429 or no response is retried.
    retry_until: Instant,
    /// Whether a request has been retried after a 5xx.
    retried_server_error: Cell<bool>,
}

struct Response {
    status: u16,
    /// The header `x-request-id`. Only responses from the function have this header.
    request_id: Option<String>,
    /// The problem document in the body (RFC 9457). Null if the body is not JSON.
    problem: Value,
}

impl Api {
    /// An API whose requests are retried for at most `retry_time` from now. Fails if the file with
    /// root certificates is invalid.
    pub(super) fn new(url: &str, retry_time: Duration, http: &Http) -> Result<Self> {
        Ok(Self {
            base_url: url.trim_end_matches('/').to_owned(),
            // All requests share the connector, because creating one parses the root certificates.
            connector: http.connector(url)?,
            http: http.clone(),
            retry_until: Instant::now() + retry_time,
            retried_server_error: Cell::new(false),
        })
    }

    /// Checks that the function rejects a well-formed API key that does not exist. To find out, the
    /// function must read the tables of keys and organizations, because the random key is not
    /// cached.
    pub(super) async fn check_rejects_unknown_key(&self) -> Result<Status> {
        let key = key_record::random_key()?;
        let started = Instant::now();
        // If the scheduled `doctor` stops, there are no more requests for this organization, and
        // `SilenceAlarm` in template.yaml fires.
        let request = example(Operation::CreateTeam, ORGANIZATION);
        let response = self.post_with_retries(&request, &key).await?;
        if response.problem_code() != Some("unauthenticated") {
            return Err(response.unexpected_response_error("KeysTable or OrganizationsTable"));
        }
        // This wording shows that the function received the key and so has read both tables.
        ensure!(
            response.detail().starts_with("This API key"),
            "responds as if no API key was sent: check that every proxy in front of the API forwards the header `authorization`"
        );
        let ms = started.elapsed().as_millis();
        let detail = format!("reads API keys and organizations, in {ms} ms");
        Ok(Status::Passed(detail))
    }

    /// Checks that an operation succeeds. Repeating its request in a later run changes nothing.
    pub(super) async fn check_operation(
        &self,
        operation: Operation,
        org: &str,
        key: &str,
    ) -> Result<Status> {
        let request = example(operation, org);
        let started = Instant::now();
        let response = self.post_with_retries(&request, key).await?;
        if response.status != 204 {
            return Err(response.unexpected_response_error(used_tables(operation)));
        }
        let ms = started.elapsed().as_millis();
        let detail = format!("writes its records, in {ms} ms");
        Ok(Status::Passed(detail))
    }

    /// Sends a request and, until `retry_until`, retries it.
    async fn post_with_retries(&self, request: &Request, key: &str) -> Result<Response> {
        let mut backoff = INITIAL_BACKOFF;
        loop {
            let response = self.post(request, key).await;
            let (is_retryable, wait) = match &response {
                Ok(response) if response.status >= 500 => {
                    (!self.retried_server_error.get(), SERVER_ERROR_WAIT)
                }
                Ok(response) => (response.status == 429, backoff),
                Err(_) => (!self.http.is_given_up(&self.base_url), backoff),
            };
            if !is_retryable || Instant::now() + wait > self.retry_until {
                return response;
            }
            if response.is_ok_and(|response| response.status >= 500) {
                self.retried_server_error.set(true);
            }
            sleep(wait).await;
            backoff *= 2;
        }
    }

    async fn post(&self, request: &Request, key: &str) -> Result<Response> {
        let mut http_request = HttpRequest::new(SdkBody::from(&*request.body));
        http_request.set_method("POST")?;
        http_request.set_uri(format!("{}{}", self.base_url, request.path))?;
        let headers = http_request.headers_mut();
        headers.insert("content-type", "application/json");
        headers.insert("authorization", format!("Bearer {key}"));
        // Not a `RequestError`, whose hints are about DynamoDB.
        let response = self
            .connector
            .call(http_request)
            .await
            .map_err(|connector_error| {
                let error = anyhow!(connector_error);
                let cause = error.root_cause();
                anyhow!("cannot connect: {cause}: check the network, start the service, or pass its URL with --url")
            })?;
        let status = response.status().as_u16();
        let request_id = response.headers().get("x-request-id").map(str::to_owned);
        let body = ByteStream::new(response.into_body()).collect().await?;
        Ok(Response {
            status,
            request_id,
            problem: serde_json::from_slice(&body.to_vec()).unwrap_or_default(),
        })
    }
}

impl Response {
    /// The code of the problem, if the response is from the function.
    fn problem_code(&self) -> Option<&str> {
        // Only the function sends an id.
        self.request_id.as_ref()?;
        self.problem["code"].as_str()
    }

    fn detail(&self) -> &str {
        self.problem["detail"].as_str().unwrap_or_default()
    }

    /// What the API did wrong, worded to follow the check's name. The request uses `used_tables`.
    fn unexpected_response_error(&self, used_tables: &str) -> anyhow::Error {
        let status = self.status;
        let id = self.request_id.as_deref().unwrap_or_default();
        match self.problem_code() {
            Some("unavailable") => anyhow!(
                "responds with 503, because the function cannot reach DynamoDB or is throttled by it: \
                check the function's variable AWS_ENDPOINT_URL_DYNAMODB, and search its log for the request id {id}"
            ),
            Some("internal") => anyhow!(
                "responds with 500, for example because the function's role lacks a permission on {used_tables} or a table variable is wrong: \
                search the function's log for the request id {id}"
            ),
            Some(code) => anyhow!("responds with {status} {code}: {}", self.detail()),
            None if status >= 500 => anyhow!(
                "responds with {status}, but the response is not from the function: check whether the function is throttled, crashes or times out"
            ),
            None => anyhow!(
                "responds with {status}, but the response is not from this service: check the URL"
            ),
        }
    }
}

/// The tables that a request for an operation reads or writes, besides the keys and organizations.
fn used_tables(operation: Operation) -> &'static str {
    match operation {
        Operation::AddModels => "ModelsTable",
        Operation::AddTeamUsers => "TeamsTable (read) or TeamMembersTable (write)",
        Operation::CreateTeam => "TeamsTable",
        Operation::SetBotVoice => "BotVoicesTable",
        Operation::CreateDataStore => "DataStoresTable",
        Operation::CreateLoggingInstance => "LoggingInstancesTable",
    }
}

/// The example of an operation in the contract, for an organization. It is valid only after the
/// requests for all earlier operations in [`Operation::ALL`].
fn example(operation: Operation, org: &str) -> Request {
    contract::example(operation, |parameter| match parameter {
        "org_id" => Some(org),
        // Derived from the name in the example of `create_team`.
        "team_id" => None,
        // Not the id in the example, which a customer's record can have.
        _ => Some(ORGANIZATION),
    })
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;

    /// Alarms need three 5xx.
    #[tokio::test]
    async fn a_run_sends_only_one_more_request_because_of_a_5xx() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let server = tokio::spawn(async move {
            for _ in 0..3 {
                let (mut stream, _) = listener.accept().await.expect("a connection");
                let mut request = [0; 4096];
                let _size = stream.read(&mut request).await.expect("a request");
                let response = "HTTP/1.1 503 \r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
                let written = stream.write_all(response.as_bytes()).await;
                written.expect("a response");
            }
        });
        tokio::time::pause();
        let api = Api::new(&url, Duration::from_secs(60), &Http::default()).expect("an API");
        for _ in 0..2 {
            let result = api.check_rejects_unknown_key().await;
            let error = result.err().expect("a 503").to_string();
            assert!(error.starts_with("responds with 503"), "{error}");
        }
        server.await.expect("two requests and one retry");
        // The server has stopped.
        let result = api.check_rejects_unknown_key().await;
        let error = result.err().expect("no response").to_string();
        assert!(error.starts_with("cannot connect: "), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn all_requests_to_an_api_that_does_not_respond_fail_within_a_minute() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (started, minute) = (Instant::now(), Duration::from_secs(60));
        let api = Api::new(&url, minute, &Http::default()).expect("an API");
        for _ in Operation::ALL {
            let result = api.check_rejects_unknown_key().await;
            let error = result.err().expect("a timeout").to_string();
            assert!(error.starts_with("cannot connect: "), "{error}");
        }
        assert!(started.elapsed() > minute / 2 && started.elapsed() < minute);
    }
}
