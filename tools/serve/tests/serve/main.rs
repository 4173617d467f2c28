//! `cargo serve`: the local page, the process, and the data file.
#![allow(clippy::unwrap_used, reason = "a test fails with a panic")]

mod durability;
mod page;
mod paths;
mod process;

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

/// The path of a file in a folder.
fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_owned()
}

/// `cargo serve` on free ports.
fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_serve"));
    command.args(["--port", "0", "--dynamodb-port", "0"]);
    command.args(arguments).env_clear().stdin(Stdio::null());
    command
}

fn spawn(arguments: &[&str], stdout: Stdio, stderr: Stdio) -> Child {
    let mut command = command(arguments);
    command.stdout(stdout).stderr(stderr).spawn().unwrap()
}

/// A running `cargo serve`. The process is killed when this value is dropped.
struct Process {
    child: Child,
    url: String,
    dynamodb_url: String,
}

impl Process {
    /// Starts the process, and waits until it has printed its addresses.
    fn start(arguments: &[&str]) -> Self {
        let arguments = [&["--json"], arguments].concat();
        let mut child = spawn(&arguments, Stdio::piped(), Stdio::null());
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let printed: Value = serde_json::from_str(&line).unwrap();
        let field = |name: &str| printed[name].as_str().unwrap().to_owned();
        Self {
            child,
            url: field("url"),
            dynamodb_url: field("dynamodb"),
        }
    }

    /// Sends a signal, and waits until the process exits with 0.
    fn stop(mut self, signal: &str) {
        let id = self.child.id().to_string();
        let kill = Command::new("kill").args([signal, &id]).status();
        assert!(kill.unwrap().success());
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
