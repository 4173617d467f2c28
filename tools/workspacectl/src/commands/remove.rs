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
use workspace_management::store::timestamp;
use workspace_records::kinds::PrimaryKey;

use crate::{
    arguments::{
        DataStoreArgs, ModelArgs, ORG_HELP, ProjectArgs, VoiceArgs, is_dash, parse_identifier,
    },
    context::{GlobalOptions, ReasonArgs, Run},
    deployment::Deployment,
    export::{ExportWriter, check_export},
    output::print_json_or_text,
    read,
    record::{LAST_WRITE, Record},
    text::escape,
    write::{Outcome, Write, change},
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl remove member --org globex --project apollo --team docs ada@example.com
  workspacectl remove member --org globex --all-teams ada@example.com
  workspacectl remove member --all-orgs --user ada@example.com --export ada.jsonl
  workspacectl remove team --org globex --project apollo docs ops --export teams.jsonl
  workspacectl remove model --org globex --type chat gpt-4o
  workspacectl remove data-store --org globex papers
  workspacectl remove voice --org globex bot-7
  workspacectl remove logging-instance --org globex --project apollo";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Export the records to this new file before deleting them. `restore` can copy them back. `-`
    /// is standard output, which then has nothing else
    #[arg(long, value_name = "FILE", global = true)]
    export: Option<PathBuf>,
    #[command(flatten)]
    reason: ReasonArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Remove a user from a team, or from all teams of one organization or of all
    #[command(
        after_help = "Examples:\n  workspacectl remove member --org globex --project apollo --team docs ada@example.com\n  workspacectl remove member --org globex --all-teams ada@example.com\n  workspacectl remove member --all-orgs --user ada@example.com --export ada.jsonl"
    )]
    Member(MemberArgs),
    /// Remove teams and their members, after waiting until the function's caches have expired
    #[command(
        after_help = "Examples:\n  workspacectl remove team --org globex --project apollo docs\n  workspacectl remove team --org globex --project apollo docs ops --export teams.jsonl\n  workspacectl remove team --org globex --project apollo docs --cancel"
    )]
    Team(team::Args),
    /// Remove a model from an organization
    #[command(after_help = "Example:\n  workspacectl remove model --org globex --type chat gpt-4o")]
    Model(ModelArgs),
    /// Remove the record of a data store
    #[command(after_help = "Example:\n  workspacectl remove data-store --org globex papers")]
    DataStore(DataStoreArgs),
    /// Remove the voice of a bot
    #[command(after_help = "Example:\n  workspacectl remove voice --org globex bot-7")]
    Voice(VoiceArgs),
    /// Remove the record of a project's logging instance
    #[command(
        after_help = "Example:\n  workspacectl remove logging-instance --org globex --project apollo"
    )]
    LoggingInstance(ProjectArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct MemberArgs {
    #[arg(long, value_parser = parse_identifier, required_unless_present = "all_orgs", help = ORG_HELP)]
    org: Option<String>,
    /// The id of the project
    #[arg(long, value_parser = parse_identifier, requires = "team", required_unless_present_any = ["all_teams", "all_orgs"])]
    project: Option<String>,
    /// The id of the team
    #[arg(long, value_parser = parse_identifier, requires = "project", required_unless_present_any = ["all_teams", "all_orgs"])]
    team: Option<String>,
    /// Remove the user from all teams of the organization, after a confirmation
    #[arg(long, conflicts_with_all = ["project", "team"])]
    all_teams: bool,
    /// Remove the user from all teams of all organizations, after a confirmation
    #[arg(long, conflicts_with_all = ["org", "project", "team", "all_teams"])]
    all_orgs: bool,
    /// The user's id, as in the request that added the user
    #[arg(value_parser = NonEmptyStringValueParser::new(), required_unless_present = "named_user")]
    user: Option<String>,
    /// The same as USER
    #[arg(id = "named_user", long = "user", value_name = "USER", conflicts_with = "user", value_parser = NonEmptyStringValueParser::new())]
    named_user: Option<String>,
}

pub(crate) async fn execute(args: Args, options: GlobalOptions) -> Result<()> {
    let (export_path, reason) = (args.export.as_deref(), args.reason);
    check_export(export_path)?;
    let key = match args.command {
        Command::Team(team_args) => {
            return team::execute(team_args, export_path, reason, options).await;
        }
        Command::Member(args) => {
            // One of them is required.
            let user = args.user.or(args.named_user).unwrap_or_default();
            match (args.org, args.project, args.team) {
                (Some(org), Some(project), Some(team)) => PrimaryKey::TeamMember {
                    org,
                    project,
                    team,
                    user,
                },
                // With --all-teams, or with --all-orgs, which excludes --org.
                (org, ..) => {
                    let org = org.as_deref();
                    return from_all_teams::execute(org, &user, export_path, reason, options).await;
                }
            }
        }
        Command::Model(args) => args.into_key(),
        Command::Voice(args) => args.into_key(),
        Command::DataStore(args) => args.into_key(),
        Command::LoggingInstance(args) => args.into_logging_instance_key(),
    };
    remove_record(&key, export_path, reason, options).await
}

/// Removes one record. Asks for no confirmation, because the arguments name the record.
async fn remove_record(
    key: &PrimaryKey,
    export_path: Option<&Path>,
    reason: ReasonArgs,
    options: GlobalOptions,
) -> Result<()> {
    let context = options.connect().await?;
    let run = context.begin_run(reason).await?;
    let mut export = export_path.map(ExportWriter::create).transpose()?;
    let Some(removed) = remove(&context.deployment, &run, key, export.as_mut()).await? else {
        bail!("{key} does not exist");
    };
    context.report(&format!("{key} was removed"));
    let id = escape(&key.id());
    print_removed(removed.to_json(), &id, &run, export_path, &context.options)
}

/// Removes and returns a record, or `None` if there is none. Exports it first if requested. Fails if
/// the record is written between the read and the delete.
async fn remove(
    deployment: &Deployment,
    run: &Run,
    key: &PrimaryKey,
    export: Option<&mut ExportWriter>,
) -> Result<Option<Record>> {
    let Some(record) = read::find(deployment, key).await? else {
        return Ok(None);
    };
    if let Some(export) = export {
        export.write(record.clone())?;
        export.persist()?;
    }
    let delete = Write::delete(&record).if_unchanged(&record, &LAST_WRITE);
    match change(deployment, run, "remove", vec![delete]).await? {
        // Another command may have deleted the record.
        Outcome::Refused(refusal) if refusal.existing.is_some() => Err(refusal.into_error()),
        _ => Ok(Some(record)),
    }
}

/// With `--json`, prints what was removed, by whom and when. Otherwise prints the id. Prints nothing
/// if standard output has the export.
fn print_removed(
    mut removed: Value,
    id: &str,
    run: &Run,
    export_path: Option<&Path>,
    options: &GlobalOptions,
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
    print_json_or_text(&removed, id, options)
}

/// The sentence that says whether the removal can be undone.
fn undo_sentence(export_path: Option<&Path>) -> &'static str {
    match export_path {
        Some(_) => "`restore` can copy the records back from the export.",
        None => "This cannot be undone.",
    }
}
