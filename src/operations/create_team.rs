//! `POST /api/v1/project/{org_id}/{project_id}/createNewTeamOnProject`: creates a team in a project.

use deserr::Deserr;
use serde::Serialize;

use crate::{
    body::Violations,
    caller::{Caller, Creation},
    error::Error,
    operations::project_key,
    store::{Record, Store, Table},
    values::{Description, Identifier, Name, SluggedName},
};

/// The team to create.
#[derive(Debug, Deserr)]
#[deserr(error = Violations)]
pub struct CreateTeam {
    #[deserr(rename = "teamName")]
    name: SluggedName,
    #[deserr(rename = "teamDescription", default)]
    description: Option<Description>,
}

#[derive(Serialize)]
struct Team<'a> {
    project: String,
    team_id: &'a str,
    team_name: &'a Name,
    team_description: Description,
    #[serde(flatten)]
    creation: Creation,
}

impl Record for Team<'_> {
    const TABLE: Table = Table::TEAMS;
}

/// Creates the team under the slug of its name.
pub async fn create_team(
    store: &Store,
    caller: &Caller,
    project: &Identifier,
    request: CreateTeam,
) -> Result<(), Error> {
    let team = Team {
        project: project_key(caller.organization(), project),
        team_id: request.name.slug(),
        team_name: request.name.name(),
        team_description: request.description.unwrap_or_default(),
        creation: caller.creation(),
    };
    store.create(&team).await
}
