//! With `Prefer: return=headers-only`, a response has the id of the record, and says whether it
//! existed.

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
use workspace_management::{operations::Operation, records::Table};
use workspace_records::contract::Description;

use crate::operations::{Sample, pointers};

const PREFER: &str = "return=headers-only";

/// The operations that accept the preference according to the contract.
fn accepting_operations() -> Vec<Operation> {
    let mut operations = Vec::new();
    for operation in Operation::ALL {
        let parameters = &Description::of(*operation).object["parameters"];
        for parameter in parameters.as_sequence().unwrap() {
            if parameter["$ref"] == "#/components/parameters/Prefer" {
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
        // Emulators use the same id for every request.
        for (client, request_id, state) in [
            (&acme, "constant", "created"),
            (&acme, "constant", "existing"),
            (&second_key, "second key", "existing"),
        ] {
            app.advance_clock(Duration::from_millis(1));
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
            assert_eq!(response.headers.len(), 2, "{operation:?}: {response:?}");
        }
    }
}

#[tokio::test]
async fn a_preference_can_have_white_space_quotes_parameters_and_any_case() {
    let app = TestApp::new().await;
    let sample = Sample::example(Operation::CreateDataStore);
    for (values, expected) in [
        (&[][..], ""),
        (&[PREFER], PREFER),
        (&["Return=Headers-Only"], PREFER),
        (
            &["respond-async, wait=10", "\t, return=headers-only"],
            PREFER,
        ),
        (&["return = headers-only"], PREFER),
        (&[r#"return="headers-only""#], PREFER),
        (&[r#"return="headers\-only""#], PREFER),
        (&[r#"return=headers-only; foo="a, b=\"c""#], PREFER),
        (&["return=headers-only;foo ; "], PREFER),
        (&["return=headers-only", "return=minimal"], PREFER),
        (
            &["return=headers-only, handling=strict"],
            "return=headers-only, handling=strict",
        ),
        (&["handling\t=\t\"STRICT\", a"], "handling=strict"),
        (&["handling=lenient", "handling=strict"], ""),
        (&["return=minimal, return=headers-only"], ""),
        (&["return, return=headers-only"], ""),
        (&["return; return=headers-only"], ""),
        (&[r#"foo="a, return=headers-only, b""#], ""),
        (&[r#"foo="\", return=headers-only""#], ""),
        (&[r#"foo="a, return=headers-only"#], ""),
        (&["foo; return=headers-only"], ""),
        (&[r#"handling="str\\ict""#, "return=headers-only foo"], ""),
        (
            &[
                "return==headers-only",
                "headers-only",
                "noreturn=headers-only",
                "strict",
            ],
            "",
        ),
    ] {
        let mut event = sample.event(&Default::default(), "request");
        event["multiValueHeaders"] = json!({ "Prefer": values });
        let response = app.send(event).await;
        response.assert_success();
        let applied = response.headers.get("preference-applied");
        assert_eq!(applied.map_or("", String::as_str), expected, "{values:?}");
    }
}

#[tokio::test]
async fn unknown_fields_are_ignored_unless_the_client_prefers_strict_handling() {
    const APPLIED: &str = "preference-applied";
    let app = TestApp::new().await;
    app.insert_demo_team().await;
    let acme = app.client_with_new_key("acme").await;
    let strict = acme.clone().header("prefer", "handling=strict");
    for operation in Operation::ALL {
        let sample = Sample::example(*operation);
        for pointer in pointers(&sample.body) {
            let mut misspelled = sample.clone();
            let value = misspelled.body.pointer_mut(&pointer).unwrap();
            if !value.is_object() {
                continue;
            }
            value["descripton"] = json!("Reads papers");

            let response = misspelled.send(&strict, "strict").await;
            response.assert_problem(422, "invalid_body");
            assert_eq!(response.headers[APPLIED], "handling=strict");
            let errors = response.body.unwrap()["errors"].take();
            assert_eq!(errors.as_array().unwrap().len(), 1, "{errors}");
            let violation = &errors[0];
            assert_eq!(violation["rule"], "additionalProperties");
            assert_eq!(violation["pointer"], format!("#{pointer}/descripton"));

            let response = misspelled.send(&acme, "lenient").await;
            response.assert_success();
            assert!(!response.headers.contains_key(APPLIED), "{response:?}");
        }
        let both = strict
            .clone()
            .header("prefer", "return=headers-only, handling=strict");
        let response = sample.send(&both, "both").await;
        response.assert_success();
        assert!(response.headers[APPLIED].ends_with("handling=strict"));
    }
}

/// The SDK retries the write, and finds the record that the first attempt stored.
#[tokio::test]
async fn the_state_is_created_even_if_the_first_response_from_dynamodb_is_lost() {
    for operation in accepting_operations() {
        let app = TestApp::new().await;
        let acme = client_with_prefer(&app).await;
        let was_lost = AtomicBool::new(false);
        let service = app.hooked_service(move |request| {
            if request.action != "PutItem" || was_lost.swap(true, Ordering::Relaxed) {
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
