//! Finds the operation of a request, authorizes the caller and runs the operation.

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
    values::{Identifier, ModelType, PathParameter},
};

/// An operation and its parsed path parameters.
#[rustfmt::skip] // keeps each operation on one line
enum Route {
    AddModels { org: Identifier, model_type: ModelType },
    AddTeamUsers { org: Identifier, project: Identifier, team: Identifier },
    CreateDataStore { org: Identifier },
    CreateLoggingInstance { org: Identifier, project: Identifier },
    CreateTeam { org: Identifier, project: Identifier },
    SetBotVoice { bot: Identifier },
}

/// Matches a path to its operation: the whole API on one screen.
#[rustfmt::skip] // keeps each path on one line
fn match_path<'a>(segments: &[&'a str], log: &mut RequestLog<'a>) -> Result<Route> {
    Ok(match *segments {
        ["api", "v1", "org", org, "addModelsToOrg", model_type] => Route::AddModels {
            org: parse_parameter(ORG_ID, org, log)?,
            model_type: parse_parameter(MODEL_TYPE, model_type, log)?,
        },
        ["api", "v1", "org", org, "dataStores", "create"] => Route::CreateDataStore { org: parse_parameter(ORG_ID, org, log)? },
        ["api", "v1", "project", org, project, team, "addUsersToTheTeam"] => Route::AddTeamUsers {
            org: parse_parameter(ORG_ID, org, log)?,
            project: parse_parameter(PROJECT_ID, project, log)?,
            team: parse_parameter(TEAM_ID, team, log)?,
        },
        ["api", "v1", "project", org, project, "createNewTeamOnProject"] => Route::CreateTeam {
            org: parse_parameter(ORG_ID, org, log)?,
            project: parse_parameter(PROJECT_ID, project, log)?,
        },
        ["api", "v1", "project", org, project, "createLoggingInstance"] => Route::CreateLoggingInstance {
            org: parse_parameter(ORG_ID, org, log)?,
            project: parse_parameter(PROJECT_ID, project, log)?,
        },
        ["api", "v1", "bot", "playground", bot, "voice"] => Route::SetBotVoice { bot: parse_parameter(BOT_ID, bot, log)? },
        _ => {
            log.set_unknown_path(segments);
            return Err(Error::NoSuchPath);
        }
    })
}

/// Parses a path parameter, and adds it to the log if it is valid. The type of the field that takes
/// the result, `Identifier` or `ModelType`, decides `MAX`, the maximum length.
fn parse_parameter<'a, const MAX: usize>(
    parameter: &'static str,
    segment: &'a str,
    log: &mut RequestLog<'a>,
) -> Result<PathParameter<MAX>> {
    let max_length = MAX;
    let value = PathParameter::parse(segment).ok_or(Error::MalformedPath {
        parameter,
        max_length,
    })?;
    log.parameters.insert(parameter, segment);
    Ok(value)
}

/// Runs the operation that the path of a request names, if the caller is authorized.
pub(crate) async fn dispatch<'a>(
    store: &Store,
    anonymous_operations: AnonymousOperations,
    request: &'a Request<'_>,
    log: &mut RequestLog<'a>,
) -> Result<Success> {
    let segments: Vec<&str> = request.segments.iter().map(AsRef::as_ref).collect();
    let route = match_path(&segments, log)?;
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
    // `..` skips `org`: operations use the organization of the caller, which is authorized.
    match route {
        Route::AddModels { model_type, .. } => {
            let input: AddModels = body::parse(body)?;
            log.body_entries = Some(input.models.len());
            add_models(store, caller, &model_type, input).await
        }
        Route::AddTeamUsers { project, team, .. } => {
            let input: AddTeamUsers = body::parse(body)?;
            log.body_entries = Some(input.users.len());
            add_team_users(store, caller, &project, &team, input).await
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
