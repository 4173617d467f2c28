//! Requests that have no time left, or that panic. `fault_matrix.rs` has the failures of DynamoDB.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use serde_json::Value;

use test_support::{TestApp, event, send};

fn request() -> Value {
    event(
        "POST",
        "/api/v1/org/acme/dataStores/create",
        &Default::default(),
        Some(r#"{"dataStoreName": "Papers"}"#),
    )
}

#[tokio::test]
async fn a_request_without_remaining_time_is_not_started() {
    let app = TestApp::new().await;

    let response = send(&app.service, &request(), Duration::from_millis(400)).await;

    response.assert_problem(503, "unavailable");
    assert!(app.dynamodb_requests.take().is_empty());
}

#[tokio::test]
async fn a_panic_is_a_500_and_the_next_request_succeeds() {
    let app = TestApp::new().await;
    let has_panicked = AtomicBool::new(false);
    let service = app.faulty_service(move |_| {
        assert!(has_panicked.swap(true, Ordering::Relaxed), "injected panic");
        None
    });
    let time_limit = Duration::from_secs(10);

    let first = send(&service, &request(), time_limit).await;
    let second = send(&service, &request(), time_limit).await;

    first.assert_problem(500, "internal");
    assert!(!first.body.unwrap().to_string().contains("injected panic"));
    second.assert_success();
}
