//! The program `workspacectl`.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    workspacectl::run().await
}
