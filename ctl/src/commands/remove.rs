//! `remove`: records that the operations have stored. The API cannot remove anything.

pub mod all_teams;
mod single;
pub mod team;

use std::path::PathBuf;

use anyhow::Result;
use clap::builder::NonEmptyStringValueParser;
use workspace_management::store::Table;

use self::single::Target;
use crate::{session::Session, usage::identifier, wait::Wait};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl remove member --org globex --project apollo --team docs ada@example.com
  workspacectl remove team --org globex --project apollo docs --export docs.jsonl
  workspacectl remove model --org globex --type chat gpt-4o
  workspacectl remove data-store --org globex papers
  workspacectl remove voice --org globex bot-7
  workspacectl remove logging-instance --org globex --project apollo";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Write the records to this new file before they are deleted: `restore` copies them back
    #[arg(long, value_name = "FILE", global = true)]
    export: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

/// Removes records.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Remove a user from a team, or from all teams of an organization
    #[command(after_help = MEMBER_EXAMPLES)]
    Member {
        #[command(flatten)]
        org: Organization,
        /// The id of the project
        #[arg(long, value_parser = identifier, requires = "team", required_unless_present = "all_teams")]
        project: Option<String>,
        /// The id of the team
        #[arg(long, value_parser = identifier, requires = "project", required_unless_present = "all_teams")]
        team: Option<String>,
        /// Remove the user from all teams of the organization, after a confirmation
        #[arg(long, conflicts_with_all = ["project", "team"])]
        all_teams: bool,
        /// The user's id, with exactly the characters that were added
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        user: String,
    },
    /// Remove teams and their members, after a wait until the function's caches have expired
    #[command(after_help = TEAM_EXAMPLES)]
    Team {
        #[command(flatten)]
        project: Project,
        /// The ids of the teams
        #[arg(value_name = "TEAM", required = true, value_parser = identifier)]
        teams: Vec<String>,
        #[command(flatten)]
        wait: Wait,
    },
    /// Remove a model from an organization
    #[command(after_help = "Example:\n  workspacectl remove model --org globex --type chat gpt-4o")]
    Model {
        #[command(flatten)]
        org: Organization,
        /// The type of the model, as in the path that added it
        #[arg(long = "type", value_name = "TYPE", value_parser = NonEmptyStringValueParser::new())]
        model_type: String,
        /// The `modelid` of the model
        #[arg(value_name = "MODELID", value_parser = NonEmptyStringValueParser::new())]
        model: String,
    },
    /// Remove the record of a data store
    #[command(after_help = "Example:\n  workspacectl remove data-store --org globex papers")]
    DataStore {
        #[command(flatten)]
        org: Organization,
        /// The id of the data store
        #[arg(value_parser = identifier)]
        id: String,
    },
    /// Remove the voice of a bot
    #[command(after_help = "Example:\n  workspacectl remove voice --org globex bot-7")]
    Voice {
        #[command(flatten)]
        org: Organization,
        /// The id of the bot
        #[arg(value_parser = identifier)]
        bot: String,
    },
    /// Remove the record of a project's logging instance
    #[command(
        after_help = "Example:\n  workspacectl remove logging-instance --org globex --project apollo"
    )]
    LoggingInstance {
        #[command(flatten)]
        project: Project,
    },
}

const TEAM_EXAMPLES: &str = "\
Examples:
  workspacectl remove team --org globex --project apollo docs --export docs.jsonl
  workspacectl remove team --org globex --project apollo docs ops legal";

const MEMBER_EXAMPLES: &str = "\
Examples:
  workspacectl remove member --org globex --project apollo --team docs ada@example.com
  workspacectl remove member --org globex --all-teams ada@example.com";

/// The organization of a record.
#[derive(Debug, clap::Args)]
pub(crate) struct Organization {
    /// The id of the organization
    #[arg(long, value_parser = identifier)]
    pub(super) org: String,
}

/// The project of a record.
#[derive(Debug, clap::Args)]
pub(crate) struct Project {
    /// The id of the organization
    #[arg(long, value_parser = identifier)]
    pub(super) org: String,
    /// The id of the project
    #[arg(long, value_parser = identifier)]
    pub(super) project: String,
}

pub(crate) async fn run(options: Options, session: &Session) -> Result<()> {
    let export = options.export.as_deref();
    let target = match options.command {
        Command::Team {
            project: Project { org, project },
            mut teams,
            wait,
        } => {
            teams.sort();
            teams.dedup();
            let project = format!("{org}#{project}");
            return team::run(&project, &teams, wait, export, session).await;
        }
        Command::Member {
            org,
            project,
            team,
            user,
            ..
        } => match (project, team) {
            (Some(project), Some(team)) => Target {
                table: Table::TEAM_MEMBERS,
                name: format!("the member {user} of the team {team}"),
                key: [format!("{}#{project}#{team}", org.org), user],
            },
            // With --all-teams.
            _ => return all_teams::run(&org.org, &user, export, session).await,
        },
        Command::Model {
            org,
            model_type,
            model,
        } => Target {
            table: Table::MODELS,
            name: format!("the model {model} of the type {model_type}"),
            key: [org.org, format!("{model_type}#{model}")],
        },
        Command::DataStore { org, id } => Target {
            table: Table::DATA_STORES,
            name: format!("the data store {id}"),
            key: [org.org, id],
        },
        Command::Voice { org, bot } => Target {
            table: Table::BOT_VOICES,
            name: format!("the voice of the bot {bot}"),
            key: [org.org, bot],
        },
        Command::LoggingInstance {
            project: Project { org, project },
        } => Target {
            table: Table::LOGGING_INSTANCES,
            name: format!("the logging instance of the project {project}"),
            key: [org, project],
        },
    };
    single::run(&target, export, session).await
}
