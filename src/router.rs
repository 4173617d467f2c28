//! Routes a path to its operation. This is the whole API on one screen.

use crate::{
    auth::Call,
    error::{Error, Result},
    operation::{Operation, Success},
    operations::{
        add_models::{AddModels, add_models},
        add_team_users::{AddTeamUsers, add_team_users},
        create_data_store::create_data_store,
        create_logging_instance::create_logging_instance,
        create_team::create_team,
        set_bot_voice::set_bot_voice,
    },
};

/// Finds the operation for the path of a request, authorizes the caller and runs the operation.
#[rustfmt::skip] // keeps each step on one line
pub(crate) async fn route(call: &mut Call<'_>) -> Result<Success> {
    let store = call.store;
    // Moved out of `call`, because `authorize` borrows `call` mutably.
    let path = std::mem::take(&mut call.request.path);
    let path: Vec<&str> = path.iter().map(AsRef::as_ref).collect();
    match *path {
        ["api", "v1", "org", org, "addModelsToOrg", model_type] => {
            let org = call.path_parameter("org_id", org)?;
            let model_type = call.path_parameter("modelType", model_type)?;
            let caller = call.authorize(Operation::AddModels, Some(&org)).await?;
            let body: AddModels = call.body()?;
            call.entries = Some(body.models.iter().len());
            add_models(store, &caller, &model_type, body).await
        }
        ["api", "v1", "org", org, "dataStores", "create"] => {
            let org = call.path_parameter("org_id", org)?;
            let caller = call.authorize(Operation::CreateDataStore, Some(&org)).await?;
            create_data_store(store, &caller, call.body()?).await
        }
        ["api", "v1", "project", org, project, team, "addUsersToTheTeam"] => {
            let org = call.path_parameter("org_id", org)?;
            let project = call.path_parameter("project_id", project)?;
            let team = call.path_parameter("team_id", team)?;
            let caller = call.authorize(Operation::AddTeamUsers, Some(&org)).await?;
            let body: AddTeamUsers = call.body()?;
            call.entries = Some(body.users.iter().len());
            add_team_users(store, &caller, &project, &team, body).await
        }
        ["api", "v1", "project", org, project, "createNewTeamOnProject"] => {
            let org = call.path_parameter("org_id", org)?;
            let project = call.path_parameter("project_id", project)?;
            let caller = call.authorize(Operation::CreateTeam, Some(&org)).await?;
            create_team(store, &caller, &project, call.body()?).await
        }
        ["api", "v1", "project", org, project, "createLoggingInstance"] => {
            let org = call.path_parameter("org_id", org)?;
            let project = call.path_parameter("project_id", project)?;
            let caller = call.authorize(Operation::CreateLoggingInstance, Some(&org)).await?;
            create_logging_instance(store, &caller, &project, call.body()?).await
        }
        ["api", "v1", "bot", "playground", bot, "voice"] => {
            let bot = call.path_parameter("id", bot)?;
            let caller = call.authorize(Operation::SetBotVoice, None).await?;
            set_bot_voice(store, &caller, &bot, call.body()?).await
        }
        _ => Err(Error::NoSuchPath),
    }
}
