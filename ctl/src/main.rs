//! The command line of `workspacectl`.

mod commands;
mod deployment;
mod errors;
mod output;
mod page;
mod progress;
mod query;
mod usage;

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
    commands::{doctor, keys, list, orgs, serve, set},
    deployment::Deployment,
};

/// Run workspace-management locally, register organizations, and manage API keys.
///
/// `orgs`, `keys`, `list`, `doctor` and `env` work on one deployment, the
/// first of these that applies:
///
///   1. the CloudFormation stack given with --stack
///   2. the tables named by the Lambda function's environment variables
///      (TEAMS_TABLE and so on)
///   3. the local service that `serve` has started, with its DynamoDB at
///      AWS_ENDPOINT_URL_DYNAMODB or http://127.0.0.1:8000
///
/// The first two use the AWS SDK's default region and credential chain. `set`
/// always works on the stack given with --stack.
#[derive(Parser)]
#[command(version, verbatim_doc_comment, after_help = HELP)]
struct Cli {
    /// Work on this CloudFormation stack
    #[arg(long, global = true, value_name = "NAME")]
    stack: Option<String>,
    /// Print JSON, with times in RFC 3339
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

const HELP: &str = "\
Data is printed to standard output, everything else to standard error.

Exit codes:
  0  success
  1  failure, or `doctor` found a problem
  2  invalid command line

Examples:
  workspacectl serve
  workspacectl orgs create globex
  workspacectl keys create --org globex --label ci --expires 90d
  workspacectl list teams --org acme --project apollo
  workspacectl --stack workspace-management doctor
  workspacectl --stack workspace-management set LogLevel=DEBUG";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  workspacectl completions bash > ~/.local/share/bash-completion/completions/workspacectl
  workspacectl completions zsh > ~/.zfunc/_workspacectl
  workspacectl completions fish > ~/.config/fish/completions/workspacectl.fish";

#[derive(Subcommand)]
enum Command {
    /// Run the whole service locally, with a demo organization and an API key
    #[command(after_help = serve::EXAMPLES)]
    Serve(serve::Options),
    /// Print a completion script for a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell
        shell: Shell,
    },
    #[command(flatten)]
    OnDeployment(OnDeployment),
    /// Change parameters of a stack, without its template and code
    #[command(after_help = set::EXAMPLES)]
    Set(set::Options),
}

#[derive(Subcommand)]
enum OnDeployment {
    /// Register and list organizations
    #[command(subcommand, after_help = orgs::EXAMPLES)]
    Orgs(orgs::Command),
    /// Create, list, rotate and revoke API keys
    #[command(subcommand, after_help = keys::EXAMPLES)]
    Keys(keys::Command),
    /// List stored records
    #[command(after_help = list::EXAMPLES)]
    List(list::Options),
    /// Check that the tables match template.yaml and that the API responds
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(doctor::Options),
    /// Print the environment variables that the Lambda function needs for the tables
    #[command(after_help = commands::env::EXAMPLES)]
    Env,
}

#[tokio::main]
async fn main() -> ExitCode {
    // Libraries warn about causes that the error contains, and about every failed condition.
    let levels = Targets::new()
        .with_default(LevelFilter::ERROR)
        .with_target("workspace_management", LevelFilter::INFO);
    let log = fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal() && env::var_os("NO_COLOR").is_none())
        .with_target(false);
    registry().with(log.with_filter(levels)).init();
    match run(Cli::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", errors::describe(&error));
            if let Some(hint) = errors::hint(&error) {
                eprintln!("hint: {hint}");
            }
            match error.is::<usage::UsageError>() {
                true => ExitCode::from(2),
                false => ExitCode::FAILURE,
            }
        }
    }
}

async fn run(cli: Cli) -> anyhow::Result<()> {
    let (stack, json) = (cli.stack.as_deref(), cli.json);
    let command = match cli.command {
        Command::Serve(_) if stack.is_some() => {
            bail!("serve runs locally: remove --stack")
        }
        Command::Serve(options) => return serve::run(options, json).await,
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "workspacectl", &mut script);
            return output::print(String::from_utf8(script)?.trim_end());
        }
        Command::Set(options) => return set::run(options, stack, json).await,
        Command::OnDeployment(command) => command,
    };
    let deployment = Deployment::find(stack).await?;
    match command {
        OnDeployment::Orgs(command) => orgs::run(command, &deployment, json).await,
        OnDeployment::Keys(command) => keys::run(command, &deployment, json).await,
        OnDeployment::List(options) => list::run(options, &deployment, json).await,
        OnDeployment::Doctor(options) => doctor::run(options, &deployment, json).await,
        OnDeployment::Env => commands::env::run(&deployment, json),
    }
    .with_context(|| deployment.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
