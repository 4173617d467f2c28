//! Which deployment a command works on, and what an operator reads if there is none.

use std::process::Command;

use workspace_management::store::Table;

use crate::{assert_fails, server::Server, unused_url, workspacectl};

/// `orgs list` on the tables that the environment variables name.
fn list_from_variables() -> Command {
    let mut command = workspacectl(&["orgs", "list"]);
    for table in Table::ALL {
        command.env(table.variable, table.logical_id);
    }
    command.env("AWS_EC2_METADATA_DISABLED", "true");
    command
}

#[test]
fn an_unreachable_local_service_is_named_with_a_hint() {
    let url = unused_url();
    let output = workspacectl(&["orgs", "list"])
        .env("AWS_ENDPOINT_URL_DYNAMODB", &url)
        .output()
        .unwrap();
    assert_fails(&output, &format!("{url}: cannot read OrganizationsTable"));
    assert_fails(&output, "run `cargo serve` first");
}

#[test]
fn a_missing_table_variable_is_named() {
    let output = workspacectl(&["orgs", "list"])
        .env("KEYS_TABLE", "some-table")
        .env("AWS_REGION", "us-east-1")
        .output()
        .unwrap();
    assert_fails(&output, "ORGANIZATIONS_TABLE is not set");
}

#[test]
fn a_missing_region_has_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let output = list_from_variables().env("HOME", folder.path()).output();
    assert_fails(&output.unwrap(), "set AWS_REGION");
}

#[test]
fn missing_credentials_have_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let output = list_from_variables()
        .env("HOME", folder.path())
        .env("AWS_REGION", "us-east-1")
        .output();
    assert_fails(&output.unwrap(), "No valid AWS credentials were found");
}

#[test]
fn a_missing_table_has_a_hint() {
    let server = Server::start(&[]);
    let output = list_from_variables()
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "local")
        .env("AWS_SECRET_ACCESS_KEY", "local")
        .env("ORGANIZATIONS_TABLE", "NoTable")
        .env("AWS_ENDPOINT_URL_DYNAMODB", &server.dynamodb)
        .output()
        .unwrap();
    assert_fails(&output, "cannot read NoTable");
    assert_fails(&output, "A table does not exist. Check --stack");
}
