//! `remove team`: removes teams of a project in these steps, which `tools/workspacectl/tests/protocols` checks:
//!
//! 1. Mark each confirmed team: store a random id in its record. Once the function has read the
//!    mark, it adds no users to the team and does not create the team again.
//! 2. Wait once for all teams, until everything that the function cached before the marks has
//!    expired, and the function's last writes have ended.
//! 3. Export the marked teams and their members, if `--export` was given.
//! 4. Delete the members of each team, in transactions that check the mark.
//! 5. Delete each team, if it still has the mark.
//!
//! If a run is interrupted after the first step, the next run continues its work. Every run waits,
//! because it cannot know how long ago the mark was written.

use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use workspace_management::store::Table;
use workspace_records::item::string_attribute;

use super::{print_removed, undo_sentence};
use crate::{
    deployment::Deployment,
    export::ExportWriter,
    read::Reader,
    session::{Run, Session},
    target::{ProjectArgs, Target},
    text::pluralize,
    wait::WaitArgs,
    write::{TEAM_MARK, delete_with_children},
};

pub(super) async fn execute(
    project_args: &ProjectArgs,
    ids: &[String],
    wait_args: WaitArgs,
    export_path: Option<&Path>,
    session: &Session,
) -> Result<()> {
    session.check_can_confirm()?;
    let (deployment, run) = session.deployment_and_run().await?;
    let teams_partition = project_args.teams_partition();
    let mut teams = Vec::new();
    let mut team_summaries = Vec::new();
    let mut errors = Vec::new();
    for id in ids {
        let team = Target::team(&teams_partition, id);
        match team.find(deployment).await? {
            Some(record) => {
                let name = string_attribute(&record, "team_name");
                let created_at = string_attribute(&record, "created_at");
                team_summaries.push(format!("{id} (\"{name}\", created at {created_at})"));
                teams.push((team, record));
            }
            None => errors.push(format!("the team {id} does not exist in this project")),
        }
    }
    ensure!(!teams.is_empty(), errors.join("; "));
    let ProjectArgs { org, project } = project_args;
    let text = format!(
        "{} of the project {project} of {org} will be removed: {}. Their members will be removed too. {}",
        pluralize(teams.len(), "team"),
        team_summaries.join(", "),
        undo_sentence(export_path)
    );
    // To confirm the removal of several teams, the operator types the id of their project.
    let answer = match &teams[..] {
        [(team, _)] => team.id_in_partition(),
        _ => project,
    };
    session.confirm(&text, answer)?;
    let export = export_path.map(ExportWriter::create).transpose()?;
    let mut member_counts = Vec::new();
    // What was removed is printed even if this fails.
    let result = remove_teams(
        deployment,
        &run,
        &teams,
        wait_args,
        export,
        &mut member_counts,
    );
    let result = result.await;
    let (mut removed, mut removed_ids) = (Vec::new(), Vec::new());
    for ((team, _), member_count) in teams.iter().zip(member_counts) {
        let Some(member_count) = member_count else {
            errors.push(team.conflict_message());
            continue;
        };
        let id = team.id_in_partition();
        let members_text = pluralize(member_count, "member");
        session.report(&format!(
            "{} was removed with {members_text}",
            team.display_name
        ));
        removed.push(json!({ "project": teams_partition, "team_id": id, "members": member_count }));
        removed_ids.push(id);
    }
    if !removed.is_empty() || session.global_args.json {
        let ids = removed_ids.join("\n");
        print_removed(json!(removed), &ids, &run, export_path, session)?;
    }
    result?;
    ensure!(errors.is_empty(), errors.join("; "));
    Ok(())
}

/// Removes `teams`, each of which is paired with its record as the operator saw it. Adds to
/// `member_counts`, for each team, how many members this run deleted, or `None` if the team has been
/// removed or created again. An edited team is removed too. If this fails, a later run can continue.
pub async fn remove_teams(
    deployment: &Deployment,
    run: &Run,
    teams: &[(Target, Value)],
    wait_args: WaitArgs,
    export: Option<ExportWriter>,
    member_counts: &mut Vec<Option<usize>>,
) -> Result<()> {
    let mut marked_teams = Vec::new();
    for (team, record) in teams {
        let team_if_same = team
            .if_exists()
            .and_unchanged(record, &["created_at", "request_id"]);
        let marked_team = team_if_same.mark(deployment, run, TEAM_MARK).await?;
        marked_teams.push((team, marked_team));
    }
    if marked_teams
        .iter()
        .all(|(_, marked_team)| marked_team.is_none())
    {
        member_counts.resize(teams.len(), None);
        return Ok(());
    }
    wait_args.wait(deployment).await;
    if let Some(mut export) = export {
        for (team, marked_team) in &marked_teams {
            if let Some(marked_team) = marked_team {
                export.write(Table::TEAMS, marked_team.record.clone())?;
                let readers = vec![member_reader(team)];
                export.write_from(deployment, readers).await?;
            }
        }
        export.persist()?;
    }
    for (team, marked_team) in marked_teams {
        let mut member_count = None;
        if let Some(marked_team) = &marked_team {
            let make_readers = || vec![member_reader(team)];
            let count =
                delete_with_children(deployment, &marked_team.record_if_marked, make_readers)
                    .await?;
            member_count = Some(count);
        }
        member_counts.push(member_count);
    }
    Ok(())
}

fn member_reader(team: &Target) -> Reader {
    let partition = team.primary_key.join("#");
    Reader::partition(Table::TEAM_MEMBERS, &partition)
}
