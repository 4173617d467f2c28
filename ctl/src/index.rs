//! Finds teams in the indexes `by_organization` and `by_user`. Indexes are eventually consistent: they
//! can lack a record that was just created, and have one that was just deleted.

use std::collections::BTreeSet;

use anyhow::Result;
use serde_json::Value;
use workspace_management::store::Table;

use crate::{
    deployment::Deployment,
    query::{Query, Scope},
    records::{text_of, to_json},
};

/// The partition keys of an organization's teams or members, sorted.
pub(crate) async fn partitions_of(
    deployment: &Deployment,
    table: Table,
    org: &str,
    project: Option<&str>,
) -> Result<Vec<String>> {
    let scope = Scope::partition("org_id", org);
    let mut query = Query::new(Table::TEAMS, scope).index("by_organization");
    let mut partitions = BTreeSet::new();
    while let Some(teams) = query.next(deployment).await? {
        for team in teams {
            let team: Value = to_json(team);
            let key = text_of(&team, "project");
            if project.is_some_and(|project| key != format!("{org}#{project}")) {
                continue;
            }
            partitions.insert(match table {
                Table::TEAM_MEMBERS => format!("{key}#{}", text_of(&team, "team_id")),
                _ => key.to_owned(),
            });
        }
    }
    Ok(partitions.into_iter().collect())
}

/// The partition keys of the teams of an organization in which a user is a member, sorted.
pub(crate) async fn teams_of(
    deployment: &Deployment,
    org: &str,
    user: &str,
) -> Result<Vec<String>> {
    let scope = Scope::partition("user_id", user);
    // Users of other organizations with this id are other people.
    let mut query = Query::new(Table::TEAM_MEMBERS, scope)
        .index("by_user")
        .sort_key_prefix("team", format!("{org}#"));
    let mut teams = BTreeSet::new();
    while let Some(members) = query.next(deployment).await? {
        for member in members {
            let member: Value = to_json(member);
            teams.insert(text_of(&member, "team").to_owned());
        }
    }
    Ok(teams.into_iter().collect())
}
