//! Every operation under every fault of DynamoDB and the network: before and after the request is
//! executed, for one request and for all of them.

use std::{
    collections::BTreeMap,
    env,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use test_support::{
    TestApp,
    faults::{FAULTS, Fault, Phase},
    iterations, operation_event, send,
};
use workspace_local::dynamodb::is_read;
use workspace_management::{operations::Operation, service::Service};

use crate::operations::{Sample, Values};

/// A cell of the matrix.
#[derive(Debug, Clone, Copy)]
struct Cell {
    operation: Operation,
    fault: Fault,
    phase: Phase,
    /// Whether writes fail, or the reads before them.
    writes: bool,
    /// Whether one request fails, or all of them.
    once: bool,
}

fn matrix() -> Vec<Cell> {
    let mut cells = Vec::new();
    for operation in Operation::ALL {
        for fault in FAULTS {
            for phase in [Phase::BeforeExecution, Phase::AfterExecution] {
                for (writes, once) in [(true, true), (true, false), (false, true), (false, false)] {
                    // Reads do not conflict with other writers.
                    if matches!(fault, Fault::Cancelled(..)) && !writes {
                        continue;
                    }
                    cells.push(Cell {
                        operation: *operation,
                        fault: *fault,
                        phase,
                        writes,
                        once,
                    });
                }
            }
        }
    }
    cells
}

type Records = BTreeMap<&'static str, Vec<Value>>;

fn count(records: &Records) -> BTreeMap<&'static str, usize> {
    let counts = records.iter();
    counts
        .map(|(table, records)| (*table, records.len()))
        .collect()
}

impl Cell {
    /// The status that the caller gets. The service retries transient faults while it has time.
    fn expected_status(&self) -> u16 {
        match (self.fault, self.once) {
            (Fault::Late, _) => 204,
            (
                Fault::Status(
                    _,
                    "AccessDeniedException"
                    | "ResourceNotFoundException"
                    | "UnrecognizedClientException",
                ),
                _,
            ) => 500,
            (Fault::Status(_, "ExpiredTokenException"), _) => 503,
            (_, true) => 204,
            (_, false) => 503,
        }
    }

    async fn check(self) {
        let app = TestApp::new().await;
        app.insert_demo_key().await;
        app.prepare(self.operation).await;
        let before = app.all_records().await;
        let is_faulty = Arc::new(AtomicBool::new(true));
        let service = self.faulty_service(&app, is_faulty.clone());
        let event = operation_event(self.operation);
        let time_limit = Duration::from_millis(if self.once { 10_000 } else { 2_300 });

        let response = send(&service, &event, time_limit).await;

        assert_eq!(response.status, self.expected_status(), "{response:?}");
        let has_retry_after = response.headers.contains_key("retry-after");
        assert_eq!(has_retry_after, response.status == 503, "{response:?}");
        let body = json!(response.body).to_string();
        for internal in [
            "Exception",
            "InternalServerError",
            "127.0.0.1",
            "test-",
            "table",
        ] {
            assert!(!body.contains(internal), "{internal} in {body}");
        }
        let after = app.all_records().await;
        let is_written =
            response.status == 204 || (self.writes && self.phase == Phase::AfterExecution);
        if !is_written {
            assert_eq!(after, before);
        }

        // The client repeats the request.
        is_faulty.store(false, Ordering::Relaxed);
        let time_limit = Duration::from_secs(10);
        send(&service, &event, time_limit).await.assert_success();
        let effect = app.all_records().await;
        assert_eq!(count(&effect), self.expected_counts(&before), "{effect:?}");
        if is_written {
            assert_eq!(effect, after);
        }
        send(&service, &event, time_limit).await.assert_success();
        assert_eq!(app.all_records().await, effect);
    }

    /// A service whose requests to DynamoDB fail as the cell says, while `is_faulty` is set.
    fn faulty_service(self, app: &TestApp, is_faulty: Arc<AtomicBool>) -> Service {
        app.faulty_service(move |request| {
            let is_write = !is_read(request);
            if is_write != self.writes {
                return None;
            }
            let fails = if self.once {
                is_faulty.swap(false, Ordering::Relaxed)
            } else {
                is_faulty.load(Ordering::Relaxed)
            };
            fails.then_some((self.fault, self.phase))
        })
    }

    /// How many records each table has after the event.
    fn expected_counts(&self, before: &Records) -> BTreeMap<&'static str, usize> {
        let mut counts = count(before);
        let written = Sample::of(self.operation, &Values::example()).records;
        for record in written {
            *counts.get_mut(record.table.noun).unwrap() += 1;
        }
        counts
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_responds_and_loses_nothing_under_every_fault() {
    // By default, a selection with every operation, fault and phase.
    let step = iterations(5, 1) as usize;
    let cells: Vec<_> = matrix().into_iter().step_by(step).collect();
    let total = cells.len();
    // Others are slower, and more cells at once would make their responses late.
    let is_embedded = env::var("TEST_DYNAMODB_ENDPOINT").is_err();
    let concurrency = if is_embedded { 48 } else { 12 };
    let failures: Vec<String> = stream::iter(cells)
        .map(async |cell| {
            let failure = tokio::spawn(cell.check()).await.err()?;
            let panic = failure.into_panic();
            let message = panic.downcast_ref::<String>();
            let message = message.map_or("panicked", String::as_str);
            Some(format!("{cell:?}: {message}"))
        })
        .buffer_unordered(concurrency)
        .filter_map(async |failure| failure)
        .collect()
        .await;
    println!("{total} cells, {} failed", failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
