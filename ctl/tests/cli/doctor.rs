//! `doctor`.

use std::{
    process::Command,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use workspace_local::demo::{DEMO_KEY, key_record};
use workspace_management::store::Table;

use crate::{assert_usage_error, network::Network, server::Server, unused_url, workspacectl};

/// Runs `doctor` on the stack of a network. Returns its exit code and its rows.
fn check_stack(network: &Network, arguments: &[&str]) -> (Option<i32>, Vec<Value>) {
    let url = network.listen(|_, _| true);
    let output = doctor(&url).args(arguments).output().unwrap();
    let checks = serde_json::from_slice(&output.stdout);
    let checks = checks.unwrap_or_else(|_| panic!("{output:?}"));
    (output.status.code(), checks)
}

/// `doctor` on a stack.
fn doctor(aws: &str) -> Command {
    let mut command = workspacectl(&["--stack", "stack", "--json", "doctor"]);
    command.env("AWS_ENDPOINT_URL", aws).envs([
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "local"),
        ("AWS_SECRET_ACCESS_KEY", "local"),
    ]);
    command
}

/// The status and the detail of the first check whose name begins with this text.
fn find<'a>(checks: &'a [Value], name: &str) -> (&'a str, &'a str) {
    let mut checks = checks.iter();
    let found = checks.find(|check| check["check"].as_str().unwrap().starts_with(name));
    let found = found.unwrap();
    let detail = found["detail"].as_str().unwrap();
    (found["status"].as_str().unwrap(), detail)
}

#[test]
fn a_stack_passes_every_check() {
    let network = Network::with_api();

    let (code, checks) = check_stack(&network, &["--strict"]);

    assert_eq!(code, Some(0), "{checks:?}");
    assert!(
        checks.iter().all(|check| check["status"] == "ok"),
        "{checks:?}"
    );
    let tables = Table::ALL.len();
    assert_eq!(
        find(&checks, "Function").1,
        format!("uses the {tables} tables of the stack")
    );
    let url = &network.stack.outputs["ApiUrl"];
    find(&checks, &format!("API {url}"));
}

#[test]
fn a_local_service_passes_every_check() {
    let server = Server::start(&[]);

    let output = server.output(&["doctor", "--json", "--url", &server.url]);

    let checks: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(checks.len(), Table::ALL.len() + 2);
    assert!(
        checks.iter().all(|check| check["status"] == "ok"),
        "{checks:?}"
    );
    find(&checks, &format!("API {}", server.url));
    let notes = String::from_utf8(output.stderr).unwrap();
    let dynamodb = &server.dynamodb;
    assert_eq!(notes, format!("checking local DynamoDB at {dynamodb}\n"));
}

/// The API at the default address is another one's.
#[test]
fn a_local_service_at_another_address_needs_a_url() {
    let server = Server::start(&[]);
    let output = server.output(&["doctor"]);
    let expected = format!(
        "because DynamoDB is at {}: name it with --url. `serve` prints it",
        server.dynamodb
    );
    assert_usage_error(&output, &expected);
}

#[test]
fn a_stack_without_the_url_of_its_api_fails() {
    let mut network = Network::with_api();
    network.stack.outputs.clear();
    let (code, checks) = check_stack(&network, &[]);
    assert_eq!(code, Some(1), "{checks:?}");
    assert_eq!(find(&checks, "API").0, "failed");
}

/// Each check of the tables succeeds, because the operator's own requests reach DynamoDB.
#[test]
fn an_api_that_does_not_read_its_tables_fails() {
    let server = Server::start(&[]);
    let network = Network::new();
    let denied = network.listen(|action, _| action != "dynamodb:BatchGetItem");
    let api = |dynamodb: &str, wrong: Option<Table>| network.serve_api(dynamodb, wrong);
    let rows = [
        (
            api(&server.dynamodb, Some(Table::KEYS)),
            "responds with 500",
        ),
        (
            api(&server.dynamodb, Some(Table::ORGANIZATIONS)),
            "responds with 500",
        ),
        (api(&denied, None), "responds with 500"),
        (api(&unused_url(), None), "responds with 503"),
        (unused_url(), "cannot connect"),
        (server.dynamodb.clone(), "not as this service does"),
    ];
    for (url, detail) in rows {
        let output = server.output(&["doctor", "--url", &url]);
        let checks = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{checks}");
        let failed: Vec<_> = checks
            .lines()
            .filter(|line| line.trim_start().starts_with("failed"))
            .collect();
        assert_eq!(failed.len(), 1, "{checks}");
        assert!(failed[0].contains(detail), "{checks}");
    }
}

/// How one warning of a stack comes about.
type Change = fn(&mut Network);

