//! Finds teams in the indexes `by_organization` and `by_user`. Indexes are eventually consistent: they
//! can lack a record that was just created, and have one that was just deleted.

use std::collections::BTreeSet;

use anyhow::Result;
use serde_json::Value;
use workspace_management::store::Table;
use workspace_records::item::{primary_key, text};

use crate::{
    deployment::Deployment,
    query::{Query, Scope},
};

/// The partition keys of an organization's teams or members, sorted.
pub(crate) async fn partitions_of(
    deployment: &Deployment,
    table: Table,
    org: &str,
    project: Option<&str>,
) -> Result<Vec<String>> {
    let scope = Scope::partition("org_id", org);
    let query = Query::new(Table::TEAMS, scope).index("by_organization");
    let teams = query.run(deployment).await?.records;
    let is_in = |project: &str, team: &Value| team["project"] == format!("{org}#{project}");
    let teams = teams
        .iter()
        .filter(|team| project.is_none_or(|project| is_in(project, team)));
    let partitions = teams.map(|team| match table {
        Table::TEAM_MEMBERS => primary_key(Table::TEAMS, team).join("#"),
        _ => text(team, "project").to_owned(),
    });
    Ok(sorted(partitions))
}

/// Queries of all records of an organization, whose teams are found in the index.
pub(crate) async fn queries_of(deployment: &Deployment, org: &str) -> Result<Vec<Query>> {
    let mut queries = Query::organization(org);
    for query in &mut queries {
        let table = query.table;
        if [Table::TEAMS, Table::TEAM_MEMBERS].contains(&table) {
            let partitions = partitions_of(deployment, table, org, None).await?;
            *query = Query::new(table, Scope::Partitions(table.primary_key[0], partitions));
        }
    }
    Ok(queries)
}

/// The partition keys of the teams of an organization in which a user is a member, sorted.
pub(crate) async fn teams_of(
    deployment: &Deployment,
    org: &str,
    user: &str,
) -> Result<Vec<String>> {
    let scope = Scope::partition("user_id", user);
    // Users of other organizations with this id are other people.
    let query = Query::new(Table::TEAM_MEMBERS, scope)
        .index("by_user")
        .sort_key_prefix("team", format!("{org}#"));
    let members = query.run(deployment).await?.records;
    let teams = members.iter().map(|member| text(member, "team"));
    Ok(sorted(teams.map(str::to_owned)))
}

/// The distinct keys, sorted as [`Scope::Partitions`] needs them.
fn sorted(keys: impl Iterator<Item = String>) -> Vec<String> {
    let keys: BTreeSet<_> = keys.collect();
    keys.into_iter().collect()
}
