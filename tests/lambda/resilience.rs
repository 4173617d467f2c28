//! Frozen processes, and connections to DynamoDB that fail.

use test_support::{TestApp, proxy::ChaosProxy};
use tokio::process::Command;
use workspace_management::store::Table;

use crate::function::{Function, create_data_store, create_papers};

#[tokio::test]
async fn a_thawed_function_replaces_its_dead_connections() {
    let app = TestApp::new().await;
    let anonymous = app.anonymous_client();
    let proxy = ChaosProxy::start(&app.endpoint).await;
    let variables = [("AWS_ENDPOINT_URL_DYNAMODB", &*proxy.endpoint)];
    let mut function = Function::start(&app, &variables).await;
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
