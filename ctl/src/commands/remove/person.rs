//! `remove member --all-teams`: removes a person from all teams of an organization.
//!
//! The index of a user's teams is eventually consistent, so it is only a hint: each membership is read
//! consistently and deleted as it was read. There are at least two passes, until one finds none.
//!
//! A membership that exists when the command begins is removed, if the index lags by at most the time
//! between two passes. One that is added while the command runs can stay.

use std::{collections::BTreeSet, path::Path, time::Duration, time::SystemTime};

use anyhow::{Result, bail};
use serde_json::json;
use tokio::time::sleep;
use workspace_management::store::{Table, timestamp};

use super::record::{Target, try_remove};
use crate::{
    commands::orgs,
    confirmation::Confirmation,
    deployment::Deployment,
    export::AppendedExport,
    index::{partitions_of, teams_of},
    output::{counted, escape, print_record},
    session::{Operator, Session},
    similar,
    write::Deletion,
};

/// The maximum number of passes.
const MAX_PASSES: u32 = 5;

/// The time between two passes, in which the index catches up. It usually takes less than a second.
pub const PAUSE: Duration = Duration::from_secs(2);

pub(crate) async fn run(
    org: &str,
    user: &str,
    confirmation: Confirmation,
    export: Option<&Path>,
    session: &Session,
) -> Result<()> {
    confirmation.check()?;
    let mut export = export.map(AppendedExport::open).transpose()?;
    let deployment = session.deployment().await?;
    let operator = Operator::of(deployment).await?;
    orgs::record::find(deployment, org).await?;
    let teams = teams_of(deployment, org, user).await?;
    let question = format!("{user} will be removed from {}.", teams.join(", "));
    if !teams.is_empty() {
        confirmation.ask(&question, user)?;
    }
    let removed = remove(deployment, org, user, export.as_mut()).await?;
    let verb = if removed.len() == 1 { "was" } else { "were" };
    eprintln!(
        "{} is in no team of {org}: {} {verb} removed",
        escape(user),
        counted(removed.len(), "membership")
    );
    let result = json!({
        "org_id": org, "user_id": user, "teams": removed,
        "removed_at": timestamp(SystemTime::now()), "removed_by": operator.name,
        "removed_request_id": operator.run_id,
    });
    print_record(&result, &escape(user), session.json)?;
    let all_teams = partitions_of(deployment, Table::TEAM_MEMBERS, org, None).await?;
    similar::report(deployment, all_teams, user, !removed.is_empty()).await
}

/// Removes the memberships, and returns their teams.
///
/// # Errors
/// If the last pass still finds a membership, the export cannot be written, or DynamoDB cannot be
/// reached.
pub async fn remove(
    deployment: &Deployment,
    org: &str,
    user: &str,
    mut export: Option<&mut AppendedExport>,
) -> Result<BTreeSet<String>> {
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
            match try_remove(deployment, &target, export.as_deref_mut())
                .await?
                .0
            {
                Deletion::Done => {
                    found += 1;
                    removed.insert(team);
                }
                Deletion::Changed => found += 1,
                Deletion::Missing => {}
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
