//! Commands on a local service.

use std::{
    ops::Deref,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;
use test_support::server;
use workspace_local::demo::DEMO_KEY;
use workspace_management::store::Table;

use crate::workspacectl;

/// How long a command may take to mark a record.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The user who runs the commands.
const OPERATOR: &str = "grace";

/// A local service, with the demo key.
pub(crate) struct Server {
    service: server::Server,
    pub(crate) key: String,
}

impl Deref for Server {
    type Target = server::Server;

    fn deref(&self) -> &Self::Target {
        &self.service
    }
}

impl Server {
    /// Starts the service with options of `cargo serve`.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self {
            service: server::Server::start(arguments),
            key: DEMO_KEY.to_owned(),
        }
    }

    /// A service without caches, so that commands need not wait, with a record of every kind.
    pub(crate) fn with_records() -> Self {
        let server = Self::start(&["--key-cache", "0"]);
        server.send_events();
        server
    }

    /// A command on the service.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = workspacectl(arguments);
        command.env("AWS_ENDPOINT_URL_DYNAMODB", &self.dynamodb_url);
        command.env("USER", OPERATOR);
        command
    }

    /// Runs a command on the service and returns its output. Then checks all records.
    pub(crate) fn output(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output().unwrap();
        self.valid_records();
        output
    }

    /// Starts a command that marks a record and then waits. Returns it when it waits.
    pub(crate) fn start_until_marked(&self, arguments: &[&str], mark: &str) -> Child {
        let mut command = self.command(arguments);
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let started = Instant::now();
        let is_marked = |(_, record): &(Table, Value)| record[mark].is_string();
        while !self.valid_records().iter().any(is_marked) {
            assert!(process.try_wait().unwrap().is_none(), "{arguments:?} ended");
            assert!(started.elapsed() < TIMEOUT, "{arguments:?} marks nothing");
        }
        process
    }

    /// Runs a command, which must succeed, and returns its standard output.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command with `--json` and returns what it printed.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.run(&[arguments, &["--json"]].concat())).unwrap()
    }

    /// Runs a command that prints a list of records.
    pub(crate) fn records(&self, arguments: &[&str]) -> Vec<Value> {
        serde_json::from_value(self.json(arguments)).unwrap()
    }

    /// What records call the operator of the commands that a test runs.
    pub(crate) fn operator(&self) -> String {
        let host = gethostname::gethostname();
        format!("{OPERATOR}@{}", host.to_string_lossy())
    }

    /// Erases an organization without an export.
    pub(crate) fn erase(&self, org: &str) {
        self.run(&["orgs", "disable", org, "--wait", "0"]);
        let erase = ["orgs", "erase", org, "--without-export"];
        self.run(&[&erase[..], &["--yes", "--wait", "0"]].concat());
    }
}
