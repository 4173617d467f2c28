//! Routes a request to its operation. This is the whole API on one screen.

use crate::{
    auth::{AnonymousOperations, authorize},
    body,
    error::{Error, Result},
    event::Request,
    log::RequestLog,
    operations::{
        Operation, Success,
        add_models::{AddModels, add_models},
        add_team_users::{AddTeamUsers, add_team_users},
        create_data_store::create_data_store,
        create_logging_instance::create_logging_instance,
        create_team::create_team,
        parameter::{BOT_ID, MODEL_TYPE, ORG_ID, PROJECT_ID, TEAM_ID},
        set_bot_voice::set_bot_voice,
    },
    store::Store,
    values::{Identifier, ModelType, PathSegment},
};

/// An operation, with the parameters of its path.
#[rustfmt::skip] // keeps each operation on one line
enum Route {
    AddModels { org: Identifier, model_type: ModelType },
    AddTeamUsers { org: Identifier, project: Identifier, team: Identifier },
    CreateDataStore { org: Identifier },
    CreateLoggingInstance { org: Identifier, project: Identifier },
    CreateTeam { org: Identifier, project: Identifier },
    SetBotVoice { bot: Identifier },
}

#[rustfmt::skip] // keeps each path on one line
fn find_route<'a>(path: &[&'a str], log: &mut RequestLog<'a>) -> Result<Route> {
    Ok(match *path {
        ["api", "v1", "org", org, "addModelsToOrg", model_type] => Route::AddModels {
            org: parameter(ORG_ID, org, log)?,
            model_type: parameter(MODEL_TYPE, model_type, log)?,
        },
        ["api", "v1", "org", org, "dataStores", "create"] => Route::CreateDataStore { org: parameter(ORG_ID, org, log)? },
        ["api", "v1", "project", org, project, team, "addUsersToTheTeam"] => Route::AddTeamUsers {
            org: parameter(ORG_ID, org, log)?,
            project: parameter(PROJECT_ID, project, log)?,
            team: parameter(TEAM_ID, team, log)?,
        },
        ["api", "v1", "project", org, project, "createNewTeamOnProject"] => Route::CreateTeam {
            org: parameter(ORG_ID, org, log)?,
            project: parameter(PROJECT_ID, project, log)?,
        },
        ["api", "v1", "project", org, project, "createLoggingInstance"] => Route::CreateLoggingInstance {
            org: parameter(ORG_ID, org, log)?,
            project: parameter(PROJECT_ID, project, log)?,
        },
        ["api", "v1", "bot", "playground", bot, "voice"] => Route::SetBotVoice { bot: parameter(BOT_ID, bot, log)? },
        _ => {
            log.set_path(path);
            return Err(Error::NoSuchPath);
        }
    })
}

/// Parses a segment as the path parameter `name`, and logs it if it is valid. `MAX` is the maximum
/// length of the result's type: an `Identifier` or a `ModelType`.
fn parameter<'a, const MAX: usize>(
    name: &'static str,
    segment: &'a str,
    log: &mut RequestLog<'a>,
) -> Result<PathSegment<MAX>> {
    let value = PathSegment::new(segment).ok_or(Error::MalformedPath(name, MAX))?;
    log.parameters.insert(name, segment);
    Ok(value)
}

/// Finds the operation for the path of a request, authorizes the caller and runs the operation.
pub(crate) async fn route<'a>(
    store: &Store,
    anonymous_operations: AnonymousOperations,
    request: &'a Request<'_>,
    log: &mut RequestLog<'a>,
) -> Result<Success> {
    let path: Vec<&str> = request.path.iter().map(AsRef::as_ref).collect();
    let route = find_route(&path, log)?;
    let (operation, org) = match &route {
        Route::AddModels { org, .. } => (Operation::AddModels, Some(org)),
        Route::AddTeamUsers { org, .. } => (Operation::AddTeamUsers, Some(org)),
        Route::CreateDataStore { org } => (Operation::CreateDataStore, Some(org)),
        Route::CreateLoggingInstance { org, .. } => (Operation::CreateLoggingInstance, Some(org)),
        Route::CreateTeam { org, .. } => (Operation::CreateTeam, Some(org)),
        Route::SetBotVoice { .. } => (Operation::SetBotVoice, None),
    };
    log.operation = Some(operation);
    if request.method != "POST" {
        return Err(Error::MethodNotAllowed);
    }
    let caller = &authorize(store, anonymous_operations, request, operation, org, log).await?;
    let body = &request.body;
    // `..` leaves out `org`: operations use the organization of the caller.
    match route {
        Route::AddModels { model_type, .. } => {
            let request: AddModels = body::parse(body)?;
            log.body_entries = Some(request.models.iter().len());
            add_models(store, caller, &model_type, request).await
        }
        Route::AddTeamUsers { project, team, .. } => {
            let request: AddTeamUsers = body::parse(body)?;
            log.body_entries = Some(request.users.iter().len());
            add_team_users(store, caller, &project, &team, request).await
        }
        Route::CreateDataStore { .. } => create_data_store(store, caller, body::parse(body)?).await,
        Route::CreateLoggingInstance { project, .. } => {
            create_logging_instance(store, caller, &project, body::parse(body)?).await
        }
        Route::CreateTeam { project, .. } => {
            create_team(store, caller, &project, body::parse(body)?).await
        }
        Route::SetBotVoice { bot } => set_bot_voice(store, caller, &bot, body::parse(body)?).await,
    }
}
