//! `workspacectl`, the operator's command-line tool, as a library that tests can call.
//!
//! Terms in comments:
//!
//! - "The function" is the Lambda function that serves the API.
//! - `remove team` and `orgs erase` "mark" a record before they delete anything. A team's mark is
//!   `removing_id`, `removing_at` and `removing_by`. An organization's mark is `erasing_id`,
//!   `erasing_at` and `erasing_by`. After the function's caches have expired, it adds no members
//!   to a marked team and no records to a marked organization.
//! - A "run" is one execution of a command. Created records contain the id of the run as
//!   `request_id`, edited ones as `updated_request_id`, and restored ones as `restored_request_id`.
//! - A "registration" of an organization begins when `orgs create` stores the organization, and
//!   ends with `orgs erase`. The function rejects the API keys of earlier registrations.
//!
//! The names of stored attributes are fixed. Some have clearer names in the code:
//!
//! | in the code | in the record |
//! |---|---|
//! | `registration_id` | `request_id` of an organization, `org_request_id` of an API key |
//! | `run_id` | `request_id` of an API key |
//! | `lifetime_seconds` | `issued_for` of an API key |
//! | `predecessor_id`, `successor_id` | `replaces` and `replaced_by` of an API key |
//! | `teams_partition`, such as `acme#apollo` | `project` of a team |
//! | the partition of a member, such as `acme#apollo#docs` | `team` of a member |

#![deny(clippy::print_stderr, clippy::print_stdout)]

mod arguments;
pub mod commands;
pub mod deployment;
pub mod environment;
mod errors;
pub mod export;
mod http;
mod key_record;
mod message;
pub mod organization;
mod output;
mod read;
pub mod session;
pub mod target;
mod text;
pub mod wait;
mod write;

use std::{env, io, process::ExitCode};

use anstream::{AutoStream, ColorChoice};
use clap::{CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;
use tokio::sync::OnceCell;
use tracing_subscriber::filter::LevelFilter;
use workspace_management::api_key::API_KEY_PREFIX;

use crate::{
    commands::{
        doctor::{self, OnlyWarningsError},
        edit, keys, list, orgs, remove, restore,
    },
    errors::{RequestError, UsageError},
    message::print_message,
    session::{GlobalArgs, Session},
    text::escape,
};

/// Register organizations, issue API keys, and manage the records of workspace-management.
///
/// Most commands act on one deployment, chosen in this order:
///
///   1. the CloudFormation stack named by --stack or WORKSPACECTL_STACK
///   2. the tables named in your environment, in the variables that the Lambda
///      function reads: TEAMS_TABLE and so on
///   3. the local service that `cargo serve` starts, with DynamoDB at
///      AWS_ENDPOINT_URL_DYNAMODB or http://127.0.0.1:8000
///
/// For 1 and 2, set a region and credentials as for the AWS CLI.
#[derive(Parser)]
#[command(version, verbatim_doc_comment, after_help = AFTER_HELP)]
pub struct Cli {
    #[command(flatten)]
    global_args: GlobalArgs,
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Data is printed to standard output, everything else to standard error. With --json,
the data is one JSON document: an array if a command can act on several things, even
if it acts on one, and otherwise an object. If --limit cuts an array, a message says
so. Only exports (JSON Lines) and completions are not one JSON document.

Exit codes:
  0  success
  1  failure, including a failed `doctor` check
  2  usage error
  3  `doctor --strict` found only warnings

Examples:
  workspacectl orgs create globex
  workspacectl keys create --org globex --label ci --expires 90d
  workspacectl list teams --org acme --project apollo
  workspacectl --stack workspace-management doctor";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  workspacectl completions bash > ~/.local/share/bash-completion/completions/workspacectl
  workspacectl completions zsh > ~/.zfunc/_workspacectl
  workspacectl completions fish > ~/.config/fish/completions/workspacectl.fish";

#[derive(Subcommand)]
enum Command {
    /// Register, list, disable, export and erase organizations
    #[command(subcommand, after_help = orgs::EXAMPLES)]
    Orgs(orgs::Command),
    /// Create, list, check, rotate and revoke API keys
    #[command(subcommand, after_help = keys::EXAMPLES)]
    Keys(keys::Command),
    /// List stored records
    #[command(after_help = list::EXAMPLES)]
    List(list::Args),
    /// Correct the name or description of a team or data store, or the project name of a logging
    /// instance
    #[command(subcommand, after_help = edit::EXAMPLES)]
    Edit(edit::Command),
    /// Remove a record, teams with their members, or a user from all teams
    #[command(after_help = remove::EXAMPLES)]
    Remove(remove::Args),
    /// Copy missing records back from an export, or from a table restored from a backup
    #[command(after_help = restore::EXAMPLES)]
    Restore(restore::Args),
    /// Check that the tables match template.yaml and that the API works
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(doctor::Args),
    /// Print the environment variables for running the Lambda function locally
    #[command(after_help = commands::env::EXAMPLES)]
    Env,
    /// Print a completion script for a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell to generate the script for
        shell: Shell,
    },
}

/// Parses the command line, runs the command and reports any error. Returns the exit code.
pub async fn execute() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return print_help_or_error(&error),
    };
    let session = Session {
        global_args: cli.global_args,
        resolved_deployment: OnceCell::new(),
    };
    if session.global_args.verbose {
        init_log();
    }
    match execute_command(cli.command, &session).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report_error(&error, &session);
            exit_code(&error)
        }
    }
}

