//! How many requests an operation sends to DynamoDB. The number does not depend on the machine.

use std::time::Duration;

use workspace_management::operation::Operation;

use crate::support::{TestApp, operation_event, send};

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
        let expected: &[&str] = match operation {
            // The API key, then its organization, which is not in the path.
            Operation::SetBotVoice => &["GetItem", "GetItem"],
            // The API key with the organization, then the team.
            Operation::AddTeamUsers => &["BatchGetItem", "GetItem"],
            // The event has no API key, so only the organization is read.
            Operation::AddModels | Operation::CreateDataStore => &["GetItem"],
            Operation::CreateTeam | Operation::CreateLoggingInstance => &["BatchGetItem"],
        };
        assert_eq!(reads, expected, "{operation:?}");
        for warm in warm {
            assert_eq!(warm.len(), 1, "{operation:?}: {warm:?}");
            assert!(!warm[0].ends_with("GetItem"), "{operation:?}: {warm:?}");
        }
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
        let reads = actions.iter().filter(|action| action.ends_with("GetItem"));
        let reads = reads.count();
        assert_eq!(reads, actions.len() - 1, "{operation:?}: {actions:?}");
        assert!(reads > 0, "{operation:?}: {actions:?}");
    }
}
