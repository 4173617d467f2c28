//! Finds teams in the indexes `by_organization` and `by_user`. Indexes are eventually consistent:
//! an index can lack a record that was just created, and still have a record that was just deleted.

use std::collections::BTreeSet;

use anyhow::Result;
use workspace_management::store::Table;
use workspace_records::item::{primary_key, string_attribute};

use crate::{
    deployment::Deployment,
    query::{Query, Scope},
};

/// The sorted partition keys of an organization, or of one of its projects, in the table of teams or
/// in the table of their members.
pub(crate) async fn partition_keys_of(
    deployment: &Deployment,
    table: Table,
    org: &str,
    project: Option<&str>,
) -> Result<Vec<String>> {
    let query = Query::new(Table::TEAMS, Scope::partition(org)).index("by_organization", "org_id");
    let project = project.map(|project| format!("{org}#{project}"));
    let mut partitions = BTreeSet::new();
    for team in query.run(deployment).await?.records {
        let project_of_team = string_attribute(&team, "project");
        if let Some(project) = &project
            && project != project_of_team
        {
            continue;
        }
        partitions.insert(match table {
            Table::TEAM_MEMBERS => primary_key(Table::TEAMS, &team).join("#"),
            _ => project_of_team.to_owned(),
        });
    }
    Ok(partitions.into_iter().collect())
}

/// A query per table for all records of an organization. The teams are found in the index.
pub(crate) async fn queries_with_indexed_teams(
    deployment: &Deployment,
    org: &str,
) -> Result<Vec<Query>> {
    let mut queries = Query::consistent_queries_of(org);
    for query in &mut queries {
        let table = query.table;
        if [Table::TEAMS, Table::TEAM_MEMBERS].contains(&table) {
            let partitions = partition_keys_of(deployment, table, org, None).await?;
            *query = Query::new(table, Scope::Partitions(partitions));
        }
    }
    Ok(queries)
}

/// The sorted partition keys of a user's memberships in the teams of an organization.
pub(crate) async fn partition_keys_of_user(
    deployment: &Deployment,
    org: &str,
    user: &str,
) -> Result<Vec<String>> {
    // Different organizations can have users with the same id.
    let query = Query::new(Table::TEAM_MEMBERS, Scope::partition(user))
        .index("by_user", "user_id")
        .sort_key_prefix("team", format!("{org}#"));
    let mut teams = BTreeSet::new();
    for member in query.run(deployment).await?.records {
        teams.insert(string_attribute(&member, "team").to_owned());
    }
    Ok(teams.into_iter().collect())
}
