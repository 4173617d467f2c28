//! The entry point of `workspacectl`: see the library.

#![deny(clippy::print_stderr, clippy::print_stdout)]

use std::process::ExitCode;

fn main() -> ExitCode {
    workspacectl::environment::unset_empty_variables();
    execute()
}

#[tokio::main]
async fn execute() -> ExitCode {
    workspacectl::execute().await
}