#[test]
fn warnings_are_failures_only_with_strict() {
    let expiring = |replaced_by: Option<&str>| {
        let end = SystemTime::now() + Duration::from_secs(13 * 86_400);
        let mut key = json!(key_record(DEMO_KEY, "acme", "ci"));
        key["expires_at"] = json!(humantime::format_rfc3339_seconds(end).to_string());
        key["replaced_by"] = json!(replaced_by);
        key
    };
    let rows: [(&str, &str, Change); 4] = [
        ("Termination protection", "off: run `aws ", |network| {
            network.stack.has_termination_protection = false;
        }),
        ("Recipients of alarms", "none, because", |network| {
            network.stack.outputs.remove("AlarmTopicArn");
        }),
        ("Recipients of alarms", "none has confirmed, 1", |network| {
            network.stack.subscriptions = vec!["PendingConfirmation"];
        }),
        ("Recipients of alarms", "none has confirmed, 0", |network| {
            network.stack.subscriptions = vec![];
        }),
    ];
    for (check, text, change) in rows {
        let mut network = Network::with_api();
        change(&mut network);
        assert_warns(&network, check, text);
    }
    let network = Network::with_api();
    network.dynamodb.put(Table::KEYS, expiring(None));
    assert_warns(&network, "API keys", "1 without a replacement");

    network.dynamodb.put(Table::KEYS, expiring(Some("other")));
    let (code, checks) = check_stack(&network, &["--strict"]);
    assert_eq!(code, Some(0), "{checks:?}");
}

/// Asserts that a check warns, and that `doctor` fails only with `--strict`.
#[track_caller]
fn assert_warns(network: &Network, check: &str, text: &str) {
    for (arguments, expected) in [(&[][..], 0), (&["--strict"], 1)] {
        let (code, checks) = check_stack(network, arguments);
        let (status, detail) = find(&checks, check);
        assert_eq!((status, code), ("warning", Some(expected)), "{checks:?}");
        assert!(detail.starts_with(text), "{detail}");
        let problems = checks.iter().filter(|check| check["status"] != "ok");
        assert_eq!(problems.count(), 1, "{checks:?}");
    }
}

#[test]
fn a_check_that_was_skipped_is_a_failure_only_with_strict() {
    let network = Network::with_api();
    for action in ["dynamodb:Scan", "sns:ListSubscriptionsByTopic"] {
        let url = network.listen(move |sent, _| sent != action);
        let mut command = doctor(&url);
        assert!(command.output().unwrap().status.success(), "{action}");

        let output = command.arg("--strict").output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains(": was skipped: "), "{error}");
        assert!(error.contains("hint: Your AWS identity lacks"), "{error}");
    }
}

/// A request does not show this, because it reads two tables, and every table exists.
#[test]
fn a_function_that_uses_another_table_than_its_stack_fails() {
    let mut network = Network::with_api();
    network.stack.variables.insert("TEAMS_TABLE", "ModelsTable");
    network.stack.variables.remove("KEYS_TABLE");

    let (code, checks) = check_stack(&network, &[]);

    assert_eq!(code, Some(1), "{checks:?}");
    let (status, detail) = find(&checks, "Function");
    assert_eq!(status, "failed");
    assert_eq!(
        detail,
        "KEYS_TABLE is not set: it must be KeysTable; TEAMS_TABLE is ModelsTable instead of TeamsTable. \
        Deploy the stack again"
    );
}

#[test]
fn a_table_that_differs_from_the_template_fails() {
    let server = Server::start(&[]);
    let mut command = workspacectl(&["doctor", "--json"]);
    for table in Table::ALL {
        command.env(table.variable, "OrganizationsTable");
    }
    let output = command
        .env("AWS_ENDPOINT_URL_DYNAMODB", &server.dynamodb)
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "local")
        .env("AWS_SECRET_ACCESS_KEY", "local")
        .env("KEYS_TABLE", "NoTable")
        .output()
        .unwrap();

    assert_eq!(output.status.code(), Some(1));
    let checks: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let check = |table: &str| find(&checks, table);
    assert_eq!(check("OrganizationsTable").0, "ok");
    let (status, detail) = check("API");
    assert_eq!(
        (status, detail),
        ("skipped", "its URL is unknown: name it with --url")
    );
    let (status, detail) = check("KeysTable NoTable");
    assert_eq!(status, "failed");
    assert!(detail.contains("ResourceNotFoundException"), "{detail}");
    let (status, detail) = check("TeamsTable");
    assert_eq!(status, "failed");
    assert!(
        detail.contains("primary key differs from the template"),
        "{detail}"
    );
}
