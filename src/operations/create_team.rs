//! `POST /api/v1/project/{org_id}/{project_id}/createNewTeamOnProject`: creates a team in a
//! project.

use deserr::Deserr;

use crate::{
    auth::Caller,
    body::Violations,
    error::{Error, Result},
    operations::{Input, Success},
    records::{Table, Team},
    store::Store,
    values::{Description, Identifier, NameWithId},
};

#[derive(Debug, Deserr)]
#[deserr(error = Violations, deny_unknown_fields)]
pub(crate) struct CreateTeamInput {
    #[deserr(rename = "teamName")]
    name: NameWithId,
    #[deserr(rename = "teamDescription", default)]
    description: Option<Description>,
}

impl Input for CreateTeamInput {}

/// Creates a team. Its id is derived from its name. Projects are not registered, so any project id
/// is valid.
pub(crate) async fn create_team(
    store: &Store,
    caller: &Caller,
    project_id: &Identifier,
    input: CreateTeamInput,
) -> Result<Success> {
    let (team_name, team_id) = input.name.into_name_and_id();
    let team = Team {
        partition_key: Team::partition_key(caller.org_id.as_str(), project_id.as_str()),
        org_id: caller.org_id.as_str().to_owned(),
        project_id: project_id.as_str().to_owned(),
        team_id,
        team_name,
        team_description: input.description.unwrap_or_default().into_string(),
        removing_id: None,
        creation: caller.creation_attributes().clone(),
    };
    let resource_kind = "team";
    let id = team.team_id.clone();
    let mut is_new = true;
    if let Some(existing) = store.insert_if_absent(Table::TEAMS, &team).await? {
        if existing.removing_id.is_some() {
            return Err(Error::TeamBeingRemoved { id });
        }
        if existing.team_name != team.team_name {
            return Err(Error::DifferentName {
                resource_kind,
                id,
                existing_name: caller.text_for_response(&existing.team_name),
            });
        }
        if existing.team_description != team.team_description {
            return Err(Error::DifferentDescription {
                resource_kind,
                id,
                existing_description: caller.text_for_response(&existing.team_description),
            });
        }
        is_new = caller.created_in_this_request(&existing.creation);
    }
    Ok(Success::CreatedOrFound {
        id: Some(id),
        is_new,
    })
}
