//! Calls the service with the client that oas3-gen generates. Usage: rust-client URL KEY

#[allow(clippy::all)]
mod generated;

use anyhow::{Result, bail};
use generated::{
    AddModelsRequest, AddModelsRequestParams, AddModelsRequestParamsPath, AddTeamUsersRequest,
    AddTeamUsersRequestParams, AddTeamUsersRequestParamsPath, ApiResponse,
    ConflictProblemOrGatewayMessageOrProblemOrServerFailureOrValidationProblem as Failure,
    CreateDataStoreRequest, CreateDataStoreRequestParams, CreateDataStoreRequestParamsHeader,
    CreateDataStoreRequestParamsPath, CreateLoggingInstanceRequest,
    CreateLoggingInstanceRequestParams, CreateLoggingInstanceRequestParamsPath, CreateTeamRequest,
    CreateTeamRequestParams, CreateTeamRequestParamsHeader, CreateTeamRequestParamsPath,
    GatewayMessageOrProblemOrServerFailureOrValidationProblem as FailureWithoutConflict, Model,
    SetBotVoiceRequest, SetBotVoiceRequestParams, SetBotVoiceRequestParamsPath, TeamUser,
    WorkspaceManagementClient,
};

const PREFER: &str = "return=headers-only";

fn create_team(project: &str, description: &str) -> CreateTeamRequestParams {
    CreateTeamRequestParams {
        path: CreateTeamRequestParamsPath {
            org_id: "acme".to_owned(),
            project_id: project.to_owned(),
        },
        header: CreateTeamRequestParamsHeader {
            prefer: Some(PREFER.to_owned()),
        },
        body: CreateTeamRequest {
            team_name: "Rust Team".to_owned(),
            team_description: Some(description.to_owned()),
        },
    }
}

fn add_users(users: &[&str]) -> AddTeamUsersRequestParams {
    let users = users.iter().map(|userid| TeamUser {
        userid: (*userid).to_owned(),
    });
    AddTeamUsersRequestParams {
        path: AddTeamUsersRequestParamsPath {
            org_id: "acme".to_owned(),
            project_id: "rust".to_owned(),
            team_id: "rust-team".to_owned(),
        },
        body: AddTeamUsersRequest {
            users_adding_to_team: users.collect(),
        },
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let anonymous = WorkspaceManagementClient::with_base_url(&arguments[1])?;
    let client = anonymous.clone().with_key(&arguments[2]);
    let (org_id, project_id) = ("acme".to_owned(), "rust".to_owned());

    let models = AddModelsRequestParams {
        path: AddModelsRequestParamsPath {
            org_id: org_id.clone(),
            model_type: project_id.clone(),
        },
        body: AddModelsRequest {
            a_imodels_selected_to_add_to_org: vec![Model {
                id: 1,
                modelid: "gpt-4o".to_owned(),
            }],
        },
    };
    let ApiResponse::NoContent(_) = anonymous.add_models(models).await? else {
        bail!("add_models failed");
    };

    let response = client
        .create_team(create_team("rust", "Reads papers"))
        .await?;
    let ApiResponse::NoContent(created) = response else {
        bail!("{response:?}");
    };
    assert_eq!(created.headers.x_resource_id.as_deref(), Some("rust-team"));

    let ApiResponse::NoContent(_) = client.add_team_users(add_users(&["ada"])).await? else {
        bail!("add_team_users failed");
    };

    let voice = SetBotVoiceRequestParams {
        path: SetBotVoiceRequestParamsPath {
            id: project_id.clone(),
        },
        body: SetBotVoiceRequest {
            r#type: "alloy".to_owned(),
            enabled: true,
        },
    };
    let ApiResponse::NoContent(_) = client.set_bot_voice(voice).await? else {
        bail!("set_bot_voice failed");
    };

    let data_store = CreateDataStoreRequestParams {
        path: CreateDataStoreRequestParamsPath {
            org_id: org_id.clone(),
        },
        header: CreateDataStoreRequestParamsHeader {
            prefer: Some(PREFER.to_owned()),
        },
        body: CreateDataStoreRequest {
            data_store_name: "Rust Papers".to_owned(),
            ..Default::default()
        },
    };
    let response = anonymous.create_data_store(data_store).await?;
    let ApiResponse::NoContent(created) = response else {
        bail!("{response:?}");
    };
    assert_eq!(
        created.headers.x_resource_id.as_deref(),
        Some("rust-papers")
    );

    let logging_instance = CreateLoggingInstanceRequestParams {
        path: CreateLoggingInstanceRequestParamsPath { org_id, project_id },
        body: CreateLoggingInstanceRequest {
            project_name: "Rust".to_owned(),
        },
    };
    let ApiResponse::NoContent(_) = client.create_logging_instance(logging_instance).await? else {
        bail!("create_logging_instance failed");
    };

    failures(&client, &anonymous).await
}

async fn failures(
    client: &WorkspaceManagementClient,
    anonymous: &WorkspaceManagementClient,
) -> Result<()> {
    let response = client
        .create_team(create_team("rust", "Writes papers"))
        .await?;
    let ApiResponse::Conflict(conflict) = response else {
        bail!("{response:?}");
    };
    let Failure::ConflictProblem(taken) = conflict.body else {
        bail!("{conflict:?}");
    };
    assert_eq!(taken.reason, "other_description");
    assert_eq!(taken.resource_id.as_deref(), Some("rust-team"));

    let response = anonymous.create_team(create_team("rust", "")).await?;
    let ApiResponse::Unauthorized(unauthorized) = response else {
        bail!("{response:?}");
    };
    let Failure::Problem(rejected) = unauthorized.body else {
        bail!("{unauthorized:?}");
    };
    assert_eq!(rejected.code, "unauthenticated");

    // The client itself rejects a space here, but not an ideographic one.
    let response = client
        .add_team_users(add_users(&["ada", "\u{3000}grace"]))
        .await?;
    let ApiResponse::UnprocessableEntity(unprocessable) = response else {
        bail!("{response:?}");
    };
    let FailureWithoutConflict::ValidationProblem(invalid) = unprocessable.body else {
        bail!("{unprocessable:?}");
    };
    assert_eq!(invalid.errors[0].pointer, "#/usersAddingToTeam/1/userid");
    assert_eq!(invalid.errors[0].rule, "pattern");

    let response = client.create_team(create_team("gateway-503", "")).await?;
    let ApiResponse::ServiceUnavailable(unavailable) = response else {
        bail!("{response:?}");
    };
    let Failure::ServerFailure(failure) = unavailable.body else {
        bail!("{unavailable:?}");
    };
    assert_eq!(failure.message.as_deref(), Some("Service Unavailable"));

    let response = client.create_team(create_team("new-reason", "")).await?;
    let ApiResponse::Conflict(conflict) = response else {
        bail!("{response:?}");
    };
    let Failure::ConflictProblem(new_reason) = conflict.body else {
        bail!("{conflict:?}");
    };
    assert_eq!(new_reason.reason, "other_planet");
    Ok(())
}
