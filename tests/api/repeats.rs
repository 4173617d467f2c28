//! Repeated requests: identical content succeeds and changes nothing, no matter who sends it.
//! `ctl/tests/cli/keys.rs` has the test with a rotated key.

use std::time::Duration;

use serde_json::{Value, json};
use test_support::{TestApp, TestClient, event};
use workspace_management::{operations::Operation, store::Table};

use crate::operations::{Sample, Stored, Values};

/// Sends a sample with a request id of its own.
async fn send(client: &TestClient<'_>, sample: &Sample, request_id: &str) {
    let body = sample.body.to_string();
    let mut event = event("POST", &sample.path, &client.headers, Some(&body));
    event["requestContext"]["requestId"] = json!(request_id);
    client.app.send(event).await.assert_success();
}

/// The callers of `acme` who may call an operation.
async fn callers(app: &TestApp, operation: Operation) -> Vec<TestClient<'_>> {
    let mut callers = vec![
        app.client_with_new_key("acme").await,
        app.client_with_new_key("acme").await,
    ];
    if operation.allows_anonymous() {
        callers.push(app.anonymous());
    }
    callers
}

#[tokio::test]
async fn identical_content_succeeds_for_every_caller_and_changes_nothing() {
    for operation in Operation::ALL {
        let sample = Sample::of(*operation, &Values::example());
        for is_anonymous_first in [false, true] {
            let app = TestApp::new().await;
            app.insert_demo_team().await;
            let mut callers = callers(&app, *operation).await;
            if is_anonymous_first {
                callers.reverse();
            }
            send(&callers[0], &sample, "create").await;
            let created = app.all_records().await;

            for (number, caller) in callers.iter().enumerate() {
                app.advance_clock(Duration::from_secs(1));
                send(caller, &sample, &format!("repeat-{number}")).await;
                assert_eq!(app.all_records().await, created, "{operation:?}");
            }
        }
    }
}

/// The record that a sample stored.
async fn record(app: &TestApp, stored: &Stored) -> Value {
    let records = app.records(stored.table).await;
    let mut records = records.into_iter();
    records.find(|record| stored.is_key_of(record)).unwrap()
}

/// A record without one of its attributes.
fn without(record: &Value, attribute: &str) -> Value {
    let mut record = record.clone();
    record.as_object_mut().unwrap().remove(attribute);
    record
}

/// Another program can have written or changed a record.
#[tokio::test]
async fn a_repeat_succeeds_on_a_record_with_missing_or_additional_attributes() {
    let mut checked = 0;
    for operation in Operation::ALL {
        let sample = Sample::of(*operation, &Values::example());
        let app = TestApp::new().await;
        app.insert_demo_team().await;
        let callers = callers(&app, *operation).await;
        send(&callers[0], &sample, "create").await;
        let stored = &sample.records[0];
        let original = record(&app, stored).await;
        let attributes = original.as_object().unwrap().keys();
        let is_not_compared = |name: &&String| {
            stored.content.get(name.as_str()).is_none()
                && !stored.table.primary_key.contains(&name.as_str())
        };
        for attribute in attributes.filter(is_not_compared) {
            let incomplete = without(&original, attribute);
            app.insert_foreign(stored.table, incomplete.clone()).await;

            send(&callers[1], &sample, "repeat").await;

            let after = without(&record(&app, stored).await, attribute);
            assert_eq!(after, incomplete, "{operation:?} without {attribute}");
            checked += 1;
        }
        for value in [json!("x"), json!(1), json!([1, "x"]), json!({ "x": null })] {
            let mut extended = original.clone();
            extended["unknown"] = value;
            app.insert_foreign(stored.table, extended.clone()).await;

            send(&callers[1], &sample, "repeat").await;

            assert_eq!(record(&app, stored).await, extended, "{operation:?}");
        }
    }
    // `created_at`, `created_by` and `request_id` of each kind, and the voice's `updated_*`.
    assert!(checked >= 3 * Operation::ALL.len() + 2, "{checked}");
}

#[tokio::test]
async fn absent_null_and_empty_descriptions_are_equal_and_unknown_members_are_ignored() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let team = "/api/v1/project/acme/apollo/createNewTeamOnProject";
    let data_store = "/api/v1/org/acme/dataStores/create";

    for (path, table, field, attribute) in [
        (team, Table::TEAMS, "team", "team_description"),
        (
            data_store,
            Table::DATA_STORES,
            "dataStore",
            "data_store_description",
        ),
    ] {
        let (name, description) = (format!("{field}Name"), format!("{field}Description"));
        for body in [
            json!({ &name: "Papers", "colour": { "red": 1 } }),
            json!({ &name: "Papers", &description: null }),
            json!({ &name: "Papers", &description: "" }),
        ] {
            acme.post(path, body).await.assert_success();
            assert_eq!(app.only_record(table).await[attribute], "");
        }
    }
}
