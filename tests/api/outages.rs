//! Responses when DynamoDB is missing, unreachable or slow, and when the service itself fails.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::net::TcpListener;
use workspace_local::dynamodb::http_client;
use workspace_management::{service::Service, store::Table};

use crate::support::{
    TestApp, TestConfig, config, event, fault_injector::FaultInjector, send, service,
    unique_table_names,
};

fn request() -> Value {
    event(
        "POST",
        "/api/v1/org/acme/dataStores/create",
        &Default::default(),
        Some(r#"{"dataStoreName": "Papers"}"#),
    )
}

/// A service whose DynamoDB is at another address.
fn service_at(endpoint: &str) -> Service {
    service(
        config(endpoint),
        unique_table_names(),
        TestConfig::default(),
    )
}

#[tokio::test]
async fn a_missing_table_is_a_500_that_reveals_nothing_internal() {
    let app = TestApp::new().await;
    let table = app.tables.name(Table::DATA_STORES).to_owned();
    app.delete_table(Table::DATA_STORES).await;

    let response = app.send(request()).await;

    response.assert_problem(500, "internal");
    let problem = response.body.unwrap().to_string();
    for internal in [
        table.as_str(),
        "DataStores",
        "DynamoDB",
        "dynamodb",
        "ResourceNotFound",
        "table",
        "Table",
        &app.endpoint,
    ] {
        assert!(!problem.contains(internal), "{internal} in {problem}");
    }
}

#[tokio::test]
async fn an_unreachable_dynamodb_is_a_503_with_retry_after() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = listener.local_addr().unwrap();
    drop(listener);
    let service = service_at(&format!("http://{closed}"));

    let response = send(&service, &request(), Duration::from_secs(2)).await;

    response.assert_problem(503, "unavailable");
    assert_eq!(response.headers["retry-after"], "1");
}

#[tokio::test]
async fn a_503_is_sent_before_the_deadline_if_dynamodb_does_not_respond() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let service = service_at(&format!("http://{}", silent.local_addr().unwrap()));
    let started = Instant::now();

    let response = send(&service, &request(), Duration::from_secs(2)).await;

    response.assert_problem(503, "unavailable");
    assert_eq!(response.headers["retry-after"], "1");
    let elapsed = started.elapsed();
    let expected = Duration::from_millis(1400)..Duration::from_secs(2);
    assert!(expected.contains(&elapsed), "{elapsed:?}");
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
    let injector = FaultInjector::new(move |_| {
        assert!(has_panicked.swap(true, Ordering::Relaxed), "injected panic");
        None
    })
    .await;
    let config = config(&app.endpoint).http_client(http_client(injector));
    let service = service(config, app.tables.clone(), TestConfig::default());
    let time_limit = Duration::from_secs(10);

    let first = send(&service, &request(), time_limit).await;
    let second = send(&service, &request(), time_limit).await;

    first.assert_problem(500, "internal");
    assert!(!first.body.unwrap().to_string().contains("injected panic"));
    second.assert_success();
}

#[tokio::test]
async fn an_api_key_with_an_invalid_organization_is_a_500() {
    let app = TestApp::new().await;
    let key = app.issue_key("not an organization", |_| {}).await;

    let body = json!({ "type": "alloy", "enabled": true });
    let path = "/api/v1/bot/playground/bot-7/voice";
    let response = app.with_key(&key).post(path, body).await;

    response.assert_problem(500, "internal");
}
