//! The command line of `workspacectl`.

mod commands;
mod deployment;
mod output;
mod page;
mod progress;
mod query;

use std::{
    env,
    io::{self, IsTerminal as _},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use clap::{CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;
use tracing_subscriber::{
    Layer as _,
    filter::{LevelFilter, Targets},
    fmt,
    layer::SubscriberExt as _,
    registry,
    util::SubscriberInitExt as _,
};

use crate::{
    commands::{doctor, keys, list, orgs, serve},
    deployment::Deployment,
};

/// Runs workspace-management on this machine, registers organizations and issues keys.
///
/// Everything but `serve` works on a deployment: the one of `--stack`; else the tables that the function's own environment
/// variables name (TEAMS_TABLE and so on), both reached as the AWS SDK is configured; else what `serve` runs on this
/// machine, with DynamoDB where AWS_ENDPOINT_URL_DYNAMODB says or on port 8000.
///
/// Data goes to standard output, all else to standard error. Exit codes: 0 if it is done, 1 if it could not be done or
/// if `doctor` found something wrong, 2 if the command line is wrong.
#[derive(Parser)]
#[command(version, after_help = EXAMPLES)]
struct Cli {
    /// The CloudFormation stack whose tables to work on
    #[arg(long, global = true, value_name = "NAME")]
    stack: Option<String>,
    /// Print JSON, with moments in RFC 3339
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  workspacectl serve
  workspacectl orgs create globex
  workspacectl keys create --org globex --label ci --expires 90d --allow create_team,add_team_users
  workspacectl keys rotate 4fzzzxjylrx3 --overlap 7d
  workspacectl list members --org acme --project apollo --team research-team --json
  workspacectl --stack workspace-management doctor
  workspacectl completions bash > ~/.local/share/bash-completion/completions/workspacectl";

const KEYS_EXAMPLES: &str = "\
Examples:
  workspacectl keys create --org globex --label ci --expires 90d --allow create_team,add_team_users
  workspacectl keys list --org globex
  workspacectl keys rotate 4fzzzxjylrx3 --overlap 7d
  workspacectl keys revoke 4fzzzxjylrx3";

const LIST_EXAMPLES: &str = "\
Examples:
  workspacectl list teams --org acme --project apollo
  workspacectl list members --org acme --project apollo --team research-team --json
  workspacectl list models --limit 100      # and what it prints last: --after MARK";

#[derive(Subcommand)]
enum Command {
    /// Run the whole service on this machine, with a demo organization and its key
    Serve(serve::Options),
    /// Print a script that completes this tool's commands in a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    #[command(flatten)]
    On(OnDeployment),
}

#[derive(Subcommand)]
enum OnDeployment {
    /// Register and list organizations
    #[command(subcommand)]
    Orgs(orgs::Command),
    /// Issue, list, rotate and revoke keys
    #[command(subcommand, after_help = KEYS_EXAMPLES)]
    Keys(keys::Command),
    /// Show what is stored
    #[command(after_help = LIST_EXAMPLES)]
    List(list::Options),
    /// Look whether all is well: the tables are there and as the template says, and the API answers
    Doctor(doctor::Options),
}

#[tokio::main]
async fn main() -> ExitCode {
    // The embedded DynamoDB warns of each condition that does not hold, as in every repeat.
    let levels = Targets::new()
        .with_default(LevelFilter::INFO)
        .with_target("dynoxide", LevelFilter::ERROR);
    let log = fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal() && env::var_os("NO_COLOR").is_none())
        .with_target(false);
    registry().with(log.with_filter(levels)).init();
    match run(Cli::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            if let Some(advice) = advice(&error) {
                eprintln!("{advice}");
            }
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: Cli) -> anyhow::Result<()> {
    let (stack, json) = (cli.stack.as_deref(), cli.json);
    let command = match cli.command {
        Command::Serve(_) if stack.is_some() => {
            bail!("serve runs on this machine: it takes no --stack")
        }
        Command::Serve(options) => return serve::serve(options, json).await,
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "workspacectl", &mut script);
            return output::print(String::from_utf8(script)?.trim_end());
        }
        Command::On(command) => command,
    };
    let deployment = Deployment::find(stack).await?;
    match command {
        OnDeployment::Orgs(command) => orgs::run(command, &deployment, json).await,
        OnDeployment::Keys(command) => keys::run(command, &deployment, json).await,
        OnDeployment::List(options) => list::run(options, &deployment, json).await,
        OnDeployment::Doctor(options) => doctor::run(options, &deployment, json).await,
    }
    .with_context(|| format!("on {}", deployment.name))
}

/// What to do about a failure that has a known way out.
fn advice(error: &anyhow::Error) -> Option<&'static str> {
    let text = format!("{error:#}");
    let ways = [
        (
            "credential provider",
            "No AWS credentials were found: set AWS_PROFILE, or sign in with `aws sso login` or `aws configure`.",
        ),
        (
            "ExpiredToken",
            "The AWS credentials have expired: sign in again.",
        ),
        (
            "AccessDenied",
            "Your AWS identity may not do this: README, \"Deploying\", lists the permissions.",
        ),
        (
            "ResourceNotFoundException",
            "A table is not there: are --stack, AWS_REGION and AWS_PROFILE the right ones? `workspacectl doctor` looks.",
        ),
    ];
    let way = ways.into_iter().find(|(sign, _)| text.contains(sign));
    way.map(|(_, advice)| advice)
}
