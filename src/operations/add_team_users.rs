//! `POST /api/v1/project/{org_id}/{project_id}/{team_id}/addUsersToTheTeam`: adds users to a team of a project.

use deserr::Deserr;
use serde::Serialize;

use crate::{
    body::Violations,
    caller::{Caller, Creation},
    error::Error,
    operations::project_key,
    store::{Record, Store, Table},
    values::{Entries, Entry, Identifier, UserId},
};

/// The users to add.
#[derive(Debug, Deserr)]
#[deserr(error = Violations)]
pub struct AddTeamUsers {
    #[deserr(rename = "usersAddingToTeam")]
    users: Entries<UserReference>,
}

#[derive(Debug, PartialEq, Deserr)]
#[deserr(error = Violations)]
struct UserReference {
    userid: UserId,
}

impl Entry for UserReference {
    fn key(&self) -> &str {
        self.userid.as_str()
    }
}

#[derive(Serialize)]
struct TeamMember<'a> {
    team: &'a str,
    user_id: &'a UserId,
    #[serde(flatten)]
    creation: &'a Creation,
}

impl Record for TeamMember<'_> {
    const TABLE: Table = Table::TEAM_MEMBERS;
}

/// Adds all of the users to a team that exists. A member has an item of its own, so that concurrent adds lose no one.
pub async fn add_team_users(
    store: &Store,
    caller: &Caller,
    project: &Identifier,
    team: &Identifier,
    request: AddTeamUsers,
) -> Result<(), Error> {
    let project = project_key(caller.organization(), project);
    if !store
        .exists(Table::TEAMS, &[&project, team.as_str()])
        .await?
    {
        return Err(Error::NoSuchTeam);
    }
    let team = format!("{project}#{}", team.as_str());
    let creation = caller.creation();
    let members: Vec<_> = request
        .users
        .iter()
        .map(|user| TeamMember {
            team: &team,
            user_id: &user.userid,
            creation: &creation,
        })
        .collect();
    store.add_all(&members).await
}
