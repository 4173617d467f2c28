//! How many requests an operation sends to DynamoDB. The number does not depend on the machine.

use std::time::Duration;

use serde_json::json;
use workspace_management::operation::Operation;

use crate::support::{TestApp, TestConfig, operation_event, send};

#[tokio::test]
async fn a_warm_operation_sends_one_request_to_dynamodb() {
    let app = TestApp::new().await;
    app.insert_demo_key().await;

    for operation in Operation::ALL {
        let event = operation_event(*operation);
        let service = app.fresh_service();
        let mut requests = Vec::new();
        for _ in 0..3 {
            let response = send(&service, &event, Duration::from_secs(10)).await;
            response.assert_success();
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
        for warm in warm {
            assert_eq!(warm.len(), 1, "{operation:?}: {warm:?}");
            assert_ne!(warm[0], "BatchGetItem", "{operation:?}");
        }
    }
}

/// Without caches, an operation still takes two round trips, or three if it needs a third record.
#[tokio::test]
async fn an_operation_without_caches_reads_the_key_with_the_organization() {
    let app = TestApp::with_config(TestConfig {
        key_cache: Duration::ZERO,
        ..TestConfig::default()
    })
    .await;
    let client = app.client_with_new_key("acme").await;
    for _ in 0..2 {
        app.dynamodb_requests.take();
        let body = json!({ "dataStoreName": "Papers" });
        let path = "/api/v1/org/acme/dataStores/create";
        client.post(path, body).await.assert_success();
        assert_eq!(
            app.dynamodb_requests.take_actions(),
            ["BatchGetItem", "PutItem"]
        );
    }
}

#[tokio::test]
async fn keys_organizations_and_teams_are_read_again_after_their_time_in_the_cache() {
    let app = TestApp::new().await;
    app.insert_demo_key().await;
    for operation in Operation::ALL {
        app.send(operation_event(*operation)).await.assert_success();
    }
    app.dynamodb_requests.take();

    for operation in Operation::ALL {
        app.advance_clock(Duration::from_secs(60));
        app.send(operation_event(*operation)).await.assert_success();

        let actions = app.dynamodb_requests.take_actions();
        let reads = actions.iter().filter(|action| *action == "BatchGetItem");
        let reads = reads.count();
        assert_eq!(reads, actions.len() - 1, "{operation:?}: {actions:?}");
        assert!(reads > 0, "{operation:?}: {actions:?}");
    }
}
