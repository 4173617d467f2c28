//! How many instructions one request takes inside the service, for each operation: the same on every run within a percent, so
//! that a change of a few percent is seen, and one of more than five fails. DynamoDB is a client that answers at once, so that the
//! service, with its metrics, and the SDK are all there is.
//!
//! `cargo bench --package instructions` needs valgrind and, of the same version as
//! the `gungraun` crate, `gungraun-runner`.

#![allow(missing_docs, reason = "gungraun's macros write items without")]

use std::hint::black_box;

use gungraun::{
    Callgrind, EventKind, LibraryBenchmarkConfig, library_benchmark, library_benchmark_group, main,
};
use lambda_runtime::{Context, LambdaEvent};
use serde_json::value::RawValue;
use tokio::runtime::{Builder, Runtime};
use workspace_local::{events, instant};
use workspace_management::{lambda::response::EventResponse, metrics::Metrics, service::Service};

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
    let runtime = Builder::new_current_thread().enable_all().build();
    let warm = Warm {
        runtime: runtime.expect("a runtime"),
        service: instant::service().with_metrics(Metrics::new("benchmark")),
        event: RawValue::from_string(events::get(operation).to_owned()).expect("JSON"),
    };
    let answer = serde_json::to_value(warm.answer()).expect("JSON");
    assert_eq!(answer["statusCode"], 204, "{answer}");
    warm
}

/// Fails at 5 % more than was measured.
fn near(instructions: u64) -> LibraryBenchmarkConfig {
    let mut callgrind = Callgrind::default();
    callgrind.hard_limits([(EventKind::Ir, instructions / 100 * 105)]);
    LibraryBenchmarkConfig::default().tool(callgrind).clone()
}

// What each took when it was last changed. Who makes one faster writes the new number here.
#[library_benchmark(setup = warm)]
#[bench::add_models(args = ("add_models"), config = near(941_000))]
#[bench::add_team_users(args = ("add_team_users"), config = near(916_000))]
#[bench::create_team(args = ("create_team"), config = near(829_000))]
#[bench::set_bot_voice(args = ("set_bot_voice"), config = near(905_000))]
#[bench::create_data_store(args = ("create_data_store"), config = near(798_000))]
#[bench::create_logging_instance(args = ("create_logging_instance"), config = near(814_000))]
fn answer(warm: Warm) -> (EventResponse, Warm) {
    let answer = black_box(warm.answer());
    (answer, warm)
}

library_benchmark_group!(name = operations, benchmarks = answer);
main!(library_benchmark_groups = operations);
