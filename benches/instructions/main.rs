//! How many instructions one request takes inside the service, for each operation: the same on every run within a percent, so
//! that a change of a few percent is seen, and one of more than five fails. DynamoDB is a client that answers at once, so that the
//! service, with its metrics, and the SDK are all there is.
//!
//! `cargo bench --package instructions` needs valgrind and, of the same version as
//! the `gungraun` crate, `gungraun-runner`.

#![allow(missing_docs, reason = "gungraun's macros write items without")]

use std::{hint::black_box, time::Duration};

use aws_sdk_dynamodb::config::SharedHttpClient;
use aws_smithy_http_client::test_util::infallible_client_fn;
use aws_smithy_types::body::SdkBody;
use gungraun::{
    Callgrind, EventKind, LibraryBenchmarkConfig, library_benchmark, library_benchmark_group, main,
};
use lambda_runtime::{Context, LambdaEvent};
use serde_json::{json, value::RawValue};
use tokio::runtime::{Builder, Runtime};
use workspace_management::{
    auth::{AnonymousOperations, Auth},
    event::Service,
    key::ApiKey,
    metrics::Metrics,
    response::EventResponse,
    store::Store,
};
use workspacectl::{
    events,
    serve::{DEMO_KEY, DEMO_ORGANIZATION},
    tables::{local_config, logical_names},
};

/// A service that has answered the event before, and so remembers all that it can.
struct Warm {
    runtime: Runtime,
    service: Service,
    event: Box<RawValue>,
}

impl Warm {
    fn answer(&self) -> EventResponse {
        let event = LambdaEvent::new(self.event.clone(), Context::default());
        self.runtime.block_on(self.service.answer(event))
    }
}

fn warm(operation: &str) -> Warm {
    let (_, event) = events::ALL
        .into_iter()
        .find(|(name, _)| *name == operation)
        .expect("an operation");
    let config = local_config("http://localhost").http_client(dynamodb());
    let auth = Auth::new(AnonymousOperations::Allowed, Duration::from_secs(60));
    let warm = Warm {
        runtime: Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime"),
        service: Service::new(auth, Store::new(config, logical_names()))
            .with_metrics(Metrics::new("benchmark")),
        event: RawValue::from_string(event.to_owned()).expect("JSON"),
    };
    let answer = serde_json::to_value(warm.answer()).expect("JSON");
    assert_eq!(answer["statusCode"], 204, "{answer}");
    warm
}

/// A DynamoDB that has the demo key and whatever else is asked for, and takes all that is written.
fn dynamodb() -> SharedHttpClient {
    infallible_client_fn(|request: http::Request<SdkBody>| {
        let key = ApiKey::parse(DEMO_KEY).expect("a key");
        let item = json!({
            "key_id": { "S": key.id() },
            "org_id": { "S": DEMO_ORGANIZATION },
            "secret_sha256": { "S": key.digest() },
            "created_at": { "S": "2026-01-01T00:00:00Z" },
        });
        let target = request.headers().get("x-amz-target");
        let action = target.and_then(|target| target.to_str().ok()?.rsplit('.').next());
        let body = match action {
            Some("GetItem") => json!({ "Item": item }),
            Some("BatchGetItem") => {
                json!({ "Responses": { "KeysTable": [item], "TeamsTable": [item] } })
            }
            _ => json!({}),
        };
        http::Response::new(SdkBody::from(body.to_string()))
    })
}

/// Fails at 5 % more than was measured.
fn near(instructions: u64) -> LibraryBenchmarkConfig {
    let mut callgrind = Callgrind::default();
    callgrind.hard_limits([(EventKind::Ir, instructions / 100 * 105)]);
    LibraryBenchmarkConfig::default().tool(callgrind).clone()
}

// What each took when it was last changed. Who makes one faster writes the new number here.
#[library_benchmark(setup = warm)]
#[bench::add_models(args = ("add_models"), config = near(1_040_000))]
#[bench::add_team_users(args = ("add_team_users"), config = near(1_031_000))]
#[bench::create_team(args = ("create_team"), config = near(907_000))]
#[bench::set_bot_voice(args = ("set_bot_voice"), config = near(1_012_000))]
#[bench::create_data_store(args = ("create_data_store"), config = near(873_000))]
#[bench::create_logging_instance(args = ("create_logging_instance"), config = near(891_000))]
fn answer(warm: Warm) -> (EventResponse, Warm) {
    let answer = black_box(warm.answer());
    (answer, warm)
}

library_benchmark_group!(name = operations, benchmarks = answer);
main!(library_benchmark_groups = operations);
