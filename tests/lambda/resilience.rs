//! Frozen processes, and connections to DynamoDB that fail.

use std::{future::pending, sync::Arc};

use test_support::TestApp;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    process::Command,
    sync::Notify,
};
use workspace_management::records::Table;

use crate::function::{Function, create_data_store, create_papers};

/// Starts a TCP proxy in front of DynamoDB, and returns its URL. `close` closes every connection.
/// `stall` keeps every connection open, but stops forwarding. Networks do both while Lambda freezes
/// a function.
async fn start_proxy(dynamodb: &str, close: Arc<Notify>, stall: Arc<Notify>) -> String {
    let dynamodb = dynamodb.strip_prefix("http://").unwrap().to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            let mut server = TcpStream::connect(&dynamodb).await.unwrap();
            let (close, stall) = (close.clone(), stall.clone());
            tokio::spawn(async move {
                tokio::select! {
                    _ = copy_bidirectional(&mut client, &mut server) => {}
                    () = close.notified() => {}
                    () = stall.notified() => pending().await,
                }
            });
        }
    });
    endpoint
}

#[tokio::test]
async fn a_thawed_function_replaces_its_dead_connections() {
    let app = TestApp::new().await;
    let anonymous = app.anonymous_client();
    let close = Arc::new(Notify::new());
    let stall = Arc::new(Notify::new());
    let proxy = start_proxy(&app.endpoint, close.clone(), stall.clone()).await;
    let variables = [("AWS_ENDPOINT_URL_DYNAMODB", &*proxy)];
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
        let fault = if round % 2 == 0 { &close } else { &stall };
        fault.notify_waiters();
        send_signal("-CONT").await;
        let event = create_data_store(&format!("Papers {round}"), &anonymous);
        function.invoke(&event).await.assert_success();
    }

    assert_eq!(app.records(Table::DATA_STORES).await.len(), 7);
}
