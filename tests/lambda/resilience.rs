//! Frozen processes, and connections to DynamoDB that fail.

use std::time::{Duration, Instant};

use test_support::{TestApp, proxy::ChaosProxy};
use tokio::process::Command;
use workspace_management::store::Table;

use crate::function::{Function, create_data_store, create_papers};

/// Starts a proxy in front of DynamoDB, and a function that uses the proxy.
async fn start_behind_proxy(app: &TestApp) -> (Function, ChaosProxy) {
    let proxy = ChaosProxy::start(&app.endpoint).await;
    let variables = [("AWS_ENDPOINT_URL_DYNAMODB", &*proxy.endpoint)];
    (Function::start(app, &variables).await, proxy)
}

#[tokio::test]
async fn a_thawed_function_replaces_its_dead_connections() {
    let app = TestApp::new().await;
    let anonymous = app.anonymous_client();
    let (mut function, proxy) = start_behind_proxy(&app).await;
    let response = function.invoke(&create_papers(&anonymous)).await;
    response.assert_success();
    let id = function.process.id().unwrap().to_string();
    let send_signal = async |signal: &str| {
        let status = Command::new("kill").args([signal, &id]).status().await;
        assert!(status.unwrap().success(), "{signal}");
    };

    for round in 0..6 {
        send_signal("-STOP").await;
        if round % 2 == 0 {
            proxy.close();
        } else {
            proxy.stall();
        }
        send_signal("-CONT").await;
        let event = create_data_store(&format!("Papers {round}"), &anonymous);
        function.invoke(&event).await.assert_success();
    }

    assert_eq!(app.records(Table::DATA_STORES).await.len(), 7);
}

#[tokio::test]
async fn a_request_gets_a_503_while_dynamodb_stalls_and_the_next_one_succeeds() {
    let app = TestApp::new().await;
    let (mut function, proxy) = start_behind_proxy(&app).await;
    let event = create_papers(&app.anonymous_client());
    function.invoke(&event).await.assert_success();
    function.runtime_api.set_time_limit(Duration::from_secs(3));
    proxy.stall();
    proxy.stall_new(true);
    let started = Instant::now();

    let response = function.invoke(&event).await;

    response.assert_problem(503, "unavailable");
    assert_eq!(response.headers["retry-after"], "1");
    assert!(started.elapsed() < Duration::from_secs(3));
    proxy.stall_new(false);
    function.runtime_api.set_time_limit(Duration::from_secs(10));
    function.invoke(&event).await.assert_success();
}
