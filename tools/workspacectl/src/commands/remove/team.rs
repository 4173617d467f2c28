//! `remove team`: removes teams of a project with their members, as [`crate::marked_deletion`]
//! describes.

use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use workspace_records::kinds::PrimaryKey;

use super::{print_removed, undo_sentence};
use crate::{
    arguments::{ProjectArgs, parse_identifier},
    context::{Context, GlobalOptions, ReasonArgs, Run},
    deployment::Deployment,
    export::ExportWriter,
    marked_deletion::{self, DeletionOutcome, MarkedDeletion, Parent, REMOVING},
    output::print_json_or_text,
    read::{self, Scope},
    text::pluralize,
    wait::WaitArgs,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    project_args: ProjectArgs,
    /// The ids of the teams
    #[arg(value_name = "TEAM", required = true, value_parser = parse_identifier)]
    teams: Vec<String>,
    /// Cancel a removal that has begun
    #[arg(long, conflicts_with = "export")]
    cancel: bool,
    #[command(flatten)]
    wait_args: WaitArgs,
}

pub(super) async fn execute(
    mut args: Args,
    export_path: Option<&Path>,
    reason: ReasonArgs,
    options: GlobalOptions,
) -> Result<()> {
    args.teams.sort();
    args.teams.dedup();
    if args.cancel {
        return cancel(&args, reason, options).await;
    }
    options.check_can_confirm()?;
    let context = options.connect().await?;
    let run = context.begin_run(reason).await?;
    let (mut teams, mut errors) = find_teams(&context.deployment, &args).await?;
    ensure!(!teams.is_empty(), errors.join("; "));
    confirm(&args.project_args, &teams, export_path, &context)?;
    let export = export_path.map(ExportWriter::create).transpose()?;
    // What was removed is printed even if this fails.
    let result = remove_teams(
        &context.deployment,
        &run,
        &mut teams,
        args.wait_args,
        export,
    )
    .await;
    let (removed, not_removed) = report_outcomes(&teams, &context);
    errors.extend(not_removed);
    if !removed.is_empty() || context.options.json {
        let ids = removed.iter().filter_map(|team| team["team_id"].as_str());
        let ids = Vec::from_iter(ids).join("\n");
        print_removed(json!(removed), &ids, &run, export_path, &context.options)?;
    }
    result?;
    ensure!(errors.is_empty(), errors.join("; "));
    Ok(())
}

/// Says which teams will be removed, and asks the operator.
fn confirm(
    ProjectArgs { org, project }: &ProjectArgs,
    teams: &[Parent],
    export_path: Option<&Path>,
    context: &Context,
) -> Result<()> {
    let mut summaries = Vec::new();
    for Parent { record, .. } in teams {
        // Not parsed, because a malformed team can be removed too.
        let id = record.key.id();
        let name = record.text("team_name").unwrap_or_default();
        let created_at = record.text("created_at").unwrap_or_default();
        summaries.push(format!("{id} (\"{name}\", created at {created_at})"));
    }
    let text = format!(
        "{} of the project {project} of {org} will be removed: {}. Their members will be removed too. {}",
        pluralize(teams.len(), "team"),
        summaries.join(", "),
        undo_sentence(export_path)
    );
    // To confirm the removal of several teams, the operator types the id of their project.
    match teams {
        [team] => context.confirm(&text, &team.record.key.id()),
        _ => context.confirm(&text, project),
    }
}

/// Reports the teams that were removed. Returns them for output, and says why others were not
/// removed. Leaves out teams that the run did not come to.
fn report_outcomes(teams: &[Parent], context: &Context) -> (Vec<Value>, Vec<String>) {
    let (mut removed, mut errors) = (Vec::new(), Vec::new());
    for team in teams {
        let key = &team.record.key;
        match team.outcome {
            None => {}
            Some(DeletionOutcome::Deleted(members)) => {
                let members_text = pluralize(members, "member");
                context.report(&format!("{key} was removed with {members_text}"));
                let project = team.record.text("project");
                removed
                    .push(json!({ "project": project, "team_id": key.id(), "members": members }));
            }
            Some(DeletionOutcome::Changed) => errors.push(format!(
                "{key} has changed since it was read: run the command again"
            )),
            Some(DeletionOutcome::Cancelled(count)) => errors.push(format!(
                "the removal of {key} was cancelled, after {} had been removed",
                pluralize(count, "member")
            )),
        }
    }
    (removed, errors)
}

/// Reads the teams. Also returns an error for each that does not exist.
async fn find_teams(deployment: &Deployment, args: &Args) -> Result<(Vec<Parent>, Vec<String>)> {
    let ProjectArgs { org, project } = &args.project_args;
    let (mut teams, mut errors) = (Vec::new(), Vec::new());
    for id in &args.teams {
        match find_team(deployment, org, project, id).await? {
            Some(team) => teams.push(team),
            None => errors.push(format!("the team {id} does not exist in this project")),
        }
    }
    Ok((teams, errors))
}

/// Reads a team to remove. `None` if it does not exist.
pub async fn find_team(
    deployment: &Deployment,
    org: &str,
    project: &str,
    team: &str,
) -> Result<Option<Parent>> {
    let key = PrimaryKey::team(org, project, team);
    let record = read::find(deployment, &key).await?;
    Ok(record.map(|record| Parent::new(record, vec![Scope::members(org, project, team)])))
}

/// Removes teams and their members, and sets the outcome of each team. An edited team is removed
/// too. If this fails, a later run can continue.
pub async fn remove_teams(
    deployment: &Deployment,
    run: &Run,
    teams: &mut [Parent],
    wait: WaitArgs,
    export: Option<ExportWriter>,
) -> Result<()> {
    let mut command = "remove team".to_owned();
    if let Some(Parent { record, .. }) = teams.first()
        && let PrimaryKey::Team { org, project, .. } = &record.key
    {
        command += &format!(" --org {org} --project {project}");
    }
    for team in &*teams {
        command += &format!(" {}", team.record.key.id());
    }
    let deletion = MarkedDeletion {
        deployment,
        run,
        mark: &REMOVING,
        wait,
        export,
        cancel_command: deployment.command_line(&format!("{command} --cancel")),
    };
    deletion.execute(teams).await
}

async fn cancel(args: &Args, reason: ReasonArgs, options: GlobalOptions) -> Result<()> {
    let context = options.connect().await?;
    let run = context.begin_run(reason).await?;
    let (teams, mut errors) = find_teams(&context.deployment, args).await?;
    let (mut cancelled, mut ids) = (Vec::new(), Vec::new());
    for Parent { record, .. } in teams {
        let outcome = marked_deletion::cancel(&context.deployment, &run, &REMOVING, &record);
        match outcome.await?.describe(&record.key.to_string(), &REMOVING) {
            Ok(text) => {
                context.report(&text);
                let id = record.key.id();
                cancelled.push(json!({ "project": record.text("project"), "team_id": id }));
                ids.push(id);
            }
            Err(error) => errors.push(error.to_string()),
        }
    }
    if !ids.is_empty() || context.options.json {
        print_json_or_text(&json!(cancelled), &ids.join("\n"), &context.options)?;
    }
    ensure!(errors.is_empty(), errors.join("; "));
    Ok(())
}
