//! How many requests an operation sends to DynamoDB. The number does not depend on the machine.

use std::time::Duration;

use serde_json::json;
use workspace_management::operation::Operation;

use test_support::{TestApp, keys_with_same_id, operation_event};

const DATA_STORES: &str = "/api/v1/org/acme/dataStores/create";

#[tokio::test]
async fn a_warm_operation_sends_one_request_to_dynamodb() {
    let app = TestApp::new().await;
    app.insert_demo_key().await;

    for operation in Operation::ALL {
        let event = operation_event(*operation);
        // The caches of the operation before are no longer valid.
        app.advance_clock(Duration::from_secs(60));
        let mut requests = Vec::new();
        for _ in 0..3 {
            app.send(event.clone()).await.assert_success();
            requests.push(app.dynamodb_requests.take_actions());
        }

        let [first, warm @ ..] = &requests[..] else {
            unreachable!()
        };
        let (_, reads) = first.split_last().unwrap();
        let expected = match operation {
            // The API key, then its organization, which is not in the path of a voice. Or the API key
            // with the organization, then the team.
            Operation::SetBotVoice | Operation::AddTeamUsers => 2,
            // The API key with the organization. The events of two operations have no API key.
            _ => 1,
        };
        assert_eq!(reads, vec!["BatchGetItem"; expected], "{operation:?}");
        // A transaction costs twice as much, so it is sent only for several records.
        let write = match operation {
            Operation::AddModels | Operation::AddTeamUsers => "TransactWriteItems",
            Operation::SetBotVoice => "UpdateItem",
            _ => "PutItem",
        };
        for warm in warm {
            assert_eq!(*warm, [write], "{operation:?}");
        }
    }
}

#[tokio::test]
async fn a_malformed_key_and_a_wrong_secret_of_a_cached_key_cause_no_read() {
    let app = TestApp::new().await;
    let [key, key_with_other_secret] = keys_with_same_id();
    app.insert_key(&key, "acme", |_| {}).await;
    let (malformed, client) = (&key[..key.len() - 1], app.with_key(&key));
    let body = json!({ "dataStoreName": "Papers" });
    client
        .post(DATA_STORES, body.clone())
        .await
        .assert_success();
    app.dynamodb_requests.take();

    for rejected in [malformed, &key_with_other_secret] {
        let response = app.with_key(rejected).post(DATA_STORES, body.clone()).await;
        response.assert_problem(401, "unauthenticated");
    }

    assert!(app.dynamodb_requests.take().is_empty());
    // The cached key is still accepted.
    client.post(DATA_STORES, body).await.assert_success();
    assert_eq!(app.dynamodb_requests.take_actions(), ["PutItem"]);
}
