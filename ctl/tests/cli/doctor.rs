//! `doctor`.

use std::time::{Duration, SystemTime};

use axum::{Router, http::StatusCode};
use serde_json::{Value, json};
use test_support::fixtures::key_record;
use workspace_local::demo::DEMO_KEY;
use workspace_management::store::Table;

use crate::{
    AWS, assert_usage_error, network::Network, on_stack, server::Server, unused_url, workspacectl,
};

/// Runs `doctor` on the stack of a network. Returns its exit code and its rows.
fn check_stack(network: &Network, options: &str) -> (Option<i32>, Vec<Value>) {
    let url = network.listen(|_, _| true);
    let mut doctor = on_stack(&url, &format!("doctor --json {options}"));
    let output = doctor.output().unwrap();
    let checks = serde_json::from_slice(&output.stdout);
    let checks = checks.unwrap_or_else(|_| panic!("{output:?}"));
    (output.status.code(), checks)
}

/// The status and the detail of the first check whose name begins with this text.
fn find<'a>(checks: &'a [Value], name: &str) -> (&'a str, &'a str) {
    let text = |check: &'a Value, name: &str| check[name].as_str().unwrap();
    let mut checks = checks.iter();
    let found = checks.find(|check| text(check, "check").starts_with(name));
    let found = found.unwrap();
    (text(found, "status"), text(found, "detail"))
}

#[track_caller]
fn assert_all_pass(checks: &[Value]) {
    let mut checks = checks.iter();
    assert!(checks.all(|check| check["status"] == "ok"), "{checks:?}");
}

#[test]
fn a_stack_passes_every_check() {
    let network = Network::with_api();
    let replaced = expiring_key(Some("2026-01-01T00:00:00.000Z"));
    network.dynamodb.put(Table::KEYS, replaced);

    let (code, checks) = check_stack(&network, "--strict");

    assert_eq!(code, Some(0), "{checks:?}");
    assert_all_pass(&checks);
    let url = &network.stack.outputs["ApiUrl"];
    find(&checks, &format!("API {url}"));
}

#[test]
fn a_local_service_passes_every_check() {
    let server = Server::start();

    let output = server.output(&format!("doctor --json --url {}", server.url));

    let checks: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(checks.len(), Table::ALL.len() + 2);
    assert_all_pass(&checks);
    find(&checks, &format!("API {}", server.url));
    let notes = String::from_utf8(output.stderr).unwrap();
    let dynamodb = &server.dynamodb_url;
    assert_eq!(notes, format!("checking local DynamoDB at {dynamodb}\n"));

    // The API at the default address is another one's.
    let error =
        format!("because DynamoDB is at {dynamodb}: name it with --url. `cargo serve` prints it");
    assert_usage_error(&server.output("doctor"), &error);
}

/// Each check of the tables succeeds, because the operator's own requests reach DynamoDB.
#[test]
fn an_api_that_does_not_read_its_tables_fails() {
    let server = Server::start();
    let network = Network::new();
    let denied = network.listen(|action, _| action != "dynamodb:BatchGetItem");
    for (url, detail) in [
        (network.serve_api(&denied), "responds with 500"),
        (unused_url(), "cannot connect"),
    ] {
        let output = server.output(&format!("doctor --url {url}"));
        let checks = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{checks}");
        let is_failed = |line: &&str| line.trim_start().starts_with("failed");
        let failed: Vec<_> = checks.lines().filter(is_failed).collect();
        assert_eq!(failed.len(), 1, "{checks}");
        assert!(failed[0].contains(detail), "{checks}");
    }
}

/// Only the 401 for an unknown key shows that the function reads its tables.
#[test]
fn another_response_of_the_api_is_a_failure_that_says_what_to_check() {
    let server = Server::start();
    let network = Network::new();
    let unauthenticated = |detail| json!({ "code": "unauthenticated", "detail": detail });
    let (unknown, none) = ("This API key is not accepted.", "No API key was sent.");
    #[rustfmt::skip] // keeps a table short
    let cases = [
        (401, "x-request-id", unauthenticated(none), "responds as if no API key was sent"),
        (401, "x-other", unauthenticated(unknown), "responds with 401, but not as this"),
        (500, "x-request-id", json!({ "code": "internal" }), "responds with 500, such as"),
        (503, "x-request-id", json!({ "code": "unavailable" }), "responds with 503, because"),
        (500, "x-other", json!({}), "responds with 500, but the function does not"),
        (204, "x-request-id", Value::Null, "responds with 204, but not as this"),
        (429, "x-other", json!({}), "responds with 429, but not as this"),
    ];
    for (status, header, body, detail) in cases {
        let status = StatusCode::from_u16(status).unwrap();
        let respond = async move || (status, [(header, "id")], body.to_string());
        let url = network.serve(Router::new().fallback(respond));
        let output = server.output(&format!("doctor --json --url {url}"));
        let checks: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        let (status, actual) = find(&checks, "API http");
        assert!(status == "failed" && actual.starts_with(detail), "{actual}");
    }
}