fn exit_code(error: &anyhow::Error) -> ExitCode {
    if error.is::<UsageError>() {
        ExitCode::from(2)
    } else if error.is::<OnlyWarningsError>() {
        ExitCode::from(3)
    } else {
        ExitCode::FAILURE
    }
}

/// Prints the help that the operator asked for, or what is wrong with the arguments. Suppresses
/// clap's message if an argument may be an API key, because the message would repeat it.
fn print_help_or_error(error: &clap::Error) -> ExitCode {
    let is_error = error.use_stderr();
    let may_contain_key =
        env::args_os().any(|argument| argument.to_string_lossy().contains(API_KEY_PREFIX));
    if is_error && may_contain_key {
        print_message(
            "error: invalid arguments. They are not shown, because one may be an API key. See --help",
        );
        return ExitCode::from(2);
    }
    let _ = error.print();
    ExitCode::from(if is_error { 2 } else { 0 })
}

/// Logs warnings from libraries to standard error, in color if clap would use color. Called only
/// with `--verbose`, because the SDK warns about every failed condition of a write.
fn init_log() {
    tracing_subscriber::fmt()
        .with_max_level(LevelFilter::WARN)
        .with_writer(io::stderr)
        .with_ansi(AutoStream::choice(&io::stderr()) != ColorChoice::Never)
        .with_target(false)
        // Otherwise, a line that cannot be written would cause a panic.
        .log_internal_errors(false)
        .init();
}

/// Prints an error and what to do about it. If a request has failed, names the deployment.
fn report_error(error: &anyhow::Error, session: &Session) {
    let mut text = errors::error_text(error, session.global_args.verbose);
    let mut is_local_service = false;
    if let Some(deployment) = session.resolved_deployment.get()
        && error.is::<RequestError>()
    {
        text = format!("{}: {text}", deployment.display_name);
        is_local_service = deployment.local_service_dynamodb_url.is_some();
    }
    print_message(&format!("error: {}", escape(&text)));
    if let Some(hint) = errors::hint(error, is_local_service) {
        print_message(&format!("hint: {hint}"));
    }
}

async fn execute_command(command: Command, session: &Session) -> anyhow::Result<()> {
    match command {
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "workspacectl", &mut script);
            output::print(String::from_utf8(script)?.trim_end())
        }
        Command::Orgs(command) => orgs::execute(command, session).await,
        Command::Keys(command) => keys::execute(command, session).await,
        Command::List(args) => list::execute(args, session).await,
        Command::Edit(command) => edit::execute(command, session).await,
        Command::Remove(args) => remove::execute(args, session).await,
        Command::Restore(args) => restore::execute(args, session).await,
        Command::Doctor(args) => doctor::execute(args, session).await,
        Command::Env => commands::env::execute(session).await,
    }
}
