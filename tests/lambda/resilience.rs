//! Malformed events, frozen processes, and connections that fail.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::process::Command;
use workspace_management::store::Table;

use crate::{
    function::{Function, anonymous, create_data_store, create_papers},
    proxy::ChaosProxy,
    support::TestApp,
};

#[tokio::test]
async fn malformed_events_do_not_affect_later_ones() {
    let app = TestApp::new().await;
    let mut function = Function::start(&app, &[]).await;
    let mut not_base64 = create_papers(&anonymous());
    not_base64["isBase64Encoded"] = json!(true);

    function
        .invoke(create_papers(&anonymous()))
        .await
        .assert_success();
    for event in [json!(null), json!({ "Records": [] }), not_base64] {
        function
            .invoke(event)
            .await
            .assert_problem(400, "malformed_event");
    }
    function.send("not-json", "{");
    assert!(function.runtime_api.result().await.unwrap().is_error);
    function
        .invoke(create_papers(&anonymous()))
        .await
        .assert_success();

    assert_eq!(
        app.only_record(Table::DATA_STORES).await["data_store_id"],
        "papers"
    );
    let log = function.log().await;
    let rejected = log.iter().filter(|line| line["code"] == "malformed_event");
    assert_eq!(rejected.count(), 3, "{log:?}");
}

#[tokio::test]
async fn a_thawed_function_replaces_its_dead_connections() {
    let app = TestApp::new().await;
    let proxy = ChaosProxy::start(&app.endpoint).await;
    let mut function =
        Function::start(&app, &[("AWS_ENDPOINT_URL_DYNAMODB", &proxy.endpoint)]).await;
    function
        .invoke(create_papers(&anonymous()))
        .await
        .assert_success();
    let id = function.process.id().unwrap().to_string();
    let signal = |signal: &str| Command::new("kill").args([signal, &id]).status();

    for round in 0..6 {
        assert!(signal("-STOP").await.unwrap().success());
        if round % 2 == 0 {
            proxy.close();
        } else {
            proxy.stall();
        }
        assert!(signal("-CONT").await.unwrap().success());
        let event = create_data_store(&format!("Papers {round}"), &anonymous());
        function.invoke(event).await.assert_success();
    }

    assert_eq!(app.records(Table::DATA_STORES).await.len(), 7);
}

#[tokio::test]
async fn a_stalled_dynamodb_is_a_503_and_the_next_event_succeeds() {
    let app = TestApp::new().await;
    let proxy = ChaosProxy::start(&app.endpoint).await;
    let mut function =
        Function::start(&app, &[("AWS_ENDPOINT_URL_DYNAMODB", &proxy.endpoint)]).await;
    function
        .invoke(create_papers(&anonymous()))
        .await
        .assert_success();
    function.runtime_api.set_time_limit(Duration::from_secs(3));
    proxy.stall();
    proxy.stall_new(true);
    let began = Instant::now();

    let answer = function.invoke(create_papers(&anonymous())).await;

    answer.assert_problem(503, "unavailable");
    assert_eq!(answer.headers["retry-after"], "1");
    assert!(began.elapsed() < Duration::from_secs(3));
    proxy.stall_new(false);
    function.runtime_api.set_time_limit(Duration::from_secs(10));
    function
        .invoke(create_papers(&anonymous()))
        .await
        .assert_success();
}
