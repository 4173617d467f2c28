//! `remove team`: removes teams of a project in these steps, which `ctl/tests/protocols` checks:
//!
//! 1. Mark each confirmed team: store a random id in its record. When the function has read the mark,
//!    it adds no users to the team, and does not create the team again.
//! 2. Wait, once for all teams, until every copy in the function's caches from before the marks has
//!    expired, and the last writes have ended.
//! 3. Export all teams and their members, if `--export` was given.
//! 4. Delete the members of each team, in transactions that check the mark.
//! 5. Delete each team, if it still has the mark.
//!
//! If a run is interrupted after the first step, the next run continues its work. Every run waits,
//! because it cannot know how long ago the mark was written.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use workspace_management::store::Table;
use workspace_records::item::string_attribute;

use super::{print_removed, undo_sentence};
use crate::{
    commands::target::Target,
    deployment::Deployment,
    export::Export,
    read::{Read, Scope},
    session::{Operator, Session},
    text::counted,
    wait::Wait,
    write::delete_all,
};

pub(super) async fn run(
    partition_key: &str,
    ids: &[String],
    wait: Wait,
    export: Option<Export>,
    session: &Session,
) -> Result<()> {
    session.check_can_confirm()?;
    let (deployment, operator) = session.deployment_and_operator().await?;
    let mut found = Vec::new();
    let mut names = Vec::new();
    let mut failures = Vec::new();
    for id in ids {
        let team = Target::team(partition_key, id);
        match team.read(deployment).await? {
            Some(record) => {
                let [name, created_at] =
                    ["team_name", "created_at"].map(|name| string_attribute(&record, name));
                names.push(format!("{id} (\"{name}\", created at {created_at})"));
                found.push((team, record));
            }
            None => failures.push(format!("the team {id} does not exist in this project")),
        }
    }
    ensure!(!found.is_empty(), failures.join("; "));
    let (names, undo) = (names.join(", "), undo_sentence(export.as_ref()));
    let what = format!("{names} of {partition_key} will be removed with their members. {undo}");
    let word = match &found[..] {
        [(team, _)] => team.id(),
        _ => partition_key,
    };
    session.confirm(&what, word)?;
    let member_counts = remove(deployment, &operator, &found, wait, export).await?;
    let mut printed = Ok(());
    for ((team, _), members) in found.iter().zip(member_counts) {
        let Some(members) = members else {
            failures.push(team.changed_message());
            continue;
        };
        let id = team.id();
        let count = counted(members, "member");
        session.say(&format!("{} was removed with {count}", team.display_name));
        let removed = json!({ "project": partition_key, "team_id": id, "members": members });
        printed = printed.and(print_removed(removed, id, &operator, session));
    }
    // Before `printed`: `crate::run` takes a closed pipe for success.
    ensure!(failures.is_empty(), failures.join("; "));
    printed
}

/// Removes teams that were read. Returns for each team how many members this run deleted, or `None`
/// if the team has been removed or created again since. An edit does not stop the removal.
///
/// # Errors
/// If the export cannot be written, or DynamoDB cannot be reached. A later run can continue.
pub async fn remove(
    deployment: &Deployment,
    operator: &Operator,
    found: &[(Target, Value)],
    wait: Wait,
    export: Option<Export>,
) -> Result<Vec<Option<usize>>> {
    let mut marks = Vec::new();
    for (team, record) in found {
        let guard = team
            .guard()
            .and_unchanged(record, &["created_at", "request_id"]);
        let mark = guard.mark(deployment, operator, "removing").await?;
        marks.push((team, mark));
    }
    if marks.iter().all(|(_, mark)| mark.is_none()) {
        return Ok(vec![None; marks.len()]);
    }
    wait.run(deployment).await;
    if let Some(mut export) = export {
        for (team, mark) in &marks {
            if let Some((record, _)) = mark {
                export.write(Table::TEAMS, record.clone())?;
                export.write_all(deployment, vec![members_of(team)]).await?;
            }
        }
        export.persist()?;
    }
    let mut removed = Vec::new();
    for (team, mark) in marks {
        removed.push(match mark {
            Some((_, marked)) => {
                Some(delete_all(deployment, &marked, || vec![members_of(team)]).await?)
            }
            None => None,
        });
    }
    Ok(removed)
}

/// The read of the members of a team.
fn members_of(team: &Target) -> Read {
    Read::new(Table::TEAM_MEMBERS, Scope::partition(&team.key.join("#")))
}
