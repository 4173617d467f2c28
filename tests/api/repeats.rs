//! Repeated requests: identical content succeeds and changes nothing, no matter who sends it.
//! `ctl/tests/cli/keys.rs` has the test with a rotated key.

use std::{env, time::Duration};

use serde_json::{Value, json};
use test_support::{TestApp, TestClient, event, parse, written_tables};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use workspace_management::{operation::Operation, store::Table};

use crate::operations::{Sample, Stored, Values};

/// Sends a sample with a request id of its own.
async fn send(client: &TestClient<'_>, sample: &Sample, request_id: &str) {
    let body = sample.body.to_string();
    let mut event = event("POST", &sample.path, &client.headers, Some(&body));
    event["requestContext"]["requestId"] = json!(request_id);
    client.app.send(event).await.assert_success();
}

/// An app with a team, and the callers of `acme` who may call an operation.
async fn app_with_callers(operation: Operation) -> (TestApp, Vec<(&'static str, Option<String>)>) {
    let app = TestApp::new().await;
    app.insert_demo_team().await;
    let mut callers = Vec::new();
    for description in ["a key", "another key"] {
        callers.push((description, Some(app.issue_key("acme", |_| {}).await)));
    }
    if operation.allows_anonymous() {
        callers.push(("anonymous", None));
    }
    (app, callers)
}

fn client<'a>(app: &'a TestApp, key: Option<&str>) -> TestClient<'a> {
    key.map_or_else(|| app.anonymous(), |key| app.with_key(key))
}

#[tokio::test]
async fn identical_content_succeeds_for_every_caller_and_changes_nothing() {
    for operation in Operation::ALL {
        let sample = Sample::of(*operation, &Values::example());
        let count = app_with_callers(*operation).await.1.len();
        for first in 0..count {
            let (app, mut callers) = app_with_callers(*operation).await;
            let (creator, key) = callers.remove(first);
            send(&client(&app, key.as_deref()), &sample, "create").await;
            let created = app.all_records().await;

            for (number, (caller, key)) in callers.iter().enumerate() {
                app.advance_clock(Duration::from_secs(1));
                let request_id = format!("repeat-{number}");
                send(&client(&app, key.as_deref()), &sample, &request_id).await;
                let after = app.all_records().await;
                assert_eq!(after, created, "{operation:?}: {creator}, then {caller}");
            }
        }
    }
}

/// Calls DynamoDB Streams. Signs nothing, which DynamoDB Local and the embedded DynamoDB accept.
async fn call_streams(app: &TestApp, action: &str, request: Value) -> Value {
    let host = app.endpoint.strip_prefix("http://").unwrap();
    let body = request.to_string();
    let length = body.len();
    // DynamoDB Local reads the region and the database from the credential.
    let request = format!(
        "POST / HTTP/1.0\r\n\
        Host: {host}\r\n\
        Authorization: AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, \
        SignedHeaders=host, Signature=none\r\n\
        X-Amz-Target: DynamoDBStreams_20120810.{action}\r\n\
        Content-Type: application/x-amz-json-1.0\r\n\
        Content-Length: {length}\r\n\r\n{body}"
    );
    let mut connection = TcpStream::connect(host).await.unwrap();
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    connection.read_to_string(&mut response).await.unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(" 200 "), "{action}: {response}");
    parse(body)
}

