//! `workspacectl` as an operator runs it: a process, its output and its exit code.
#![allow(clippy::unwrap_used, reason = "a test fails with a panic")]

mod deployments;
mod docs;
mod doctor;
mod edit;
mod exports;
mod help;
mod history;
mod interference;
mod keys;
mod kills;
mod list;
mod logs;
mod messages;
mod network;
mod orgs;
mod permissions;
mod region;
mod remove;
mod restore;
mod schemas;
mod server;
mod terminals;

use std::{
    net::TcpListener,
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};
use workspace_management::records::Table;
use workspace_records::kinds::Kind;

/// A region and credentials of AWS.
const AWS: [(&str, &str); 3] = [
    ("AWS_REGION", "us-east-1"),
    ("AWS_ACCESS_KEY_ID", "local"),
    ("AWS_SECRET_ACCESS_KEY", "local"),
];

/// A command without any environment variables, from its line.
fn workspacectl(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_workspacectl"));
    command.args(words(line)).env_clear().stdin(Stdio::null());
    command
}

const ROOTS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../src/store/amazon-roots.pem"
);

/// A command on a stack. The services of AWS listen at a URL.
fn on_stack(url: &str, line: &str) -> Command {
    let mut command = workspacectl(&format!("--stack stack {line}"));
    command.env("AWS_ENDPOINT_URL", url).envs(AWS);
    // Few certificates, so that the command starts in half of the time.
    command.env("SSL_CERT_FILE", ROOTS);
    command
}

/// The arguments in a line. None of them contains a space, but they can contain other white space.
fn words(line: &str) -> Vec<&str> {
    line.split(' ').filter(|word| !word.is_empty()).collect()
}

/// The file of `orgs export` that has these records.
fn export_of(records: &[(Table, Value)]) -> String {
    let lines = records.iter().map(|(table, record)| {
        let line = json!({ "table": Kind::of(*table).plural, "record": record });
        format!("{line}\n")
    });
    lines.collect()
}

/// A folder, and a file in it that does not exist yet.
fn new_file() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("export.jsonl");
    let file = file.to_str().unwrap().to_owned();
    (folder, file)
}

/// The lines of JSON Lines, as of an export.
fn json_lines(text: &str) -> Vec<Value> {
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

/// What a command printed.
fn text(output: &[u8]) -> &str {
    str::from_utf8(output).unwrap()
}

/// Asserts that a command failed with exit code 1, printed nothing to standard output, and printed
/// an error with this text.
#[track_caller]
fn assert_fails(output: &Output, text: &str) {
    assert_exits_with(1, output, text);
}

/// The same for exit code 2, which means that the command line is invalid.
#[track_caller]
fn assert_usage_error(output: &Output, text: &str) {
    assert_exits_with(2, output, text);
}

#[track_caller]
fn assert_exits_with(code: i32, output: &Output, text: &str) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{error}");
    assert!(error.contains("error: ") && error.contains(text), "{error}");
    assert!(output.stdout.is_empty(), "{output:?}");
}

/// The URL of a port on which nothing listens.
fn unused_url() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}
