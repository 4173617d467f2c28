//! Retries: a request with identical content succeeds and changes nothing, from any caller.
//! `tools/workspacectl/tests/cli/keys.rs` has the test with a rotated key.

use std::time::Duration;

use serde_json::{Value, json};
use test_support::{TestApp, TestClient};
use workspace_management::{operations::Operation, records::Table};

use crate::operations::{ExpectedRecord, Sample};

/// Clients that may call an operation for `acme`: two with an API key, and one without if possible.
async fn clients(app: &TestApp, operation: Operation) -> Vec<TestClient<'_>> {
    let mut clients = vec![
        app.client_with_new_key("acme").await,
        app.client_with_new_key("acme").await,
    ];
    if operation.is_key_optional() {
        clients.push(app.anonymous_client());
    }
    clients
}

#[tokio::test]
async fn identical_content_succeeds_for_every_caller_and_changes_nothing() {
    for operation in Operation::ALL {
        let sample = Sample::example(*operation);
        for is_anonymous_first in [false, true] {
            let app = TestApp::new().await;
            app.insert_demo_team().await;
            let mut clients = clients(&app, *operation).await;
            if is_anonymous_first {
                clients.reverse();
            }
            sample.send(&clients[0], "create").await.assert_success();
            let created = app.all_records().await;

            for (number, client) in clients.iter().enumerate() {
                app.advance_clock(Duration::from_secs(1));
                let response = sample.send(client, &format!("retry-{number}")).await;
                response.assert_success();
                assert_eq!(app.all_records().await, created, "{operation:?}");
            }
        }
    }
}

/// The stored record with the primary key of the expected one.
async fn record(app: &TestApp, expected: &ExpectedRecord) -> Value {
    let mut records = app.records(expected.table).await;
    records.retain(|record| expected.matches_key(record));
    records.remove(0)
}

fn without(record: &Value, attribute: &str) -> Value {
    let mut record = record.clone();
    record.as_object_mut().unwrap().remove(attribute);
    record
}

/// A different program can have written or changed a record.
#[tokio::test]
async fn a_retry_succeeds_if_the_record_has_missing_or_additional_attributes() {
    let mut checked = 0;
    for operation in Operation::ALL {
        let sample = Sample::example(*operation);
        let app = TestApp::new().await;
        app.insert_demo_team().await;
        let clients = clients(&app, *operation).await;
        sample.send(&clients[0], "create").await.assert_success();
        let expected = &sample.records[0];
        let table = expected.table;
        let original = record(&app, expected).await;
        for attribute in original.as_object().unwrap().keys() {
            let is_content = expected.content.get(attribute).is_some();
            if is_content || table.primary_key_attributes.contains(&attribute.as_str()) {
                continue;
            }
            let incomplete = without(&original, attribute);
            app.insert(table, incomplete.clone()).await;

            sample.send(&clients[1], "retry").await.assert_success();

            let after = without(&record(&app, expected).await, attribute);
            assert_eq!(after, incomplete, "{operation:?} without {attribute}");
            checked += 1;
        }
        for value in [json!("x"), json!(1), json!([1, "x"]), json!({ "x": null })] {
            let mut extended = original.clone();
            extended["unknown"] = value;
            app.insert(table, extended.clone()).await;

            sample.send(&clients[1], "retry").await.assert_success();

            assert_eq!(record(&app, expected).await, extended, "{operation:?}");
        }
    }
    // `created_at`, `created_by` and `request_id` of each operation, and `updated_*` of the voice.
    assert!(checked >= 3 * Operation::ALL.len() + 2, "{checked}");
}

#[tokio::test]
async fn absent_null_and_empty_descriptions_are_equal_and_unknown_fields_are_ignored() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let team = "/api/v1/project/acme/apollo/createNewTeamOnProject";
    let data_store = "/api/v1/org/acme/dataStores/create";

    for body in [
        json!({ "teamName": "A", "dataStoreName": "A", "colour": { "red": 1 } }),
        json!({ "teamName": "A", "dataStoreName": "A", "teamDescription": null,
            "dataStoreDescription": null }),
        json!({ "teamName": "A", "dataStoreName": "A", "teamDescription": "",
            "dataStoreDescription": "" }),
    ] {
        acme.post(team, body.clone()).await.assert_success();
        acme.post(data_store, body).await.assert_success();
        let record = app.only_record(Table::TEAMS).await;
        assert_eq!(record["team_description"], "");
        let record = app.only_record(Table::DATA_STORES).await;
        assert_eq!(record["data_store_description"], "");
    }
}
