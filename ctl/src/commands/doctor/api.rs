//! Checks the API of a deployment: that the function reads its tables and, with an API key, that it
//! writes them.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use aws_sdk_dynamodb::config::http::HttpRequest;
use aws_smithy_http_client::Connector;
use aws_smithy_runtime_api::client::http::{HttpConnector as _, SharedHttpConnector};
use aws_smithy_types::{body::SdkBody, byte_stream::ByteStream};
use serde_json::{Value, json};
use tokio::time::{Instant as Deadline, sleep, timeout};
use workspace_management::{operations::Operation, store::Table};

use crate::{commands::keys::NewKey, deployment::connector, text::humanize};

/// How long the API may take to respond, including a cold start.
const TIMEOUT: Duration = Duration::from_secs(15);

/// The wait before a request is sent again. It doubles each time.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// An API that is checked.
pub(super) struct Api {
    url: String,
    /// Until then, a request is sent again after a 429, a 5xx or no response.
    retry_until: Deadline,
}

/// A response of the API.
struct Response {
    status: u16,
    /// The header `x-request-id`, which only the function sends.
    request_id: Option<String>,
    /// The problem document, or null.
    problem: Value,
}

impl Api {
    /// `retries` is how long failed requests are repeated, all of them together.
    pub(super) fn new(url: &str, retries: Duration) -> Self {
        Self {
            url: format!("{}/api/v1", url.trim_end_matches('/')),
            retry_until: Deadline::now() + retries,
        }
    }

    /// Checks that the service rejects a well-formed API key that does not exist. The key is random, so
    /// the function has not cached it: it must read the tables of keys and organizations. The path has
    /// the organization `doctor`, whose requests the alarm on silence counts.
    pub(super) async fn check_reads(&self) -> Result<String> {
        let key = NewKey::generate("doctor", "", None, None)?.key;
        let started = Instant::now();
        let path = "project/doctor/doctor/createNewTeamOnProject";
        let response = self.post(path, &key, &json!({})).await?;
        match (response.status, response.code()) {
            (401, Some("unauthenticated")) if response.is_for_no_key() => bail!(
                "responds as if no API key was sent: let what is between clients and the API pass the header `authorization`"
            ),
            (401, Some("unauthenticated")) => {}
            _ => return Err(response.failure("KeysTable or OrganizationsTable")),
        }
        let time = started.elapsed().as_millis();
        Ok(format!("reads API keys and organizations, in {time} ms"))
    }

    /// Checks that an operation stores a record. The request is the same in each run, so that later runs
    /// change nothing.
    pub(super) async fn check_writes(
        &self,
        operation: Operation,
        org: &str,
        key: &str,
    ) -> Result<String> {
        let (table, path, body) = request(operation, org);
        let started = Instant::now();
        let response = self.post(&path, key, &body).await?;
        if response.status != 204 {
            return Err(response.failure(table.logical_id));
        }
        let time = started.elapsed().as_millis();
        Ok(format!("writes {}, in {time} ms", table.logical_id))
    }

    /// Sends a request, and sends it again for a while if it fails.
    async fn post(&self, path: &str, key: &str, body: &Value) -> Result<Response> {
        let mut wait = FIRST_WAIT;
        loop {
            let sent = timeout(TIMEOUT, self.send(path, key, body)).await;
            let response = sent.unwrap_or_else(|_| {
                let time = humanize(TIMEOUT);
                Err(anyhow!(
                    "no response within {time}: check the URL and the network to it"
                ))
            });
            let failed = match &response {
                Ok(response) => response.status == 429 || response.status >= 500,
                Err(_) => true,
            };
            if !failed || Deadline::now() + wait > self.retry_until {
                return response;
            }
            sleep(wait).await;
            wait *= 2;
        }
    }

