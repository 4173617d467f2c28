//! With `Prefer: return=headers-only`, a response has the id of the record, and says whether it
//! existed. The unit tests of `event.rs` cover headers from other event sources.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use serde_json::json;
use test_support::{
    TestApp, TestClient, TestResponse,
    faults::{Fault, Phase},
    send,
};
use workspace_local::dynamodb::action;
use workspace_management::{operations::Operation, store::Table};

use crate::{
    openapi::{contract, find_operation, resolve},
    operations::Sample,
};

const PREFER: &str = "return=headers-only";

/// The operations that accept the preference according to the contract.
fn accepting_operations() -> Vec<Operation> {
    let contract = contract();
    let mut operations = Vec::new();
    for operation in Operation::ALL {
        let (_, description) = find_operation(&contract, *operation);
        for parameter in description["parameters"].as_array().unwrap() {
            if resolve(&contract, parameter)["name"] == "Prefer" {
                operations.push(*operation);
            }
        }
    }
    assert!(operations.len() >= 3, "{operations:?}");
    operations
}

/// A client with a new key that sends the preference.
async fn client_with_prefer(app: &TestApp) -> TestClient<'_> {
    let client = app.client_with_new_key("acme").await;
    client.header("Prefer", PREFER)
}

#[track_caller]
fn assert_state(response: &TestResponse, state: &str) {
    response.assert_success();
    assert_eq!(response.headers["x-resource-state"], state, "{response:?}");
    assert_eq!(response.headers["preference-applied"], PREFER);
}

#[tokio::test]
async fn a_response_has_the_id_and_says_whether_the_request_has_created_the_record() {
    let app = TestApp::new().await;
    let acme = client_with_prefer(&app).await;
    let second_key = client_with_prefer(&app).await;
    let accepting = accepting_operations();

    for operation in &accepting {
        let mut sample = Sample::example(*operation);
        let table = sample.records[0].table;
        for (client, request_id, state) in [
            (&acme, "constant", "created"),
            (&acme, "constant", "existing"),
            (&second_key, "second key", "existing"),
        ] {
            let response = sample.send(client, request_id).await;
            assert_state(&response, state);
            let id = json!(response.headers.get("x-resource-id"));
            if table == Table::LOGGING_INSTANCES {
                assert!(id.is_null(), "no id is derived from the name: {id}");
            } else {
                let sort_key = table.primary_key_attributes[1];
                assert_eq!(id, app.only_record(table).await[sort_key]);
            }
        }
        // `TestResponse` checks that a problem has no id and no state. The tests in `operations`
        // check this for requests without the preference.
        sample.body = json!({});
        let response = sample.send(&acme, "invalid").await;
        response.assert_problem(422, "invalid_body");
    }

    app.insert_demo_team().await;
    for operation in Operation::ALL {
        if !accepting.contains(operation) {
            let response = Sample::example(*operation).send(&acme, "ignored").await;
            response.assert_success();
            assert_eq!(response.headers.len(), 1, "{operation:?}: {response:?}");
        }
    }
}

/// The SDK retries the write, and finds the record that the first attempt stored.
#[tokio::test]
async fn the_state_is_created_even_if_the_first_response_from_dynamodb_is_lost() {
    for operation in accepting_operations() {
        let app = TestApp::new().await;
        let acme = client_with_prefer(&app).await;
        let was_lost = AtomicBool::new(false);
        let service = app.faulty_service(move |request| {
            if action(request) != "PutItem" || was_lost.swap(true, Ordering::Relaxed) {
                return None;
            }
            Some((Fault::Closed, Phase::AfterExecution))
        });
        let sample = Sample::example(operation);

        let event = sample.event(&acme.headers, "first");
        let response = send(&service, &event, Duration::from_secs(10)).await;

        assert_state(&response, "created");
        let response = sample.send(&acme, "retry").await;
        assert_state(&response, "existing");
    }
}
