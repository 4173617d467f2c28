//! How many instructions a warm request takes inside the service, for each operation.
//!
//! Counts vary by less than 1 % between runs, so they show changes that times cannot.
//! An HTTP client that responds at once replaces DynamoDB, so the count includes only the service
//! and the SDK. The numbered benchmarks are in the order of `Operation::ALL`.
//!
//! `cargo bench --package instructions` needs valgrind, and `gungraun-runner` in the version of the
//! `gungraun` crate.

#![allow(missing_docs, reason = "gungraun's macros generate items without docs")]

use std::{hint::black_box, time::SystemTime};

use gungraun::{
    Callgrind, EventKind, LibraryBenchmarkConfig, library_benchmark, library_benchmark_group, main,
};
use lambda_http::{Context, LambdaEvent, aws_lambda_events::apigw::ApiGatewayProxyResponse};
use serde_json::value::RawValue;
use tokio::runtime::{Builder, Runtime};
use workspace_local::{events, instant};
use workspace_management::{operation::Operation, service::Service};

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
            service: instant::service(),
            event: RawValue::from_string(events::get(operation).to_owned()).expect("JSON"),
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
