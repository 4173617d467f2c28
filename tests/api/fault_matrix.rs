//! Runs every operation under every fault of DynamoDB and the network: before and after a request
//! is executed, for one request and for all requests, and for reads and writes.

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
use workspace_management::{operations::Operation, service::Service};

use crate::operations::Sample;

#[derive(Debug, Clone, Copy)]
struct Cell {
    operation: Operation,
    fault: Fault,
    phase: Phase,
    /// Whether the writes have the fault, or the reads before them.
    writes: bool,
    /// Whether only one of these requests has the fault, or all of them.
    once: bool,
}

fn matrix() -> Vec<Cell> {
    let mut cells = Vec::new();
    for operation in Operation::ALL {
        for fault in FAULTS {
            for phase in [Phase::BeforeExecution, Phase::AfterExecution] {
                for writes in [true, false] {
                    // A read is not in a transaction.
                    if matches!(fault, Fault::Cancelled(_)) && !writes {
                        continue;
                    }
                    for once in [true, false] {
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
    }
    cells
}

impl Cell {
    /// The status of the response. The service retries after transient faults while it has time.
    fn expected_status(&self) -> u16 {
        match self.fault {
            Fault::Late => 204,
            Fault::Denied
            | Fault::Page(_)
            | Fault::Status(_, "ResourceNotFoundException" | "UnrecognizedClientException") => 500,
            Fault::Status(_, "ExpiredTokenException") => 503,
            _ if self.once => 204,
            _ => 503,
        }
    }

    async fn check(self) {
        /// For one attempt that times out (1.5 s), and the margin for the response (0.5 s).
        const SHORT_TIME_LIMIT: Duration = Duration::from_millis(2_300);
        const TIME_LIMIT: Duration = Duration::from_secs(10);
        let sample = Sample::example(self.operation);
        let app = TestApp::new().await;
        if sample.requires.is_some() {
            app.insert_demo_team().await;
        }
        let before = app.all_records().await;
        let is_faulty = Arc::new(AtomicBool::new(true));
        let service = self.hooked_service(&app, is_faulty.clone());
        let event = operation_event(self.operation);
        let time_limit = if self.once {
            TIME_LIMIT
        } else {
            SHORT_TIME_LIMIT
        };

        let response = send(&service, &event, time_limit).await;

        assert_eq!(response.status, self.expected_status(), "{response:?}");
        let has_retry_after = response.headers.contains_key("retry-after");
        assert_eq!(has_retry_after, response.status == 503, "{response:?}");
        let body = json!(response.body).to_string();
        for internal in ["Exception", "ServerError", "127.0.0.1", "test-", "table"] {
            assert!(!body.contains(internal), "{internal} in {body}");
        }
        let after = app.all_records().await;
        let is_written =
            response.status == 204 || (self.writes && self.phase == Phase::AfterExecution);
        if !is_written {
            assert_eq!(after, before);
        }

        // The client retries.
        is_faulty.store(false, Ordering::Relaxed);
        send(&service, &event, TIME_LIMIT).await.assert_success();
        let effect = app.all_records().await;
        let added = count(&effect) - count(&before);
        assert_eq!(added, sample.records.len(), "{effect:?}");
        if is_written {
            assert_eq!(effect, after);
        }
        send(&service, &event, TIME_LIMIT).await.assert_success();
        assert_eq!(app.all_records().await, effect);
    }

    /// A service whose requests to DynamoDB have the fault of the cell while `is_faulty` is true.
    fn hooked_service(self, app: &TestApp, is_faulty: Arc<AtomicBool>) -> Service {
        app.hooked_service(move |request| {
            if request.is_read() == self.writes {
                return None;
            }
            let has_fault = if self.once {
                is_faulty.swap(false, Ordering::Relaxed)
            } else {
                is_faulty.load(Ordering::Relaxed)
            };
            has_fault.then_some((self.fault, self.phase))
        })
    }
}

fn count(records: &BTreeMap<&str, Vec<Value>>) -> usize {
    records.values().flatten().count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_responds_and_loses_nothing_under_every_fault() {
    // By default, every fifth cell. These include every operation, fault and phase.
    let step = iterations(5, 1) as usize;
    let cells: Vec<_> = matrix().into_iter().step_by(step).collect();
    // Any DynamoDB except the embedded one is slower. With more cells at once, its responses would
    // be late.
    let is_embedded = env::var("TEST_DYNAMODB_ENDPOINT").is_err();
    let concurrency = if is_embedded { 48 } else { 12 };
    let results: Vec<_> = stream::iter(cells)
        .map(async |cell| (cell, tokio::spawn(cell.check()).await))
        .buffer_unordered(concurrency)
        .collect()
        .await;
    let mut failures = Vec::new();
    for (cell, result) in &results {
        if let Err(failure) = result {
            failures.push(format!("{cell:?}: {failure:?}"));
        }
    }
    println!("{} cells, {} failed", results.len(), failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[tokio::test]
async fn a_request_that_panics_gets_a_500_and_the_next_request_succeeds() {
    let app = TestApp::new().await;
    let service = app.hooked_service(|request| {
        assert!(request.number > 0, "injected panic");
        None
    });
    let event = operation_event(Operation::CreateDataStore);
    let time_limit = Duration::from_secs(10);

    let first = send(&service, &event, time_limit).await;
    let second = send(&service, &event, time_limit).await;

    first.assert_problem(500, "internal");
    assert!(!first.body.unwrap().to_string().contains("injected panic"));
    second.assert_success();
}
