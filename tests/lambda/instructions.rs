//! How many instructions the function executes for a request. The number does not depend on the
//! load of the machine.

use std::fs;

use serde_json::json;
use test_support::{TestApp, event_with_headers};
use tokio::process::Command;
use workspace_local::demo::DEMO_KEY;
use workspace_management::operations::Operation;
use workspace_records::kinds::{Kind, api_tables};

use crate::function::{FOLDER, Function};

/// The instructions of the most expensive operation when this number was last changed, and 3% more.
const MAX_INSTRUCTIONS: u64 = 1_032_000 / 100 * 103;

/// Callgrind reports the instructions of a whole process, so this test compares two processes.
#[tokio::test]
#[ignore = "needs valgrind and the release build: run ci/build"]
async fn no_warm_request_takes_more_than_the_maximum_of_instructions() {
    for operation in Operation::ALL {
        let few = process_instructions(*operation, 10).await;
        let many = process_instructions(*operation, 30).await;
        let instructions = (many - few) / 20;
        println!("{}: {instructions} instructions", operation.name());
        assert!(instructions <= MAX_INSTRUCTIONS, "{instructions}");
    }
}

/// The instructions of a process that handles this many requests with an API key.
async fn process_instructions(operation: Operation, requests: u32) -> u64 {
    let app = TestApp::new().await;
    if operation == Operation::AddTeamUsers {
        app.insert_demo_team().await;
    }
    let prepared = app.all_records().await;
    let mut function = Function::start(&app, &[]).await;
    for _ in 0..requests {
        let event = event_with_headers(operation, json!({ "authorization": DEMO_KEY }));
        function.invoke(&event).await.assert_success();
        // Each request must create the records again.
        for table in api_tables() {
            for record in app.records(table).await {
                if !prepared[Kind::of(table).plural].contains(&record) {
                    app.remove(table, &record).await;
                }
            }
        }
    }

    let id = function.process.id().unwrap().to_string();
    let terminated = Command::new("kill").arg(&id).status().await.unwrap();
    assert!(terminated.success());
    function.process.wait().await.unwrap();
    let report = fs::read_to_string(format!("{FOLDER}/callgrind.out.{id}")).unwrap();
    let (_, totals) = report.split_once("\ntotals: ").unwrap();
    totals.lines().next().unwrap().parse().unwrap()
}
