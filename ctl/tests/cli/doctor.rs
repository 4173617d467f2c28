//! `doctor`.

use serde_json::Value;
use workspace_management::store::Table;

use crate::{assert_usage_error, network::Network, server::Server, unused_url, workspacectl};

/// Runs `doctor` on the stack of a network. Returns its exit code and its rows.
fn check_stack(network: &Network, arguments: &[&str]) -> (Option<i32>, Vec<Value>) {
    let url = network.listen(|_, _| true);
    let output = workspacectl(&["--stack", "stack", "--json", "doctor"])
        .args(arguments)
        .env("AWS_ENDPOINT_URL", url)
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "local")
        .env("AWS_SECRET_ACCESS_KEY", "local")
        .output()
        .unwrap();
    let checks = serde_json::from_slice(&output.stdout);
    let checks = checks.unwrap_or_else(|_| panic!("{output:?}"));
    (output.status.code(), checks)
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

    let (code, checks) = check_stack(&network, &[]);

    assert_eq!(code, Some(0), "{checks:?}");
    assert!(
        checks.iter().all(|check| check["status"] == "ok"),
        "{checks:?}"
    );
    assert_eq!(
        find(&checks, "Function").1,
        "uses the 8 tables of the stack"
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
        "because DynamoDB is at {}: name it with --url",
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
