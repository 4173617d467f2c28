//! `remove team`. The protocol was checked with a model, and a simulation checks this code:
//!
//! 1. Mark the team that was confirmed with a random id. Functions that read the team from then on
//!    add no users to it, and do not create it again.
//! 2. Wait until no function uses a team that it cached before, and the last writes have ended.
//! 3. Export the team and its members, if there is a file.
//! 4. Delete the members, in transactions that check the mark.
//! 5. Delete the team, if it still has the mark.
//!
//! A run that is interrupted after the first step is continued by the next one. Every run waits,
//! because it cannot know how long ago the mark was written.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
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
    team: Team<'_>,
    wait: Wait,
    export: Option<&Path>,
    session: &Session,
) -> Result<()> {
    session.check_confirmation()?;
    let export = export.map(Export::create).transpose()?;
    let (deployment, operator) = session.start().await?;
    let found = team.find(deployment).await?;
    let [name, created_at] = ["team_name", "created_at"].map(|name| text(&found, name));
    let question =
        format!("The team \"{name}\", created at {created_at}, and its members will be removed.");
    session.confirm(&question, team.id)?;
    let members = team
        .remove(deployment, &operator, &found, wait, export)
        .await?;
    let Team { project, id } = team;
    eprintln!(
        "the team {id} was removed, with {}",
        counted(members, "member")
    );
    let removed = json!({ "project": project, "team_id": id, "members": members });
    print_removed(removed, id, &operator, session)
}

impl Team<'_> {
    /// Reads the team.
    ///
    /// # Errors
    /// If there is no such team, or DynamoDB cannot be reached.
    pub async fn find(self, deployment: &Deployment) -> Result<Value> {
        let team = get(deployment, Table::TEAMS, &[self.project, self.id]).await?;
        team.with_context(|| format!("the team {} does not exist in this project", self.id))
    }

    /// Removes the team that was found, and returns how many members this run deleted.
    ///
    /// # Errors
    /// If the team has changed since it was read, the export cannot be written, or DynamoDB cannot be
    /// reached. Then the command can be run again.
    pub async fn remove(
        self,
        deployment: &Deployment,
        operator: &Operator,
        found: &Value,
        wait: Wait,
        mut export: Option<Export>,
    ) -> Result<usize> {
        let key = [self.project, self.id];
        let exists = "attribute_exists(team_id)";
        let condition = Condition::new(Table::TEAMS, &key)
            .and(exists, &[])
            .and_unchanged(found, &["created_at", "request_id"]);
        let marked = condition.mark(deployment, operator, MARK, "removing_id");
        let Some((record, marked)) = marked.await? else {
            let id = self.id;
            bail!("the team {id} has changed since it was read: run the command again");
        };
        wait.run(deployment, LAST_WRITES).await;
        if let Some(export) = &mut export {
            export.write(Table::TEAMS, record)?;
            export.write_all(deployment, vec![self.members()]).await?;
            export.keep()?;
        }
        delete_all(deployment, &marked, || vec![self.members()]).await
    }

    fn members(self) -> Query {
        let team = format!("{}#{}", self.project, self.id);
        Query::new(Table::TEAM_MEMBERS, Scope::partition("team", &team))
    }
}
