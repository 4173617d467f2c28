//! `Prefer: return=headers-only`, with which a client learns the id of what it stores, and whether
//! it existed. The unit tests of `event.rs` have
//! the headers of other sources of events.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use serde_json::json;
use test_support::{
    TestApp, TestClient, TestResponse, event,
    faults::{Fault, Phase},
    send,
};
use workspace_local::dynamodb::action;
use workspace_management::{operations::Operation, store::Table};

use crate::{
    openapi::{contract, find, resolve},
    operations::{Sample, Values},
};

const PREFER: &str = "return=headers-only";

/// The operations that accept the preference, as the contract says.
fn accepting() -> Vec<Operation> {
    let contract = contract();
    let accepts = |operation: &Operation| {
        let (_, description) = find(&contract, *operation);
        let mut parameters = description["parameters"].as_array().unwrap().iter();
        parameters.any(|parameter| resolve(&contract, parameter)["name"] == "Prefer")
    };
    let accepting: Vec<_> = Operation::ALL.iter().copied().filter(accepts).collect();
    assert!(accepting.len() >= 3, "{accepting:?}");
    accepting
}

/// The event of a request with the preference and an id of its own.
fn request(client: &TestClient<'_>, sample: &Sample, request_id: &str) -> serde_json::Value {
    let client = client.clone().header("Prefer", PREFER);
    let body = sample.body.to_string();
    let mut event = event("POST", &sample.path, &client.headers, Some(&body));
    event["requestContext"]["requestId"] = json!(request_id);
    event
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
    let acme = app.client_with_new_key("acme").await;
    let other = app.client_with_new_key("acme").await;
    let accepting = accepting();

    for operation in &accepting {
        let mut sample = Sample::of(*operation, &Values::example());
        let table = sample.records[0].table;
        for (client, request_id, state) in [
            (&acme, "first", "created"),
            (&acme, "retry", "existing"),
            (&other, "another key", "existing"),
        ] {
            let response = app.send(request(client, &sample, request_id)).await;
            assert_state(&response, state);
            let record = app.only_record(table).await;
            let derived =
                (table != Table::LOGGING_INSTANCES).then(|| &record[table.primary_key[1]]);
            let sent = response.headers.get("x-resource-id").map(|id| json!(id));
            assert_eq!(sent.as_ref(), derived, "{operation:?}");
        }
        // `TestResponse` checks that a failure has neither, and `operations` a request without it.
        sample.body = json!({});
        let response = app.send(request(&acme, &sample, "invalid")).await;
        response.assert_problem(422, "invalid_body");
    }

    app.insert_demo_team().await;
    let ignores = |operation: &&Operation| !accepting.contains(operation);
    for operation in Operation::ALL.iter().filter(ignores) {
        let sample = Sample::of(*operation, &Values::example());
        let response = app.send(request(&acme, &sample, "other")).await;
        response.assert_success();
        assert_eq!(response.headers.len(), 1, "{operation:?}: {response:?}");
    }
}

/// The SDK sends the write again, and finds the record that the first attempt has stored.
#[tokio::test]
async fn a_request_has_created_its_record_even_if_a_response_of_dynamodb_was_lost() {
    for operation in accepting() {
        let app = TestApp::new().await;
        let acme = app.client_with_new_key("acme").await;
        let was_lost = AtomicBool::new(false);
        let lost_once = move |request: &_| {
            let is_lost = action(request) == "PutItem" && !was_lost.swap(true, Ordering::Relaxed);
            is_lost.then_some((Fault::Closed, Phase::AfterExecution))
        };
        let service = app.faulty_service(lost_once);
        let sample = Sample::of(operation, &Values::example());

        let first = request(&acme, &sample, "first");
        let response = send(&service, &first, Duration::from_secs(10)).await;

        assert_state(&response, "created");
        let response = app.send(request(&acme, &sample, "retry")).await;
        assert_state(&response, "existing");
    }
}
