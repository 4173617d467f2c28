//! `env`: the environment variables of the function.

use serde_json::Value;
use workspace_management::store::Table;

use crate::{server::Server, workspacectl};

#[test]
fn env_prints_the_variables_for_the_tables_and_names_the_settings_that_it_cannot_know() {
    let server = Server::start(&["--anonymous", "denied"]);

    let output = server.output(&["env"]);

    let notes = String::from_utf8(output.stderr).unwrap();
    let expected = "the tables do not show them: ANONYMOUS_OPERATIONS (default: denied)";
    assert!(notes.contains(expected), "{notes}");
    let tables = Table::ALL
        .iter()
        .map(|table| format!("{}={}", table.variable, table.logical_id));
    let local = [
        format!("AWS_ENDPOINT_URL_DYNAMODB={}", server.dynamodb_url),
        format!("AWS_ENDPOINT_URL_DYNAMODB_STREAMS={}", server.dynamodb_url),
        "AWS_REGION=us-east-1".to_owned(),
        "AWS_DEFAULT_REGION=us-east-1".to_owned(),
        "AWS_ACCESS_KEY_ID=local".to_owned(),
        "AWS_SECRET_ACCESS_KEY=local".to_owned(),
    ];
    let expected: Vec<_> = tables.chain(local).collect();
    let lines = String::from_utf8(output.stdout).unwrap();
    assert_eq!(lines.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn env_of_other_tables_prints_only_their_names() {
    let mut command = workspacectl(&["env", "--json"]);
    for table in Table::ALL {
        command.env(table.variable, "some-table");
    }
    let output = command.env("AWS_REGION", "us-east-1").output().unwrap();

    let variables: Value = serde_json::from_slice(&output.stdout).unwrap();
    let variables = variables.as_object().unwrap();
    assert_eq!(variables.len(), Table::ALL.len());
    assert!(variables.values().all(|name| name == "some-table"));
}
