//! How many instructions a warm request takes inside the service, for each operation.
//!
//! Counts vary by less than 1 % between runs, so they show changes that times cannot.
//! An HTTP client that responds at once replaces DynamoDB, so the count includes only the service
//! and the SDK. The numbered benchmarks are in the order of `Operation::ALL`.
//!
//! `cargo bench --package instructions` needs valgrind, and `gungraun-runner` in the version of the
//! `gungraun` crate.

#![allow(missing_docs, reason = "gungraun's macros generate items without docs")]

use std::{
    convert::Infallible,
    fs,
    hint::black_box,
    time::{Duration, SystemTime},
};

use aws_sdk_dynamodb::config::{
    BehaviorVersion, Builder as ConfigBuilder, Credentials, Region,
    http::{HttpRequest, HttpResponse},
};
use aws_smithy_runtime_api::{
    client::http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn},
    http::StatusCode,
};
use aws_smithy_types::body::SdkBody;
use gungraun::{
    Callgrind, EventKind, LibraryBenchmarkConfig, library_benchmark, library_benchmark_group, main,
};
use lambda_http::{Context, LambdaEvent, aws_lambda_events::apigw::ApiGatewayProxyResponse};
use serde_json::{Value, json, value::RawValue};
use tokio::runtime::{Builder, Runtime};
use workspace_management::{
    api_key::ApiKey,
    auth::AnonymousOperations,
    operation::Operation,
    service::Service,
    store::{Store, TableNames},
};

/// The instructions of the most expensive event when this number was last changed, plus 5 %.
const MAX_INSTRUCTIONS: u64 = 910_000 / 100 * 105;

/// A service that has handled the event before, so that everything is cached.
struct Warm {
    runtime: Runtime,
    service: Service,
    event: Box<RawValue>,
}

impl Warm {
    fn new(operation: Operation) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build();
        let warm = Self {
            runtime: runtime.expect("a runtime"),
            service: service(),
            event: RawValue::from_string(event(operation)).expect("JSON"),
        };
        let response = serde_json::to_value(warm.handle()).expect("JSON");
        assert_eq!(response["statusCode"], 204, "{operation:?}: {response}");
        warm
    }

    fn handle(&self) -> ApiGatewayProxyResponse {
        let event = LambdaEvent::new(self.event.clone(), Context::default());
        self.runtime
            .block_on(self.service.handle(event, SystemTime::now()))
    }
}

/// The event of an operation in `events/`.
fn event(operation: Operation) -> String {
    let events = concat!(env!("CARGO_MANIFEST_DIR"), "/../../events");
    fs::read_to_string(format!("{events}/{}.json", operation.name())).expect("an event")
}

/// A service that caches API keys for an hour, with a DynamoDB that responds at once.
fn service() -> Service {
    let connector = SharedHttpConnector::new(Instant::new());
    let config = ConfigBuilder::new()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "local"))
        .http_client(http_client_fn(move |_, _| connector.clone()));
    let Ok(tables) = TableNames::new(|table| Ok::<_, Infallible>(table.logical_id.to_owned()));
    let store = Store::new(config, tables, Duration::from_secs(3600));
    Service::new(store, AnonymousOperations::Allowed)
}

/// A DynamoDB that has one item under every key, and accepts every write.
#[derive(Debug)]
struct Instant {
    item: Value,
}

impl Instant {
    /// The item is the record of the events' key, and also that of its organization.
    fn new() -> Self {
        let event: Value = serde_json::from_str(&event(Operation::CreateTeam)).expect("JSON");
        let credential = event["headers"]["authorization"].as_str();
        let key = credential.and_then(|credential| credential.strip_prefix("Bearer "));
        let key = key.and_then(ApiKey::parse).expect("an API key");
        let attributes = [
            ("key_id", key.id),
            ("org_id", "acme"),
            ("secret_sha256", &key.secret_sha256()),
            ("created_at", "2026-01-01T00:00:00.000Z"),
            ("org_request_id", "setup"),
            ("request_id", "setup"),
        ];
        let attribute = |(name, text): (&str, &str)| (name.to_owned(), json!({ "S": text }));
        let item = attributes.into_iter().map(attribute).collect();
        Self { item }
    }
}

impl HttpConnector for Instant {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (item, target) = (&self.item, request.headers().get("x-amz-target"));
        let body = match target {
            Some("DynamoDB_20120810.BatchGetItem") => json!({
                "Responses": { "KeysTable": [item], "OrganizationsTable": [item], "TeamsTable": [item] }
            }),
            _ => json!({}),
        };
        let status = StatusCode::try_from(200).expect("a valid status");
        let response = HttpResponse::new(status, SdkBody::from(body.to_string()));
        HttpConnectorFuture::ready(Ok(response))
    }
}

fn limit() -> LibraryBenchmarkConfig {
    let mut callgrind = Callgrind::default();
    callgrind.hard_limits([(EventKind::Ir, MAX_INSTRUCTIONS)]);
    LibraryBenchmarkConfig::default().tool(callgrind).clone()
}

#[library_benchmark(config = limit())]
#[benches::operation(iter = Operation::ALL.iter().copied(), setup = Warm::new)]
fn handle(warm: Warm) -> (ApiGatewayProxyResponse, Warm) {
    let response = black_box(warm.handle());
    (response, warm)
}

library_benchmark_group!(name = requests, benchmarks = handle);
main!(library_benchmark_groups = requests);
