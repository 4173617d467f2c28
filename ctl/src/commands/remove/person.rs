//! `remove member --all-teams`: removes a person from all teams of an organization.
//!
//! The index of a user's teams is eventually consistent, so it is only a hint: each membership is read
//! consistently and deleted as it was read. There are at least two passes, until one finds none.
//!
//! A membership that exists when the command begins is removed, if the index lags by at most the time
//! between two passes. One that is added while the command runs can stay.

use std::{collections::BTreeSet, time::Duration, time::SystemTime};

use anyhow::{Result, bail};
use serde_json::json;
use tokio::time::sleep;
use unicode_normalization::UnicodeNormalization as _;
use workspace_management::store::{Table, timestamp};

use super::record::{Removal, Target, try_remove};
use crate::{
    commands::orgs,
    confirmation::Confirmation,
    deployment::Deployment,
    index::{partitions_of, teams_of},
    output::{escape, print_record},
    query::{Query, Scope},
    records::{text_of, to_json},
    session::{Operator, Session},
};

/// The maximum number of passes.
const MAX_PASSES: u32 = 5;

/// The time between two passes, in which the index catches up. It usually takes less than a second.
pub const PAUSE: Duration = Duration::from_secs(2);

/// Removes a person from all teams.
///
/// # Errors
/// If there is no such organization, it is not confirmed, the last pass still finds a membership, or
/// DynamoDB cannot be reached.
pub(crate) async fn run(
    org: &str,
    user: &str,
    confirmation: Confirmation,
    session: &Session,
) -> Result<()> {
    confirmation.check()?;
    let deployment = session.deployment().await?;
    let operator = Operator::of(deployment).await?;
    orgs::record::find(deployment, org).await?;
    let teams = teams_of(deployment, org, user).await?;
    let similar = similar_users(deployment, org, user).await?;
    if !similar.is_empty() {
        let similar: Vec<_> = similar.iter().map(|user| escape(user)).collect();
        eprintln!(
            "note: similar users are not removed: {}",
            similar.join(", ")
        );
    }
    let question = format!(
        "{} will be removed from {}.",
        escape(user),
        teams.join(", ")
    );
    if !teams.is_empty() {
        confirmation.ask(&question, user)?;
    }
    let removed = remove(deployment, org, user).await?;
    eprintln!(
        "{} is in no team of {org}: {} memberships were removed",
        escape(user),
        removed.len()
    );
    let result = json!({
        "org_id": org, "user_id": user, "teams": removed,
        "removed_at": timestamp(SystemTime::now()), "removed_by": operator.name,
        "removed_request_id": operator.run_id,
    });
    print_record(&result, &escape(user), session.json)
}

/// Removes the memberships, and returns their teams.
///
/// # Errors
/// If the last pass still finds a membership, or DynamoDB cannot be reached.
pub async fn remove(deployment: &Deployment, org: &str, user: &str) -> Result<BTreeSet<String>> {
    let mut removed = BTreeSet::new();
    for pass in 0..MAX_PASSES {
        if pass > 0 {
            sleep(PAUSE).await;
        }
        let mut found = 0;
        for team in teams_of(deployment, org, user).await? {
            let target = Target {
                table: Table::TEAM_MEMBERS,
                name: format!("the member {user} of {team}"),
                key: [team.clone(), user.to_owned()],
            };
            match try_remove(deployment, &target).await? {
                Removal::Done(_) => {
                    found += 1;
                    removed.insert(team);
                }
                Removal::Changed => found += 1,
                Removal::Missing => {}
            }
        }
        // The index may have lacked a membership in the first pass.
        if found == 0 && pass > 0 {
            return Ok(removed);
        }
    }
    bail!(
        "{} keeps being added to teams: run the command again when clients have stopped",
        escape(user)
    )
}

/// The users of an organization's teams whose ids differ only in case or Unicode form.
async fn similar_users(deployment: &Deployment, org: &str, user: &str) -> Result<BTreeSet<String>> {
    let table = Table::TEAM_MEMBERS;
    let partitions = partitions_of(deployment, table, org, None).await?;
    let mut query = Query::new(table, Scope::Partitions(table.primary_key[0], partitions));
    let mut similar = BTreeSet::new();
    while let Some(members) = query.next(deployment).await? {
        for member in members {
            let member = to_json(member);
            let other = text_of(&member, "user_id");
            if other != user && folded(other) == folded(user) {
                similar.insert(other.to_owned());
            }
        }
    }
    Ok(similar)
}

/// An id without the differences that people do not see.
fn folded(user: &str) -> String {
    user.nfkc().flat_map(char::to_lowercase).collect()
}
