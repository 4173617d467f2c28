//! The entry point of `workspacectl`: see the library.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    workspacectl::execute().await
}
