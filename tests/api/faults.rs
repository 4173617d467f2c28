//! Every operation under every failure of DynamoDB and of the network: before and after the write, once and for good.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use aws_sdk_dynamodb::config::retry::RetryPartition;
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use workspace_local::events;
use workspace_management::store::Table;

use crate::{
    injector::{FAULTS, Fault, Injector, When, action},
    support::{Answer, Setting, World, config, send, service, trials},
};

/// The operations, and where their records are.
const OPERATIONS: [(&str, Table); 6] = [
    ("add_models", Table::MODELS),
    ("add_team_users", Table::TEAM_MEMBERS),
    ("create_team", Table::TEAMS),
    ("set_bot_voice", Table::BOT_VOICES),
    ("create_data_store", Table::DATA_STORES),
    ("create_logging_instance", Table::LOGGING_INSTANCES),
];

/// One of the matrix' cells.
#[derive(Debug, Clone, Copy)]
struct Cell {
    operation: &'static str,
    table: Table,
    fault: Fault,
    when: When,
    /// Whether writes fail, or the reads before them.
    writes: bool,
    /// Whether one request fails, or all.
    once: bool,
}

fn matrix() -> Vec<Cell> {
    let mut cells = Vec::new();
    for (operation, table) in OPERATIONS {
        for fault in FAULTS {
            for when in [When::Before, When::After] {
                for writes in [true, false] {
                    // What only reads never meets another writer.
                    if matches!(fault, Fault::Cancels(..)) && !writes {
                        continue;
                    }
                    for once in [true, false] {
                        cells.push(Cell {
                            operation,
                            table,
                            fault,
                            when,
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
    /// The answers that the design allows to a caller: a failure that passes is waited for as long as there is time.
    fn allowed(&self) -> u16 {
        match (self.fault, self.once) {
            (Fault::Late, _) => 204,
            (
                Fault::Says(
                    _,
                    "AccessDeniedException"
                    | "ResourceNotFoundException"
                    | "UnrecognizedClientException",
                ),
                _,
            ) => 500,
            (Fault::Says(_, "ExpiredTokenException"), _) => 503,
            (_, true) => 204,
            (_, false) => 503,
        }
    }

    async fn hold(self) {
        let world = World::new().await;
        world.know_the_demo_key().await;
        if self.table == Table::TEAM_MEMBERS {
            let team = json!({ "project": "acme#apollo", "team_id": "research-team" });
            world.put(Table::TEAMS, team).await;
        }
        let failing = Arc::new(AtomicBool::new(true));
        let injector = Injector::new({
            let failing = failing.clone();
            move |request| {
                let is_write = !action(request).contains("Get");
                if is_write != self.writes {
                    return None;
                }
                let fails = if self.once {
                    failing.swap(false, Ordering::Relaxed)
                } else {
                    failing.load(Ordering::Relaxed)
                };
                fails.then_some((self.fault, self.when))
            }
        })
        .await;
        let config = config(&world.endpoint)
            .http_client(injector)
            // By itself, the SDK counts the failures of all clients of a process together.
            .retry_partition(RetryPartition::new(format!("{self:?}")));
        let service = service(config, world.tables.clone(), &Setting::default());
        let event: Value = serde_json::from_str(events::get(self.operation)).unwrap();
        let time = Duration::from_millis(if self.once { 10_000 } else { 2_300 });

        let answer = Answer::read(send(&service, event.clone(), time).await);

        assert_eq!(answer.status, self.allowed(), "{self:?}: {answer:?}");
        assert_eq!(
            answer.headers.contains_key("retry-after"),
            answer.status == 503,
            "{self:?}"
        );
        let body = json!(answer.body).to_string();
        for inside in [
            "Exception",
            "InternalServerError",
            "127.0.0.1",
            "test-",
            "table",
            "html",
        ] {
            assert!(!body.contains(inside), "{self:?}: {body}");
        }
        let written = world.records(self.table).await;
        let all = if self.operation.starts_with("add_") {
            2
        } else {
            1
        };
        let is_there = answer.status == 204 || (self.writes && self.when == When::After);
        assert_eq!(
            written.len(),
            if is_there { all } else { 0 },
            "{self:?}: {written:?}"
        );

        failing.store(false, Ordering::Relaxed);
        Answer::read(send(&service, event.clone(), Duration::from_secs(10)).await).is_success();
        let effect = world.records(self.table).await;
        assert_eq!(effect.len(), all, "{self:?}");
        if is_there {
            assert_eq!(effect, written, "{self:?}");
        }
        Answer::read(send(&service, event, Duration::from_secs(10)).await).is_success();
        assert_eq!(world.records(self.table).await, effect, "{self:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_keeps_its_word_under_every_fault() {
    // A quick run takes some cells of each operation, fault and time.
    let cells: Vec<_> = matrix()
        .into_iter()
        .step_by(trials(5, 1) as usize)
        .collect();
    let count = cells.len();
    let held = stream::iter(cells)
        .map(|cell| tokio::spawn(cell.hold()))
        .buffer_unordered(48)
        .collect::<Vec<_>>()
        .await;
    let broken = held.iter().filter(|held| held.is_err()).count();
    println!("{count} cells, {broken} broken");
    assert_eq!(broken, 0);
}

/// A rival's record makes the condition fail for real: it stays as it is, and nothing is added beside it.
#[tokio::test]
async fn a_failed_condition_leaves_what_is_there() {
    let rows = [
        (
            "add_models",
            Table::MODELS,
            json!({ "org_id": "acme", "model": "chat#gpt-4o", "id": 99 }),
        ),
        (
            "create_team",
            Table::TEAMS,
            json!({ "project": "acme#apollo", "team_id": "research-team", "team_name": "Rival" }),
        ),
        (
            "create_data_store",
            Table::DATA_STORES,
            json!({ "org_id": "acme", "data_store_id": "papers", "data_store_name": "PAPERS" }),
        ),
        (
            "create_logging_instance",
            Table::LOGGING_INSTANCES,
            json!({ "org_id": "acme", "project_id": "apollo", "project_name": "Rival" }),
        ),
    ];
    for (operation, table, rival) in rows {
        let world = World::new().await;
        world.know_the_demo_key().await;
        world.put(table, rival.clone()).await;

        let event = serde_json::from_str(events::get(operation)).unwrap();
        let answer = world.send(event).await;

        assert_eq!(answer.status, 409, "{operation}: {answer:?}");
        assert_eq!(world.records(table).await, [rival], "{operation}");
    }
}
