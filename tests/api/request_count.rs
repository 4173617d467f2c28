//! How many requests an operation sends to DynamoDB. The number does not depend on the machine.

use std::time::Duration;

use serde_json::json;
use workspace_local::demo::DEMO_KEY;
use workspace_management::operations::Operation;

use test_support::{TestApp, event_with_headers, keys_with_same_id};

const DATA_STORES: &str = "/api/v1/org/acme/dataStores/create";

fn take_actions(app: &TestApp) -> Vec<String> {
    let requests = app.take_requests().into_iter();
    requests.map(|request| request.action).collect()
}

#[tokio::test]
async fn a_second_request_with_a_key_only_writes_and_an_anonymous_request_reads_the_organization() {
    let app = TestApp::new().await;

    for operation in Operation::ALL {
        for header in [json!({ "authorization": DEMO_KEY }), json!({})] {
            let is_anonymous = header == json!({});
            if is_anonymous && !operation.is_key_optional() {
                continue;
            }
            let event = event_with_headers(*operation, header);
            // The cached values are too old.
            app.advance_clock(Duration::from_secs(60));
            for request in 0..3 {
                app.send(event.clone()).await.assert_success();
                let mut actions = take_actions(&app);
                // A transaction costs twice as much, so only operations that can write several
                // records send one.
                let write = match operation {
                    Operation::AddModels | Operation::AddTeamUsers => "TransactWriteItems",
                    Operation::SetBotVoice => "UpdateItem",
                    _ => "PutItem",
                };
                assert_eq!(actions.pop().as_deref(), Some(write), "{operation:?}");
                let reads = match (request, operation) {
                    (_, _) if is_anonymous => 1,
                    // The API key, then its organization, because the path does not name it.
                    (0, Operation::SetBotVoice) => 2,
                    // The API key with the organization, then the team.
                    (0, Operation::AddTeamUsers) => 2,
                    // The API key with the organization.
                    (0, _) => 1,
                    _ => 0,
                };
                assert_eq!(actions, vec!["BatchGetItem"; reads], "{operation:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_malformed_key_and_a_wrong_secret_of_a_cached_key_cause_no_read() {
    let app = TestApp::new().await;
    let [key, wrong_secret] = keys_with_same_id();
    app.insert_key(&key, "acme", |_| {}).await;
    let malformed = &key[..key.len() - 1];
    let client = app.client(&key);
    let body = json!({ "dataStoreName": "Papers" });
    client
        .post(DATA_STORES, body.clone())
        .await
        .assert_success();
    app.take_requests();

    for rejected in [malformed, &wrong_secret] {
        let response = app.client(rejected).post(DATA_STORES, body.clone()).await;
        response.assert_problem(401, "unauthenticated");
    }

    assert!(app.take_requests().is_empty());
    // The cached key is still accepted.
    client.post(DATA_STORES, body).await.assert_success();
    assert_eq!(take_actions(&app), ["PutItem"]);
}
