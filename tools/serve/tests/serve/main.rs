//! `cargo serve`: the local page, the process, and the data file.
#![allow(clippy::unwrap_used, reason = "a test fails with a panic")]

mod durability;
mod page;
mod paths;
mod process;

use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use test_support::server::Server;

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

/// Starts the process, and waits until it has printed its addresses.
fn start(arguments: &[&str]) -> Server {
    Server::run(command(arguments).stderr(Stdio::null()))
}
