//! Commands on a local service.

use std::{
    io::Write as _,
    ops::Deref,
    process::{Child, Command, Output, Stdio},
};

use serde_json::{Value, json};
use test_support::server;
use tracing_subscriber::prelude::*;
use workspace_local::{demo::DEMO_KEY, log};
use workspace_management::records::Table;

use crate::workspacectl;

/// The user who runs the commands.
const OPERATOR: &str = "grace";

/// A local service, with the demo key.
pub(crate) struct Server(server::Server);

impl Deref for Server {
    type Target = server::Server;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Server {
    /// Starts the service. It has no caches, so that commands need not wait. All services of this
    /// process share a log.
    pub(crate) fn start() -> Self {
        // Fails if a different test has installed it.
        let _ = tracing_subscriber::registry().with(log::layer()).try_init();
        Self(server::Server::start(&["--key-cache", "0"]))
    }

    /// A service with a record of every kind.
    pub(crate) fn with_records() -> Self {
        let server = Self::start();
        server.send_events();
        server
    }

    /// A command on the service.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = workspacectl(line);
        command.env("AWS_ENDPOINT_URL_DYNAMODB", &self.dynamodb_url);
        command.env("USER", OPERATOR);
        command
    }

    /// Runs a command on the service and returns its output. Then checks all records.
    pub(crate) fn output(&self, line: &str) -> Output {
        self.output_with_input(line, "")
    }

    /// The same with text in standard input.
    pub(crate) fn output_with_input(&self, line: &str, input: &str) -> Output {
        let mut command = self.command(line);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = process.stdin.take().unwrap();
        // It fails if the command ends without reading it.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        let output = process.wait_with_output().unwrap();
        self.valid_records();
        output
    }

    /// Starts a command that marks a record and then waits. Returns it when it waits.
    pub(crate) fn start_until_marked(&self, line: &str, mark: &str) -> Child {
        let mut command = self.command(line);
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let is_marked = |(_, record): &(Table, Value)| record[mark].is_string();
        while !self.valid_records().iter().any(is_marked) {
            assert!(process.try_wait().unwrap().is_none(), "{line} ended");
        }
        process
    }

    /// Runs a command, which must succeed, and returns its standard output.
    pub(crate) fn run(&self, line: &str) -> String {
        let output = self.output(line);
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command with `--json` and returns what it printed.
    pub(crate) fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.run(&format!("{line} --json"))).unwrap()
    }

    /// Runs a command that prints a list of records.
    pub(crate) fn records(&self, line: &str) -> Vec<Value> {
        serde_json::from_value(self.json(line)).unwrap()
    }

    /// What records call the operator of the commands that a test runs.
    pub(crate) fn operator(&self) -> String {
        let host = gethostname::gethostname();
        format!("{OPERATOR}@{}", host.to_string_lossy())
    }

    /// Creates a team in the project `apollo` and returns the status.
    pub(crate) fn create_team(&self, org: &str, key: &str, name: &str) -> u16 {
        let path = format!("/api/v1/project/{org}/apollo/createNewTeamOnProject");
        let body = json!({ "teamName": name }).to_string();
        self.post(&path, Some(key), &body).status
    }

    /// Creates a data store of `acme` with the demo key.
    pub(crate) fn create_demo_store(&self, name: &str) {
        assert_eq!(self.create_data_store("acme", DEMO_KEY, name), 204);
    }
}
