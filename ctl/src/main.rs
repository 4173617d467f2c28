//! The command line of `workspacectl`.

use std::{
    io::{self, IsTerminal as _},
    process::ExitCode,
};

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use tracing_subscriber::{filter::LevelFilter, fmt};
use workspacectl::{keys, list, orgs, serve, tables::Deployment};

/// Runs workspace-management on this machine, registers organizations and issues keys.
///
/// Everything but `serve` works on a deployment: the one of `--stack`; else the tables that the function's own
/// environment variables name (TEAMS_TABLE and so on), both reached as the AWS SDK is configured; else what
/// `workspacectl serve` runs on this machine.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// The CloudFormation stack whose tables to work on
    #[arg(long, global = true, value_name = "NAME")]
    stack: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the whole service on this machine, with a demo organization and its key
    Serve(serve::Options),
    #[command(flatten)]
    On(OnDeployment),
}

#[derive(Subcommand)]
enum OnDeployment {
    /// Register organizations
    #[command(subcommand)]
    Orgs(orgs::Command),
    /// Issue and revoke keys
    #[command(subcommand)]
    Keys(keys::Command),
    /// Show what is stored
    List(list::Options),
}

#[tokio::main]
async fn main() -> ExitCode {
    fmt()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .with_max_level(LevelFilter::INFO)
        .init();
    match run(Cli::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: Cli) -> anyhow::Result<()> {
    let command = match cli.command {
        Command::Serve(options) => return serve::serve(options).await,
        Command::On(command) => command,
    };
    let deployment = Deployment::find(cli.stack.as_deref()).await?;
    match command {
        OnDeployment::Orgs(command) => orgs::run(command, &deployment).await,
        OnDeployment::Keys(command) => keys::run(command, &deployment).await,
        OnDeployment::List(options) => list::run(options, &deployment).await,
    }
    .with_context(|| format!("on {}", deployment.name))
}
