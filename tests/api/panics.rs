//! Requests that panic. `fault_matrix.rs` tests the faults of DynamoDB.

use std::time::Duration;

use test_support::{TestApp, operation_event, send};
use workspace_management::operations::Operation;

#[tokio::test]
async fn a_request_that_panics_gets_a_500_and_the_next_request_succeeds() {
    let app = TestApp::new().await;
    let service = app.hooked_service(|request| {
        assert!(request.number > 0, "injected panic");
        None
    });
    let event = operation_event(Operation::CreateDataStore);
    let time_limit = Duration::from_secs(10);

    let first = send(&service, &event, time_limit).await;
    let second = send(&service, &event, time_limit).await;

    first.assert_problem(500, "internal");
    assert!(!first.body.unwrap().to_string().contains("injected panic"));
    second.assert_success();
}
