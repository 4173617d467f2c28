//! Which deployment a command works on, and what an operator reads if there is none.

use std::{
    io::{BufRead as _, BufReader},
    net::TcpListener,
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use workspace_management::store::Table;

use crate::{assert_fails, assert_usage_error, server::Server, unused_url, workspacectl};

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

/// Also on a system without root certificates, as in small containers.
#[test]
fn requests_to_aws_use_the_proxy_of_the_environment() {
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut command = list_from_variables()
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "local")
        .env("AWS_SECRET_ACCESS_KEY", "local")
        .env(
            "HTTPS_PROXY",
            format!("http://{}", proxy.local_addr().unwrap()),
        )
        .env("SSL_CERT_FILE", "/dev/null")
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (send_line, line) = mpsc::channel();
    thread::spawn(move || {
        let (connection, _) = proxy.accept().unwrap();
        send_line.send(BufReader::new(connection).lines().next())
    });
    let line = line.recv_timeout(Duration::from_secs(20)).unwrap();
    command.kill().unwrap();
    command.wait().unwrap();
    let connect = "CONNECT dynamodb.us-east-1.amazonaws.com:443 HTTP/1.1";
    assert_eq!(line.unwrap().unwrap(), connect);
}

#[test]
fn a_missing_table_has_a_hint() {
    let server = Server::start(&[]);
    let output = list_from_variables()
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "local")
        .env("AWS_SECRET_ACCESS_KEY", "local")
        .env("ORGANIZATIONS_TABLE", "NoTable")
        .env("AWS_ENDPOINT_URL_DYNAMODB", &server.dynamodb_url)
        .output()
        .unwrap();
    assert_fails(&output, "cannot read NoTable");
    assert_fails(&output, "A table does not exist. Check --stack");
}

#[test]
fn an_endpoint_that_is_not_dynamodb_is_named_without_the_request() {
    let server = Server::start(&[]);
    for variable in ["AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL"] {
        let output = workspacectl(&["orgs", "create", "globex"])
            .env(variable, &server.url)
            .output()
            .unwrap();
        assert_fails(&output, "the response is not one of");
        assert_fails(&output, "hint: Check the endpoint");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(
            !error.contains("SdkBody") && !error.contains("Item"),
            "{error}"
        );
    }
}

#[test]
fn an_endpoint_that_is_not_a_url_is_a_usage_error() {
    let output = workspacectl(&["orgs", "list"])
        .env("AWS_ENDPOINT_URL_DYNAMODB", "nonsense")
        .output()
        .unwrap();
    assert_usage_error(
        &output,
        "AWS_ENDPOINT_URL_DYNAMODB must be an http or https URL, not \"nonsense\"",
    );
}

#[test]
fn verbose_shows_the_causes_of_an_error() {
    let url = unused_url();
    let run = |arguments: &[&str]| {
        let mut command = workspacectl(arguments);
        let output = command.env("AWS_ENDPOINT_URL_DYNAMODB", &url).output();
        String::from_utf8(output.unwrap().stderr).unwrap()
    };
    let (short, long) = (run(&["orgs", "list"]), run(&["orgs", "list", "--verbose"]));
    assert!(!short.contains("dispatch failure"), "{short}");
    assert!(long.contains("dispatch failure"), "{long}");
}

#[test]
fn the_tables_of_a_stack_are_not_read_from_another_endpoint() {
    let output = workspacectl(&["orgs", "list", "--stack", "prod"])
        .env("AWS_ENDPOINT_URL_DYNAMODB", unused_url())
        .env("AWS_REGION", "us-east-1")
        .output()
        .unwrap();
    assert_usage_error(&output, "but the stack is on AWS");
    let output = workspacectl(&["orgs", "list"])
        .env("WORKSPACECTL_STACK", "prod")
        .env("AWS_ENDPOINT_URL_DYNAMODB", unused_url())
        .env("AWS_REGION", "us-east-1")
        .output()
        .unwrap();
    assert_usage_error(&output, "but the stack is on AWS");
}
