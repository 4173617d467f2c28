//! The environment variables that the function reads when it starts.

use std::time::{Duration, Instant};

use serde_json::Value;
use test_support::TestApp;
use tokio::{
    net::{TcpListener, TcpSocket},
    time::timeout,
};
use workspace_management::records::Table;
use workspace_records::tables;

use crate::function::{Function, command, create_papers};

#[tokio::test]
async fn the_function_exits_with_an_error_that_names_a_missing_or_invalid_variable() {
    let app = TestApp::new().await;
    #[rustfmt::skip] // keeps each case on one line
    let mut cases = vec![
        ("ANONYMOUS_OPERATIONS", "perhaps", "must be `allowed` or `denied`"),
        ("KEY_CACHE_SECONDS", "a minute", "must be a whole number from 0 to 60"),
        ("KEY_CACHE_SECONDS", "-1", "must be a whole number from 0 to 60"),
        ("KEY_CACHE_SECONDS", "61", "must be a whole number from 0 to 60"),
        ("AWS_ENDPOINT_URL", "localhost", "must be an http or https URL"),
        ("AWS_ENDPOINT_URL", "ftp://localhost", "must be an http or https URL"),
        ("AWS_ENDPOINT_URL_DYNAMODB", "127.0.0.1:8000", "must be an http or https URL"),
        // An empty variable counts as missing.
        ("AWS_REGION", "", "is required but not set"),
    ];
    for table in Table::ALL {
        cases.push((table.env_variable, "", "is required but not set"));
    }

    for (variable, value, rule) in cases {
        let error = startup_error(&app, variable, value).await;
        let expected = match value {
            "" => format!("{variable} {rule}."),
            value => format!("{variable} {rule}, not {value:?}."),
        };
        assert_eq!(error, expected);
    }
    let error = startup_error(&app, "SSL_CERT_FILE", "/no/such/file").await;
    assert!(error.contains("/no/such/file"), "{error}");
}

/// The error that the function logs when it starts with an environment variable that makes it exit.
async fn startup_error(app: &TestApp, variable: &str, value: &str) -> String {
    // Otherwise, this variable would override `AWS_ENDPOINT_URL`.
    let no_endpoint = ("AWS_ENDPOINT_URL_DYNAMODB", "");
    let mut command = command(app, "127.0.0.1:9", &[no_endpoint, (variable, value)]);
    let output = timeout(Duration::from_secs(10), command.output());
    let output = output.await.unwrap().unwrap();
    assert!(!output.status.success(), "{variable}");
    let log = String::from_utf8(output.stdout).unwrap();
    let line: Value = serde_json::from_str(&log).expect(&log);
    line["cause"].as_str().expect(&log).to_owned()
}

#[tokio::test]
async fn the_variables_that_the_template_sets_take_effect() {
    let app = TestApp::new().await;
    let variables = [
        ("ANONYMOUS_OPERATIONS", "denied"),
        ("KEY_CACHE_SECONDS", "0"),
    ];
    let mut function = Function::start(&app, &variables).await;
    let key = app.issue_key("acme", |_| {}).await;
    let acme = app.client(&key);
    let anonymous = app.anonymous_client();

    let response = function.invoke(&create_papers(&anonymous)).await;
    response.assert_problem(401, "unauthenticated");
    let response = function.invoke(&create_papers(&acme)).await;
    response.assert_success();
    app.revoke_key(&key).await;
    let response = function.invoke(&create_papers(&acme)).await;
    response.assert_problem(401, "unauthenticated");
}

/// CodeDeploy moves no requests to a version unless it responds with 401 to the event of `RolloutCheck`.
#[tokio::test]
async fn the_check_of_a_new_version_reads_the_table_of_keys() {
    let app = TestApp::new().await;
    let check = &tables::template().unwrap()["Resources"]["RolloutCheck"]["Properties"];
    let event = check["Environment"]["Variables"]["EVENT"].as_str().unwrap();
    let event = serde_json::from_str(event).unwrap();

    let mut function = Function::start(&app, &[]).await;
    let response = function.invoke(&event).await;
    response.assert_problem(401, "unauthenticated");
    let log = function.log().await;
    assert_eq!(log[0]["key_rejection"], "unknown");

    let mut function = Function::start(&app, &[("KEYS_TABLE", "no-such-table")]).await;
    let response = function.invoke(&event).await;
    response.assert_problem(500, "internal");
}

#[tokio::test]
async fn while_dynamodb_is_unreachable_the_function_starts_and_responds_with_503() {
    let app = TestApp::new().await;
    // The system accepts connections to this listener, but no task reads from them.
    let silent_listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = silent_listener.local_addr().unwrap();
    // A bound socket that does not listen refuses connections, and no other test can get its port.
    let closed_socket = TcpSocket::new_v4().unwrap();
    closed_socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let closed = closed_socket.local_addr().unwrap();

    for address in [silent, closed] {
        let endpoint = format!("http://{address}");
        let started = Instant::now();
        let variables = [("AWS_ENDPOINT_URL_DYNAMODB", &*endpoint)];
        let mut function = Function::start(&app, &variables).await;

        function.runtime_api.next_poll().await.unwrap();

        let elapsed = started.elapsed();
        assert!(elapsed < Duration::from_secs(3), "{endpoint}: {elapsed:?}");

        function.runtime_api.set_time_limit(Duration::from_secs(3));
        let sent = Instant::now();
        let response = function
            .invoke(&create_papers(&app.anonymous_client()))
            .await;
        response.assert_problem(503, "unavailable");
        assert_eq!(response.headers["retry-after"], "1");
        assert!(sent.elapsed() < Duration::from_secs(3));
    }
}
