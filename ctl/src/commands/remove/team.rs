//! `remove team`. The protocol was checked with a model, and a simulation checks this code:
//!
//! 1. Mark the team that was confirmed with a random id. Functions that read the team from then on
//!    add no users to it, and do not create it again.
//! 2. Wait until no function uses a team that it cached before, and the last writes have ended.
//! 3. Export the team and its members, if there is a file.
//! 4. Delete the members, in transactions that check the mark. The export has them before.
//! 5. Delete the team, if it still has the mark.
//!
//! A run that is interrupted after the first step is continued by the next one. Every run waits,
//! because it cannot know how long ago the mark was written.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use workspace_management::store::Table;

use super::record::Target;
use crate::{
    confirmation::Confirmation,
    deployment::Deployment,
    export::AppendedExport,
    output::{counted, escape},
    query::{Query, Scope},
    records::{text_of, to_json},
    session::{Operator, Session},
    wait::Wait,
    write::{Condition, delete_all},
};

/// The team with this id in a project, which is `<organization>#<project>`.
pub fn target(project: &str, team: &str) -> Target {
    Target {
        table: Table::TEAMS,
        name: format!("the team {team}"),
        key: [project.to_owned(), team.to_owned()],
    }
}

pub(crate) async fn run(
    target: &Target,
    wait: Wait,
    confirmation: Confirmation,
    export: Option<&Path>,
    session: &Session,
) -> Result<()> {
    confirmation.check()?;
    let mut export = export.map(AppendedExport::open).transpose()?;
    let deployment = session.deployment().await?;
    let operator = Operator::of(deployment).await?;
    let [project, id] = &target.key;
    let confirm = |team: &Value| {
        let name = escape(text_of(team, "team_name"));
        let created_at = escape(text_of(team, "created_at"));
        let question = format!(
            "The team \"{name}\", created at {created_at}, and its members will be removed."
        );
        confirmation.ask(&question, id)
    };
    let removal = remove(
        deployment,
        &operator,
        target,
        wait,
        export.as_mut(),
        confirm,
    );
    let members = removal.await?;
    let in_export = target.in_export(export.as_ref());
    let count = counted(members, "member");
    let message = format!("{} was removed, with {count}{in_export}", target.name);
    let removed = json!({ "project": project, "team_id": id, "members": members });
    target.finish(removed, &message, &operator, session).await
}

/// Removes a team, and returns how many members this run deleted.
///
/// # Errors
/// If there is no such team, it changes meanwhile, it is not confirmed, the export cannot be written,
/// or DynamoDB cannot be reached. Then it can be called again.
pub async fn remove(
    deployment: &Deployment,
    operator: &Operator,
    target: &Target,
    wait: Wait,
    mut export: Option<&mut AppendedExport>,
    confirm: impl FnOnce(&Value) -> Result<()>,
) -> Result<usize> {
    let name = &target.name;
    let Some(team) = target.get(deployment).await? else {
        let in_export = target.in_export(export.as_deref());
        bail!("{name} does not exist in this project{in_export}");
    };
    confirm(&team)?;
    let unchanged = Condition::unchanged(Table::TEAMS, &team, &["created_at", "request_id"]);
    let marked = unchanged.mark(deployment, operator, &team, "removing");
    let team = marked
        .await?
        .with_context(|| format!("{name} has changed since it was read: run the command again"))?;
    let reason = "functions still use the team that they have cached, and their last writes end";
    wait.run(deployment, reason).await;
    let id = [("id", text_of(&team, "removing_id").to_owned())];
    let condition = Condition::new(Table::TEAMS, &target.key(), "removing_id = :id", &id);
    if let Some(export) = &mut export {
        export_team(deployment, target, team, export).await?;
    }
    let members = || vec![members_of(target)];
    let deletion = delete_all(deployment, &condition, members, export.as_deref_mut());
    let (members, is_last) = deletion.await?;
    // Another run has finished, and may have exported less.
    if !is_last && export.is_some() {
        let in_export = target.in_export(export.as_deref());
        bail!("another run has removed {name} too{in_export}");
    }
    Ok(members)
}

/// Exports a team without its marks, and its members.
async fn export_team(
    deployment: &Deployment,
    target: &Target,
    mut team: Value,
    export: &mut AppendedExport,
) -> Result<()> {
    if let Some(team) = team.as_object_mut() {
        team.retain(|name, _| !name.starts_with("removing_"));
    }
    export.append(Table::TEAMS, [team])?;
    let mut query = members_of(target);
    while let Some(members) = query.next(deployment).await? {
        export.append(Table::TEAM_MEMBERS, members.into_iter().map(to_json))?;
    }
    Ok(())
}

fn members_of(target: &Target) -> Query {
    let table = Table::TEAM_MEMBERS;
    Query::new(
        table,
        Scope::partition(table.primary_key[0], &target.key.join("#")),
    )
}
