//! `remove`: removes records that the API has stored. The API itself cannot remove anything.

pub mod from_all_teams;
pub mod team;

use std::{
    path::{Path, PathBuf},
    time::SystemTime,
};

use anyhow::{Result, bail};
use clap::builder::NonEmptyStringValueParser;
use serde_json::{Value, json};
use workspace_management::store::{Table, timestamp};

use crate::{
    arguments::{ORG_HELP, is_dash, parse_identifier},
    export::{ExportWriter, check_export},
    output::print_json_or_text,
    session::{Run, Session},
    target::{DataStoreArgs, ProjectArgs, Target},
    text::escape,
    wait::WaitArgs,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl remove member --org globex --project apollo --team docs ada@example.com
  workspacectl remove member --org globex --all-teams ada@example.com
  workspacectl remove team --org globex --project apollo docs ops --export teams.jsonl
  workspacectl remove model --org globex --type chat gpt-4o
  workspacectl remove data-store --org globex papers
  workspacectl remove voice --org globex bot-7
  workspacectl remove logging-instance --org globex --project apollo";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Export the records to this new file before deleting them. `restore` can copy them
    /// back. The file is called FILE.partial until the first deletion. `-` is standard output,
    /// which then has nothing else
    #[arg(long, value_name = "FILE", global = true)]
    export: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Remove a user from a team, or from all teams of an organization
    #[command(
        after_help = "Examples:\n  workspacectl remove member --org globex --project apollo --team docs ada@example.com\n  workspacectl remove member --org globex --all-teams ada@example.com --export ada.jsonl"
    )]
    Member {
        #[arg(long, value_parser = parse_identifier, help = ORG_HELP)]
        org: String,
        /// The id of the project
        #[arg(long, value_parser = parse_identifier, requires = "team", required_unless_present = "all_teams")]
        project: Option<String>,
        /// The id of the team
        #[arg(long, value_parser = parse_identifier, requires = "project", required_unless_present = "all_teams")]
        team: Option<String>,
        /// Remove the user from all teams of the organization, after a confirmation
        #[arg(long, conflicts_with_all = ["project", "team"])]
        all_teams: bool,
        /// The user's id, as in the request that added the user
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        user: String,
    },
    /// Remove teams and their members, after waiting until the function's caches have expired
    #[command(
        after_help = "Examples:\n  workspacectl remove team --org globex --project apollo docs\n  workspacectl remove team --org globex --project apollo docs ops --export teams.jsonl"
    )]
    Team {
        #[command(flatten)]
        project_args: ProjectArgs,
        /// The ids of the teams
        #[arg(value_name = "TEAM", required = true, value_parser = parse_identifier)]
        teams: Vec<String>,
        #[command(flatten)]
        wait_args: WaitArgs,
    },
    /// Remove a model from an organization
    #[command(after_help = "Example:\n  workspacectl remove model --org globex --type chat gpt-4o")]
    Model {
        #[arg(long, value_parser = parse_identifier, help = ORG_HELP)]
        org: String,
        /// The type of the model, as in the path of the request that added it
        #[arg(long = "type", value_name = "TYPE", value_parser = NonEmptyStringValueParser::new())]
        model_type: String,
        /// The `modelid` of the model
        #[arg(value_name = "MODELID", value_parser = NonEmptyStringValueParser::new())]
        model_id: String,
    },
    /// Remove the record of a data store
    #[command(after_help = "Example:\n  workspacectl remove data-store --org globex papers")]
    DataStore(DataStoreArgs),
    /// Remove the voice of a bot
    #[command(after_help = "Example:\n  workspacectl remove voice --org globex bot-7")]
    Voice {
        #[arg(long, value_parser = parse_identifier, help = ORG_HELP)]
        org: String,
        /// The id of the bot
        #[arg(value_parser = parse_identifier)]
        bot: String,
    },
    /// Remove the record of a project's logging instance
    #[command(
        after_help = "Example:\n  workspacectl remove logging-instance --org globex --project apollo"
    )]
    LoggingInstance(ProjectArgs),
}

pub(crate) async fn execute(args: Args, session: &Session) -> Result<()> {
    let export_path = args.export.as_deref();
    check_export(export_path)?;
    match args.command {
        Command::Team {
            project_args,
            mut teams,
            wait_args,
        } => {
            teams.sort();
            teams.dedup();
            team::execute(&project_args, &teams, wait_args, export_path, session).await
        }
        Command::Member {
            org,
            project: Some(project),
            team: Some(team),
            user,
            ..
        } => {
            let target = Target {
                table: Table::TEAM_MEMBERS,
                display_name: format!("the member {user} of the team {team}"),
                primary_key: [format!("{org}#{project}#{team}"), user],
            };
            remove_record(&target, export_path, session).await
        }
        // With --all-teams.
        Command::Member { org, user, .. } => {
            from_all_teams::execute(&org, &user, export_path, session).await
        }
        Command::Model {
            org,
            model_type,
            model_id,
        } => {
            let target = Target {
                table: Table::MODELS,
                display_name: format!("the model {model_id} of the type {model_type}"),
                primary_key: [org, format!("{model_type}#{model_id}")],
            };
            remove_record(&target, export_path, session).await
        }
        Command::Voice { org, bot } => {
            let target = Target {
                table: Table::BOT_VOICES,
                display_name: format!("the voice of the bot {bot}"),
                primary_key: [org, bot],
            };
            remove_record(&target, export_path, session).await
        }
        Command::DataStore(args) => remove_record(&args.target(), export_path, session).await,
        Command::LoggingInstance(args) => {
            remove_record(&args.logging_instance_target(), export_path, session).await
        }
    }
}

/// Removes one record. Asks for no confirmation, because the arguments name the record.
async fn remove_record(
    target: &Target,
    export_path: Option<&Path>,
    session: &Session,
) -> Result<()> {
    let (deployment, run) = session.deployment_and_run().await?;
    let mut export = export_path.map(ExportWriter::create).transpose()?;
    let Some(removed) = target.remove(deployment, export.as_mut()).await? else {
        bail!("{} does not exist", target.display_name);
    };
    session.report(&format!("{} was removed", target.display_name));
    let id = target.id_in_partition();
    print_removed(removed, &escape(id), &run, export_path, session)
}

/// With `--json`, prints what was removed, by whom and when. Otherwise prints the id. Prints nothing
/// if standard output has the export.
fn print_removed(
    mut removed: Value,
    id: &str,
    run: &Run,
    export_path: Option<&Path>,
    session: &Session,
) -> Result<()> {
    if export_path.is_some_and(is_dash) {
        return Ok(());
    }
    let records = match &mut removed {
        Value::Array(records) => records,
        record => std::slice::from_mut(record),
    };
    for record in records {
        record["removed_at"] = json!(timestamp(SystemTime::now()));
        record["removed_by"] = json!(run.operator);
        record["removed_request_id"] = json!(run.id);
    }
    print_json_or_text(&removed, id, session)
}

/// The sentence that says whether the removal can be undone.
fn undo_sentence(export_path: Option<&Path>) -> &'static str {
    match export_path {
        Some(_) => "`restore` can copy the records back from the export.",
        None => "This cannot be undone.",
    }
}
