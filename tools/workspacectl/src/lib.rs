//! `workspacectl`, the operator's command-line tool, as a library that tests can call.
//!
//! A command checks its arguments, connects to a deployment, reads records, and sends writes:
//!
//! | module | contains |
//! |---|---|
//! | [`context`] | the global options, the deployment that a command works on, and its run |
//! | [`record`] | stored records with all attributes, of any kind or parsed as one kind |
//! | `read` | which records to read: one, or those in a scope |
//! | `log` | the lines of requests, from the log of a stack or of the local service |
//! | `write` | writes as data, and the requests and transactions that send them |
//! | [`marked_deletion`] | the protocol that deletes teams and organizations with their children |
//! | [`commands`] | one file for each subcommand |
//!
//! A "run" is one execution of a command. A "registration" of an organization begins when
//! `orgs create` stores the organization, and ends with `orgs erase`. The function rejects the API
//! keys of earlier registrations.

#![deny(clippy::print_stderr, clippy::print_stdout)]

mod arguments;
pub mod commands;
pub mod context;
pub mod deployment;
pub mod environment;
mod errors;
pub mod export;
mod expressions;
mod http;
mod key_record;
mod log;
pub mod marked_deletion;
mod message;
pub mod organization;
mod output;
mod read;
pub mod record;
mod text;
pub mod wait;
mod write;

use std::{env, io, process::ExitCode};

use anstream::{AutoStream, ColorChoice};
use clap::{CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;
use tracing_subscriber::filter::LevelFilter;
use workspace_management::api_key::API_KEY_PREFIX;

use crate::{
    commands::{
        doctor::{self, OnlyWarningsError},
        edit, history, keys, list, logs, orgs, remove, restore,
    },
    context::GlobalOptions,
    errors::UsageError,
    message::print_message,
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
    options: GlobalOptions,
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Data is printed to standard output, everything else to standard error. With --json,
the data is one JSON document: an array if a command can act on several things, even
if it acts on one, and otherwise an object. If --limit cuts an array, a message says
so. Only exports and logs (JSON Lines) and completions are not one JSON document.

Exit codes:
  0  success
  1  failure, including a failed `doctor` check
  2  usage error
  3  `doctor --strict` found only warnings

Examples:
  workspacectl orgs create globex
  workspacectl keys create --org globex --label ci --expires 90d
  workspacectl list teams --org acme --project apollo
  workspacectl --stack workspace-management-trial doctor";

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
    /// Show who changed what in an organization, when and why
    #[command(after_help = history::EXAMPLES)]
    History(history::Args),
    /// Correct a name, a description, the `id` of a model, or a voice
    #[command(after_help = edit::EXAMPLES)]
    Edit(edit::Args),
    /// Remove a record, teams with their members, or a user from all teams
    #[command(after_help = remove::EXAMPLES)]
    Remove(remove::Args),
    /// Copy missing records back from an export, or from a table restored from a backup
    #[command(after_help = restore::EXAMPLES)]
    Restore(restore::Args),
    /// Print a line for each request of a caller, from the log
    ///
    /// A line has the time, the status, the operation, the code, the organization and the key of the
    /// caller, the address, the request id, and the reason or the JSON pointers of an error.
    /// --json has all fields, and prints JSON Lines.
    ///
    /// On AWS, a line can take a minute to arrive. Requests that did not reach the function or that
    /// it did not end are only found with --request. The local service has its last 10,000 lines.
    #[command(after_help = logs::EXAMPLES)]
    Logs(logs::Args),
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
    let Cli { command, options } = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return print_help_or_error(&error),
    };
    let verbose = options.verbose;
    if verbose {
        init_log();
    }
    match execute_command(command, options).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let text = errors::error_text(&error, verbose);
            print_message(&format!("error: {}", escape(&text)));
            if let Some(hint) = errors::hint(&error) {
                print_message(&format!("hint: {hint}"));
            }
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

async fn execute_command(command: Command, options: GlobalOptions) -> anyhow::Result<()> {
    match command {
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "workspacectl", &mut script);
            output::print(String::from_utf8(script)?.trim_end())
        }
        Command::Orgs(command) => orgs::execute(command, options).await,
        Command::Keys(command) => keys::execute(command, options).await,
        Command::List(args) => list::execute(args, options).await,
        Command::History(args) => history::execute(args, options).await,
        Command::Edit(args) => edit::execute(args, options).await,
        Command::Remove(args) => remove::execute(args, options).await,
        Command::Restore(args) => restore::execute(args, options).await,
        Command::Logs(args) => logs::execute(args, options).await,
        Command::Doctor(args) => doctor::execute(args, options).await,
        Command::Env => commands::env::execute(options).await,
    }
}
