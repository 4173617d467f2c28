//! `POST /api/v1/project/{org_id}/{project_id}/{team_id}/addUsersToTheTeam`: adds users to a team.

use std::borrow::Cow;

use deserr::Deserr;

use crate::{
    auth::Caller,
    body::Violations,
    error::Result,
    operations::{Input, Success},
    records::{Table, Team, TeamMember},
    store::{Store, UpsertSpec},
    values::{Identifier, Keyed, UniqueList, UserId},
};

#[derive(Debug, Deserr)]
#[deserr(error = Violations, deny_unknown_fields)]
pub(crate) struct AddTeamUsersInput {
    #[deserr(rename = "usersAddingToTeam")]
    pub(crate) users: UniqueList<UserEntry>,
}

impl Input for AddTeamUsersInput {
    fn distinct_entry_count(&self) -> Option<usize> {
        Some(self.users.len())
    }
}

#[derive(Debug, PartialEq, Deserr)]
#[deserr(error = Violations, deny_unknown_fields)]
pub(crate) struct UserEntry {
    #[deserr(rename = "userid")]
    user_id: UserId,
}

impl Keyed for UserEntry {
    fn key(&self) -> &str {
        self.user_id.as_str()
    }
}

/// Adds a member. If the user is already a member, nothing changes.
const ADD_MEMBER: UpsertSpec = UpsertSpec {
    table: Table::TEAM_MEMBERS,
    expression: "SET org_id = :org_id, project_id = :project_id, team_id = :team_id, \
        created_at = if_not_exists(created_at, :created_at), \
        created_by = if_not_exists(created_by, :created_by), \
        request_id = if_not_exists(request_id, :request_id)",
    condition: None,
    name_placeholders: &[],
};

/// Adds all users of the input to a team, which must exist.
pub(crate) async fn add_team_users(
    store: &Store,
    caller: &Caller,
    project_id: &Identifier,
    team_id: &Identifier,
    input: AddTeamUsersInput,
) -> Result<Success> {
    let [org, project, team] = [&caller.org_id, project_id, team_id].map(Identifier::as_str);
    let teams_partition = Team::partition_key(org, project);
    let caller_id = caller.caller_id();
    store
        .require_team(&teams_partition, team_id, caller_id, caller.received_at)
        .await?;
    let members_partition = TeamMember::partition_key(org, project, team);
    let mut records = Vec::with_capacity(input.users.len());
    for user in input.users.iter() {
        records.push(TeamMember {
            partition_key: members_partition.as_str().into(),
            user_id: user.user_id.as_str().into(),
            org_id: org.into(),
            project_id: project.into(),
            team_id: team.into(),
            creation: Cow::Borrowed(caller.creation_attributes()),
        });
    }
    // No condition can fail, because there is none.
    store.upsert(&ADD_MEMBER, &records).await?;
    Ok(Success::Written)
}
