//! The command line of `workspacectl`.

use std::{
    io::{self, IsTerminal as _},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use clap::{Parser, Subcommand};
use tracing_subscriber::{
    Layer as _,
    filter::{LevelFilter, Targets},
    fmt,
    layer::SubscriberExt as _,
    registry,
    util::SubscriberInitExt as _,
};
use workspacectl::{keys, list, orgs, serve, tables::Deployment};

/// Runs workspace-management on this machine, registers organizations and issues keys.
///
/// Everything but `serve` works on a deployment: the one of `--stack`; else the tables that the function's own environment
/// variables name (TEAMS_TABLE and so on), both reached as the AWS SDK is configured; else what `serve` runs on this
/// machine, with DynamoDB where AWS_ENDPOINT_URL_DYNAMODB says or on port 8000.
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
    /// Register and list organizations
    #[command(subcommand)]
    Orgs(orgs::Command),
    /// Issue, list and revoke keys
    #[command(subcommand)]
    Keys(keys::Command),
    /// Show what is stored
    List(list::Options),
}

#[tokio::main]
async fn main() -> ExitCode {
    // The embedded DynamoDB warns of each condition that does not hold, as in every repeat.
    let levels = Targets::new()
        .with_default(LevelFilter::INFO)
        .with_target("dynoxide", LevelFilter::ERROR);
    let log = fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false);
    registry().with(log.with_filter(levels)).init();
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
        Command::Serve(_) if cli.stack.is_some() => {
            bail!("serve runs on this machine: it takes no --stack")
        }
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