    async fn send(&self, path: &str, key: &str, body: &Value) -> Result<Response> {
        let mut request = HttpRequest::new(SdkBody::from(body.to_string()));
        request.set_method("POST")?;
        request.set_uri(format!("{}/{path}", self.url))?;
        let headers = request.headers_mut();
        headers.insert("content-type", "application/json");
        headers.insert("authorization", format!("Bearer {key}"));
        let connector = if self.url.starts_with("https:") {
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
        Ok(Response {
            status,
            request_id,
            problem: serde_json::from_slice(&body.to_vec()).unwrap_or_default(),
        })
    }
}

impl Response {
    /// The code of a problem of the function.
    fn code(&self) -> Option<&str> {
        self.request_id.as_ref().and(self.problem["code"].as_str())
    }

    /// Whether a 401 is the one for a request without an API key, which needs no DynamoDB.
    fn is_for_no_key(&self) -> bool {
        let detail = self.problem["detail"].as_str();
        detail.is_none_or(|detail| detail.starts_with("No API key"))
    }

    /// What is wrong, and what to do next. `tables` are those that the request uses.
    fn failure(&self, tables: &str) -> anyhow::Error {
        let Self {
            status, request_id, ..
        } = self;
        let id = request_id.as_deref().unwrap_or_default();
        match self.code() {
            Some("unavailable") => anyhow!(
                "responds with 503, because the function cannot reach DynamoDB or is throttled by it: \
                check the function's variable AWS_ENDPOINT_URL_DYNAMODB, and search its log for the request id {id}"
            ),
            Some("internal") => anyhow!(
                "responds with 500, such as when the function's role lacks a permission on {tables} or a table variable is wrong: \
                search the function's log for the request id {id}"
            ),
            Some(code) => {
                let detail = self.problem["detail"].as_str().unwrap_or_default();
                anyhow!("responds with {status} {code}: {detail}")
            }
            None if *status >= 500 => anyhow!(
                "responds with {status}, but the function does not: check whether it is throttled, crashes or times out"
            ),
            None => {
                anyhow!("responds with {status}, but not as this service does: check the URL")
            }
        }
    }
}

/// A valid request for an operation, after those for the operations before it, and the table that it
/// writes.
fn request(operation: Operation, org: &str) -> (Table, String, Value) {
    let project = format!("project/{org}/doctor");
    match operation {
        Operation::AddModels => (
            Table::MODELS,
            format!("org/{org}/addModelsToOrg/doctor"),
            json!({ "aIModelsSelectedToAddToOrg": [{ "id": 1, "modelid": "doctor" }] }),
        ),
        Operation::CreateTeam => (
            Table::TEAMS,
            format!("{project}/createNewTeamOnProject"),
            json!({ "teamName": "doctor" }),
        ),
        Operation::AddTeamUsers => (
            Table::TEAM_MEMBERS,
            format!("{project}/doctor/addUsersToTheTeam"),
            json!({ "usersAddingToTeam": [{ "userid": "doctor" }] }),
        ),
        Operation::SetBotVoice => (
            Table::BOT_VOICES,
            "bot/playground/doctor/voice".to_owned(),
            json!({ "type": "doctor", "enabled": false }),
        ),
        Operation::CreateDataStore => (
            Table::DATA_STORES,
            format!("org/{org}/dataStores/create"),
            json!({ "dataStoreName": "doctor" }),
        ),
        Operation::CreateLoggingInstance => (
            Table::LOGGING_INSTANCES,
            format!("{project}/createLoggingInstance"),
            json!({ "projectName": "doctor" }),
        ),
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_api_that_does_not_respond_fails_after_a_minute() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (started, minute) = (Deadline::now(), Duration::from_secs(60));
        let error = Api::new(&url, minute).check_reads().await;
        let error = error.expect_err("a timeout").to_string();
        assert!(
            error.starts_with("no response within 15 seconds"),
            "{error}"
        );
        assert!(started.elapsed() > minute / 2 && started.elapsed() < 2 * minute);
    }
}