/// The names of the events in a table's change stream, the oldest first. Without those whose images
/// are equal, which only the embedded DynamoDB emits: for a write that changes nothing.
async fn events(app: &TestApp, table: Table) -> Vec<String> {
    let description = app.dynamodb.describe_table();
    let description = description.table_name(app.tables.name(table)).send();
    let description = description.await.unwrap();
    let stream = description.table().unwrap().latest_stream_arn().unwrap();
    let request = json!({ "StreamArn": stream });
    let description = call_streams(app, "DescribeStream", request).await;
    let shards = &description["StreamDescription"]["Shards"];
    assert_eq!(shards.as_array().unwrap().len(), 1, "{description}");
    let request = json!({
        "StreamArn": stream,
        "ShardId": shards[0]["ShardId"],
        "ShardIteratorType": "TRIM_HORIZON",
    });
    let mut page = call_streams(app, "GetShardIterator", request).await;
    page["NextShardIterator"] = page["ShardIterator"].take();

    let mut names = Vec::new();
    loop {
        let request = json!({ "ShardIterator": page["NextShardIterator"] });
        page = call_streams(app, "GetRecords", request).await;
        let events = page["Records"].as_array().unwrap();
        if events.is_empty() {
            return names;
        }
        let is_change = |event: &&Value| {
            let images = &event["dynamodb"];
            !is_embedded() || images["OldImage"] != images["NewImage"]
        };
        let changes = events.iter().filter(is_change);
        names.extend(changes.map(|event| event["eventName"].as_str().unwrap().to_owned()));
    }
}

fn is_embedded() -> bool {
    env::var("TEST_DYNAMODB_ENDPOINT").is_err()
}

/// A reader of the change streams sees each change once.
#[tokio::test]
async fn a_repeat_emits_no_stream_event() {
    if env::var("TEST_DYNAMODB_ENDPOINT").is_ok_and(|endpoint| endpoint.starts_with("https:")) {
        return; // On AWS, streams have another endpoint and need signed requests.
    }
    for operation in Operation::ALL {
        let sample = Sample::of(*operation, &Values::example());
        let (app, callers) = app_with_callers(*operation).await;
        let mut expected = Vec::new();
        for table in written_tables() {
            expected.push((table.noun, events(&app, table).await));
        }
        for (number, (_, key)) in callers.iter().enumerate() {
            app.advance_clock(Duration::from_secs(1));
            let request_id = format!("request-{number}");
            send(&client(&app, key.as_deref()), &sample, &request_id).await;
        }
        // A deletion is an event, so the events before it are there, too.
        for stored in &sample.records {
            app.delete(stored.table, stored.key.clone()).await;
        }

        for (table, (noun, mut expected)) in written_tables().zip(expected) {
            let count = sample.records.iter().filter(|stored| stored.table == table);
            let count = count.count();
            expected.extend(vec!["INSERT".to_owned(); count]);
            expected.extend(vec!["REMOVE".to_owned(); count]);
            assert_eq!(events(&app, table).await, expected, "{operation:?}: {noun}");
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
        let (app, callers) = app_with_callers(*operation).await;
        let [creator, other] = [0, 1].map(|index| app.with_key(callers[index].1.as_ref().unwrap()));
        send(&creator, &sample, "create").await;
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

            send(&other, &sample, "repeat").await;

            let after = without(&record(&app, stored).await, attribute);
            assert_eq!(after, incomplete, "{operation:?} without {attribute}");
            checked += 1;
        }
        for value in [json!("x"), json!(1), json!([1, "x"]), json!({ "x": null })] {
            let mut extended = original.clone();
            extended["unknown"] = value;
            app.insert_foreign(stored.table, extended.clone()).await;

            send(&other, &sample, "repeat").await;

            assert_eq!(record(&app, stored).await, extended, "{operation:?}");
        }
    }
    // `created_at`, `created_by` and `request_id` of each kind, and the voice's `updated_*`.
    assert!(checked >= 3 * Operation::ALL.len() + 2, "{checked}");
}

#[tokio::test]
async fn absent_null_and_empty_descriptions_are_equal() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let team = "/api/v1/project/acme/apollo/createNewTeamOnProject";
    let data_store = "/api/v1/org/acme/dataStores/create";

    for (path, table, name, description) in [
        (team, Table::TEAMS, "teamName", "teamDescription"),
        (
            data_store,
            Table::DATA_STORES,
            "dataStoreName",
            "dataStoreDescription",
        ),
    ] {
        let bodies = [
            json!({ name: "Papers" }),
            json!({ name: "Papers", description: null }),
            json!({ name: "Papers", description: "" }),
        ];
        for body in bodies {
            acme.post(path, body).await.assert_success();
        }
        app.only_record(table).await;
    }
}
