//! `remove team`: one or several teams of a project. The protocol was checked with a model, and a
//! simulation checks this code:
//!
//! 1. Mark each team that was confirmed with a random id. Functions that read the team from then on
//!    add no users to it, and do not create it again.
//! 2. Wait, once for all teams, until no function uses a team that it cached before, and the last writes
//!    have ended.
//! 3. Export all teams and their members, if there is a file.
//! 4. Delete the members of each team, in transactions that check the mark.
//! 5. Delete the team, if it still has the mark.
//!
//! A run that is interrupted after the first step is continued by the next one. Every run waits,
//! because it cannot know how long ago the mark was written.

use std::path::Path;

use anyhow::{Result, bail};
use serde_json::{Value, json};
use workspace_management::store::Table;
use workspace_records::item::text;

use super::single::print_removed;
use crate::{
    deployment::Deployment,
    export::Export,
    query::{Query, Scope, get},
    session::{Operator, Session},
    text::counted,
    wait::{LAST_WRITES, Wait},
    write::{Condition, delete_all},
};

const MARK: &str = "SET removing_id = if_not_exists(removing_id, :id), \
    removing_at = if_not_exists(removing_at, :at), removing_by = if_not_exists(removing_by, :by)";

/// A team, by the partition key of its project, `<organization>#<project>`, and its id.
#[derive(Debug, Clone, Copy)]
pub struct Team<'a> {
    /// The project.
    pub project: &'a str,
    /// The id.
    pub id: &'a str,
}

pub(super) async fn run(
    project: &str,
    ids: &[String],
    wait: Wait,
    export: Option<&Path>,
    session: &Session,
) -> Result<()> {
    session.check_confirmation()?;
    let export = export.map(Export::create).transpose()?;
    let (deployment, operator) = session.start().await?;
    let (mut found, mut failures) = (Vec::new(), Vec::new());
    for id in ids {
        let team = Team { project, id };
        match team.get(deployment).await? {
            Some(record) => found.push((team, record)),
            None => failures.push(format!("the team {id} does not exist in this project")),
        }
    }
    if found.is_empty() {
        bail!(failures.join("; "));
    }
    let names = found.iter().map(|(team, record)| {
        let [name, created_at] = ["team_name", "created_at"].map(|name| text(record, name));
        format!("{} (\"{name}\", created at {created_at})", team.id)
    });
    let names = Vec::from_iter(names).join(", ");
    let what =
        format!("{names} of {project} will be removed with their members, which cannot be undone.");
    let word = match &found[..] {
        [(team, _)] => team.id,
        _ => project,
    };
    session.confirm(&what, word)?;
    let removed = remove(deployment, &operator, &found, wait, export).await?;
    for ((Team { id, .. }, _), members) in found.iter().zip(removed) {
        let Some(members) = members else {
            let failure = "has changed since it was read: run the command again";
            failures.push(format!("the team {id} {failure}"));
            continue;
        };
        let count = counted(members, "member");
        session.say(&format!("the team {id} was removed, with {count}"));
        let removed = json!({ "project": project, "team_id": id, "members": members });
        print_removed(removed, id, &operator, session)?;
    }
    if !failures.is_empty() {
        bail!(failures.join("; "));
    }
    Ok(())
}

/// Removes teams that were found. Returns for each how many members this run deleted, or `None` if the
/// team has changed since it was read.
///
/// # Errors
/// If the export cannot be written, or DynamoDB cannot be reached. Then the command can be run again.
pub async fn remove(
    deployment: &Deployment,
    operator: &Operator,
    found: &[(Team<'_>, Value)],
    wait: Wait,
    export: Option<Export>,
) -> Result<Vec<Option<usize>>> {
    let mut marked = Vec::new();
    for (team, record) in found {
        let condition = Condition::new(Table::TEAMS, &[team.project, team.id])
            .and("attribute_exists(team_id)", &[])
            .and_unchanged(record, &["created_at", "request_id"]);
        let mark = condition.mark(deployment, operator, MARK, "removing_id");
        marked.push((*team, mark.await?));
    }
    if marked.iter().all(|(_, mark)| mark.is_none()) {
        return Ok(vec![None; marked.len()]);
    }
    wait.run(deployment, LAST_WRITES).await;
    if let Some(mut export) = export {
        for (team, mark) in &marked {
            if let Some((record, _)) = mark {
                export.write(Table::TEAMS, record.clone())?;
                export.write_all(deployment, vec![team.members()]).await?;
            }
        }
        export.keep()?;
    }
    let mut removed = Vec::new();
    for (team, mark) in marked {
        let Some((_, marked)) = mark else {
            removed.push(None);
            continue;
        };
        let members = || vec![team.members()];
        removed.push(Some(delete_all(deployment, &marked, members).await?));
    }
    Ok(removed)
}

impl Team<'_> {
    /// Reads the team.
    ///
    /// # Errors
    /// If DynamoDB cannot be reached.
    pub async fn get(self, deployment: &Deployment) -> Result<Option<Value>> {
        get(deployment, Table::TEAMS, &[self.project, self.id]).await
    }

    fn members(self) -> Query {
        let team = format!("{}#{}", self.project, self.id);
        Query::new(Table::TEAM_MEMBERS, Scope::partition("team", &team))
    }
}
