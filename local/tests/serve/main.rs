//! `cargo serve`: the page, and the process.
#![allow(clippy::unwrap_used, reason = "a test fails with a panic")]

mod durability;
mod page;
mod process;

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, ChildStdout, Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

/// The path of a file in a folder.
fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_owned()
}

/// `cargo serve` on free ports.
fn serve(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_serve"));
    command.args(["--port", "0", "--dynamodb-port", "0"]);
    command.args(arguments).env_clear().stdin(Stdio::null());
    command
}

/// A running process, which is killed in the end.
struct Process {
    child: Child,
    url: String,
    dynamodb_url: String,
    /// Stays open, because a process that prints to a closed output fails.
    _stdout: BufReader<ChildStdout>,
}

impl Process {
    /// Starts the process, and waits until it has printed its addresses.
    fn start(arguments: &[&str]) -> Self {
        let mut command = serve(&[&["--json"], arguments].concat());
        let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let printed: Value = serde_json::from_str(&line).unwrap();
        let owned = |name: &str| printed[name].as_str().unwrap().to_owned();
        Self {
            child,
            url: owned("url"),
            dynamodb_url: owned("dynamodb"),
            _stdout: stdout,
        }
    }

    /// Sends a signal, and waits until the process exits with 0.
    fn stop(mut self, signal: &str) {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args([signal, &id]).status();
        assert!(status.unwrap().success());
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
