//! `POST /api/v1/project/{org_id}/{project_id}/createNewTeamOnProject`: creates a team in a
//! project.

use deserr::Deserr;
use serde::{Deserialize, Serialize};

use crate::{
    api_key::null_as_empty,
    auth::{Audit, Caller},
    body::Violations,
    error::{Error, Result},
    operations::Success,
    store::{Store, Table, project_key},
    values::{Description, Identifier, NameWithId, escape},
};

#[derive(Debug, Deserr)]
#[deserr(error = Violations)]
pub(crate) struct CreateTeam {
    #[deserr(rename = "teamName")]
    name: NameWithId,
    #[deserr(rename = "teamDescription", default)]
    description: Option<Description>,
}

// The defaults allow for stored records that lack an attribute.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Team {
    /// `<organization>#<project>`.
    project: String,
    org_id: String,
    project_id: String,
    /// Derived from the name.
    team_id: String,
    team_name: String,
    team_description: String,
    /// The id of a removal that is in progress.
    #[serde(skip_serializing, deserialize_with = "null_as_empty")]
    removing_id: Option<String>,
    #[serde(flatten)]
    audit: Audit,
}

/// Creates a team. Its id is derived from its name. Projects are not registered, so any id is
/// valid.
pub(crate) async fn create_team(
    store: &Store,
    caller: &Caller<'_>,
    project: &Identifier,
    request: CreateTeam,
) -> Result<Success> {
    let (team_id, team_name) = request.name.into_id_and_name();
    let team = Team {
        project: project_key(&caller.organization, project),
        org_id: caller.organization.as_str().to_owned(),
        project_id: project.as_str().to_owned(),
        team_id,
        team_name,
        team_description: request.description.unwrap_or_default().into_string(),
        removing_id: None,
        audit: caller.audit().clone(),
    };
    let (kind, id) = ("team", team.team_id.clone());
    match store.insert(Table::TEAMS, &team).await? {
        Some(existing) if existing.removing_id.is_some() => Err(Error::BeingRemoved { id }),
        Some(existing) if existing.team_name != team.team_name => Err(Error::OtherName {
            kind,
            id,
            existing_name: Some(escape(&existing.team_name)),
        }),
        Some(existing) if existing.team_description != team.team_description => {
            Err(Error::OtherDescription { kind, id })
        }
        existing => Ok(Success::Stored {
            id: Some(id),
            is_new: existing.is_none_or(|existing| caller.created(&existing.audit)),
        }),
    }
}
