//! `remove team`. The protocol was checked with a model, and a simulation checks this code:
//!
//! 1. Mark the team that was confirmed with a random id. Functions that read the team from then on
//!    add no users to it, and do not create it again.
//! 2. Wait until no function uses a team that it cached before, and the last writes have ended.
//! 3. Delete the members, in transactions that check the mark.
//! 4. Delete the team, if it still has the mark.
//!
//! A run that is interrupted after the first step is continued by the next one. Every run waits,
//! because it cannot know how long ago the mark was written.

use std::time::SystemTime;

use anyhow::{Result, bail};
use serde_json::{Value, json};
use workspace_management::store::{Table, timestamp};

use crate::{
    confirmation::Confirmation,
    deployment::Deployment,
    output::{counted, escape, print_record},
    progress::Counter,
    query::{Query, Scope},
    records::{get, text_of, to_json, unchanged},
    session::{Operator, Session, random_id},
    wait::Wait,
    write::{Condition, delete_found},
};

/// The primary key of a team.
pub struct Key {
    /// `<organization>#<project>`.
    pub project: String,
    /// The id of the team.
    pub team: String,
}

/// Removes a team and its members.
///
/// # Errors
/// If there is no such team, it changes meanwhile, it is not confirmed, or DynamoDB cannot be
/// reached. Then the command can be run again.
pub(crate) async fn run(
    key: &Key,
    wait: Wait,
    confirmation: Confirmation,
    session: &Session,
) -> Result<()> {
    confirmation.check()?;
    let deployment = session.deployment().await?;
    let operator = Operator::of(deployment).await?;
    let confirm = |team: &Value| {
        let name = escape(text_of(team, "team_name"));
        let created_at = escape(text_of(team, "created_at"));
        let question = format!(
            "The team \"{name}\", created at {created_at}, and its members will be removed."
        );
        confirmation.ask(&question, &key.team)
    };
    let members = remove(deployment, &operator, key, wait, confirm).await?;
    let count = counted(members, "member");
    eprintln!("the team {} was removed, with {count}", key.team);
    let removed = json!({
        "project": key.project, "team_id": key.team, "members": members,
        "removed_at": timestamp(SystemTime::now()), "removed_by": operator.name,
        "removed_request_id": operator.run_id,
    });
    print_record(&removed, &key.team, session.json)
}

/// Removes a team, and returns how many members this run deleted.
///
/// # Errors
/// As of `run`.
pub async fn remove(
    deployment: &Deployment,
    operator: &Operator,
    key: &Key,
    wait: Wait,
    confirm: impl FnOnce(&Value) -> Result<()>,
) -> Result<usize> {
    let record_key = [key.project.as_str(), &key.team];
    let Some(team) = get(deployment, Table::TEAMS, &record_key).await? else {
        bail!("the team {} does not exist in this project", key.team);
    };
    confirm(&team)?;
    let id = mark(deployment, operator, key, &team).await?;
    let reason = "functions still use the team that they have cached, and their last writes end";
    wait.run(deployment, reason).await;
    let condition = Condition {
        table: Table::TEAMS,
        key: &record_key,
        expression: "removing_id = :id",
        values: &[("id", id)],
    };
    let members = delete_members(deployment, key, &condition).await?;
    // If the condition fails, another run has finished.
    condition.delete(deployment).await?;
    Ok(members)
}

/// Marks a team as it was read, and returns the id of the mark, which may be that of another run.
async fn mark(
    deployment: &Deployment,
    operator: &Operator,
    key: &Key,
    team: &Value,
) -> Result<String> {
    let (expression, seen) = unchanged(team, &["created_at", "request_id"]);
    let condition = Condition {
        table: Table::TEAMS,
        key: &[&key.project, &key.team],
        expression: &format!("attribute_exists(team_id) AND {expression}"),
        values: &seen,
    };
    let (now, id) = (timestamp(SystemTime::now()), random_id()?);
    let values = [("now", now), ("who", operator.name.clone()), ("random", id)];
    let expression = "SET removing_at = if_not_exists(removing_at, :now), \
        removing_by = if_not_exists(removing_by, :who), \
        removing_id = if_not_exists(removing_id, :random)";
    match condition.update(deployment, expression, &values).await? {
        Some(marked) => Ok(text_of(&to_json(marked), "removing_id").to_owned()),
        None => bail!(
            "the team {} has changed since it was read: run the command again",
            key.team
        ),
    }
}

/// Deletes the members until there are none, or until another run has removed the team.
async fn delete_members(
    deployment: &Deployment,
    key: &Key,
    condition: &Condition<'_>,
) -> Result<usize> {
    let (table, team) = (Table::TEAM_MEMBERS, format!("{}#{}", key.project, key.team));
    let mut counter = Counter::new("members deleted");
    loop {
        let query = Query::new(table, Scope::partition(table.primary_key[0], &team));
        match delete_found(deployment, condition, query, &mut counter).await? {
            Some(1..) => {}
            _ => return Ok(counter.finish()),
        }
    }
}