/// How a problem of a stack comes about.
type Change = fn(&mut Network);

#[test]
fn a_problem_of_a_stack_is_reported_and_a_warning_is_a_failure_only_with_strict() {
    let wrong_tables =
        "KEYS_TABLE is not set: it must be KeysTable; TEAMS_TABLE is ModelsTable instead of";
    let rows: [(&str, &str, &str, Change); 6] = [
        ("API", "failed", "its URL is unknown", |network| {
            network.stack.outputs.remove("ApiUrl");
        }),
        // A request does not show this, because it reads two tables, and every table exists.
        ("Function", "failed", wrong_tables, |network| {
            network.stack.variables.insert("TEAMS_TABLE", "ModelsTable");
            network.stack.variables.remove("KEYS_TABLE");
        }),
        ("Termination protection", "warning", "off: run", |network| {
            network.stack.has_termination_protection = false;
        }),
        ("Recipients", "warning", "none, because", |network| {
            network.stack.outputs.remove("AlarmTopicArn");
        }),
        ("Recipients", "warning", "none has confirmed", |network| {
            network.stack.subscriptions = vec!["PendingConfirmation"];
        }),
        ("API keys", "warning", "1 without a", |network| {
            network.dynamodb.put(Table::KEYS, expiring_key(None));
        }),
    ];
    for (check, expected, text, change) in rows {
        let mut network = Network::with_api();
        change(&mut network);
        let is_failure = i32::from(expected == "failed");
        for (options, expected_code) in [("", is_failure), ("--strict", 1)] {
            let (code, checks) = check_stack(&network, options);
            let (status, detail) = find(&checks, check);
            let result = (status, code);
            assert_eq!(result, (expected, Some(expected_code)), "{checks:?}");
            assert!(detail.starts_with(text), "{detail}");
            let problems = checks.iter().filter(|check| check["status"] != "ok");
            assert_eq!(problems.count(), 1, "{checks:?}");
        }
    }
}

/// An API key that expires soon.
fn expiring_key(replaced_at: Option<&str>) -> Value {
    let end = SystemTime::now() + Duration::from_secs(13 * 86_400);
    let mut key = json!(key_record(DEMO_KEY, "acme", "ci"));
    key["expires_at"] = json!(humantime::format_rfc3339_seconds(end).to_string());
    key["replaced_at"] = json!(replaced_at);
    key
}

/// `permissions.rs` tests that it is not a failure without `--strict`.
#[test]
fn a_check_that_was_skipped_is_a_failure_with_strict() {
    let network = Network::with_api();
    for action in ["dynamodb:Scan", "sns:ListSubscriptionsByTopic"] {
        let url = network.listen(move |sent, _| sent != action);
        let output = on_stack(&url, "doctor --strict").output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains(": was skipped: "), "{error}");
        assert!(error.contains("hint: Your AWS identity lacks"), "{error}");
    }
}

#[test]
fn a_table_that_differs_from_the_template_fails() {
    let server = Server::start();
    let mut command = workspacectl("doctor --json");
    for table in Table::ALL {
        command.env(table.variable, "OrganizationsTable");
    }
    command.env("AWS_ENDPOINT_URL_DYNAMODB", &server.dynamodb_url);
    command.envs(AWS).env("KEYS_TABLE", "NoTable");
    let output = command.output().unwrap();

    assert_eq!(output.status.code(), Some(1));
    let checks: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    for (check, status, detail) in [
        ("OrganizationsTable", "ok", "about "),
        ("API", "skipped", "its URL is unknown: name it"),
        ("KeysTable NoTable", "failed", "ResourceNotFoundException"),
        ("TeamsTable", "failed", "primary key differs from the"),
    ] {
        let found = find(&checks, check);
        let is_expected = found.0 == status && found.1.contains(detail);
        assert!(is_expected, "{check}: {found:?}");
    }
}
