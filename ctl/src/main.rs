//! The entry point of `workspacectl`: see the library.

#![deny(clippy::print_stderr, clippy::print_stdout)]

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    workspacectl::execute().await
}
