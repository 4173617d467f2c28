//! Finds the operation of a request, authorizes the caller and runs the operation.

use crate::{
    auth::{AnonymousAccess, Caller, Identity, authorize},
    body,
    error::{Error, Result},
    event::Request,
    log::RequestLog,
    operations::{
        Input, Operation, Success,
        add_models::add_models,
        add_team_users::add_team_users,
        create_data_store::create_data_store,
        create_logging_instance::create_logging_instance,
        create_team::create_team,
        parameter::{BOT_ID, MODEL_TYPE, ORG_ID, PROJECT_ID, TEAM_ID},
        set_bot_voice::set_bot_voice,
    },
    store::Store,
    values::{Identifier, ModelType, PathParameter},
};

/// An [`Operation`] with its path parameters.
#[rustfmt::skip] // keeps each operation on one line
enum Route {
    AddModels { org_id: Identifier, model_type: ModelType },
    AddTeamUsers { org_id: Identifier, project_id: Identifier, team_id: Identifier },
    CreateDataStore { org_id: Identifier },
    CreateLoggingInstance { org_id: Identifier, project_id: Identifier },
    CreateTeam { org_id: Identifier, project_id: Identifier },
    SetBotVoice { bot_id: Identifier },
}

impl Route {
    fn operation(&self) -> Operation {
        match self {
            Self::AddModels { .. } => Operation::AddModels,
            Self::AddTeamUsers { .. } => Operation::AddTeamUsers,
            Self::CreateDataStore { .. } => Operation::CreateDataStore,
            Self::CreateLoggingInstance { .. } => Operation::CreateLoggingInstance,
            Self::CreateTeam { .. } => Operation::CreateTeam,
            Self::SetBotVoice { .. } => Operation::SetBotVoice,
        }
    }

    /// The id of the organization in the path, if the path has one.
    fn path_org_id(&self) -> Option<&Identifier> {
        match self {
            Self::AddModels { org_id, .. }
            | Self::AddTeamUsers { org_id, .. }
            | Self::CreateDataStore { org_id }
            | Self::CreateLoggingInstance { org_id, .. }
            | Self::CreateTeam { org_id, .. } => Some(org_id),
            Self::SetBotVoice { .. } => None,
        }
    }
}

/// Matches a path to its operation, and adds the valid parameters to the log. All paths of the API
/// are here.
#[rustfmt::skip] // keeps each path on one line
fn parse_route<'a>(segments: &[&'a str], log: &mut RequestLog<'a>) -> Result<Route> {
    Ok(match *segments {
        ["api", "v1", "org", org_id, "addModelsToOrg", model_type] => Route::AddModels {
            org_id: parse_parameter(ORG_ID, org_id, log)?,
            model_type: parse_parameter(MODEL_TYPE, model_type, log)?,
        },
        ["api", "v1", "org", org_id, "dataStores", "create"] => Route::CreateDataStore { org_id: parse_parameter(ORG_ID, org_id, log)? },
        ["api", "v1", "project", org_id, project_id, team_id, "addUsersToTheTeam"] => Route::AddTeamUsers {
            org_id: parse_parameter(ORG_ID, org_id, log)?,
            project_id: parse_parameter(PROJECT_ID, project_id, log)?,
            team_id: parse_parameter(TEAM_ID, team_id, log)?,
        },
        ["api", "v1", "project", org_id, project_id, "createNewTeamOnProject"] => Route::CreateTeam {
            org_id: parse_parameter(ORG_ID, org_id, log)?,
            project_id: parse_parameter(PROJECT_ID, project_id, log)?,
        },
        ["api", "v1", "project", org_id, project_id, "createLoggingInstance"] => Route::CreateLoggingInstance {
            org_id: parse_parameter(ORG_ID, org_id, log)?,
            project_id: parse_parameter(PROJECT_ID, project_id, log)?,
        },
        ["api", "v1", "bot", "playground", bot_id, "voice"] => Route::SetBotVoice { bot_id: parse_parameter(BOT_ID, bot_id, log)? },
        _ => {
            log.set_unknown_path(segments);
            return Err(Error::NoSuchPath);
        }
    })
}

/// Parses a path parameter and adds it to the log if it is valid. `MAX_LENGTH` is inferred from the
/// field of [`Route`], because the type of each field is an alias of `PathParameter`.
fn parse_parameter<'a, const MAX_LENGTH: usize>(
    parameter_name: &'static str,
    segment: &'a str,
    log: &mut RequestLog<'a>,
) -> Result<PathParameter<MAX_LENGTH>> {
    let value = PathParameter::parse(segment).ok_or(Error::MalformedPath {
        parameter_name,
        max_length: MAX_LENGTH,
    })?;
    log.parameters.insert(parameter_name, segment);
    Ok(value)
}

/// Runs the operation named by the path of a request, if the caller is authorized.
pub(crate) async fn dispatch<'a>(
    store: &Store,
    anonymous_access: AnonymousAccess,
    request: &'a Request<'_>,
    log: &mut RequestLog<'a>,
) -> Result<Success> {
    let segments: Vec<&str> = request.segments.iter().map(AsRef::as_ref).collect();
    let route = parse_route(&segments, log)?;
    let operation = route.operation();
    log.operation = Some(operation);
    if request.method != "POST" {
        return Err(Error::MethodNotAllowed);
    }
    let path_org_id = route.path_org_id();
    let caller = &authorize(
        store,
        anonymous_access,
        request,
        operation,
        path_org_id,
        log,
    )
    .await?;
    // Operations use the authorized `caller.org_id` instead of the `org_id` in the path.
    match route {
        Route::AddModels { model_type, .. } => {
            let input = input(store, caller, request, log)?;
            add_models(store, caller, &model_type, input).await
        }
        Route::AddTeamUsers {
            project_id,
            team_id,
            ..
        } => {
            let input = input(store, caller, request, log)?;
            add_team_users(store, caller, &project_id, &team_id, input).await
        }
        Route::CreateDataStore { .. } => {
            let input = input(store, caller, request, log)?;
            create_data_store(store, caller, input).await
        }
        Route::CreateLoggingInstance { project_id, .. } => {
            let input = input(store, caller, request, log)?;
            create_logging_instance(store, caller, &project_id, input).await
        }
        Route::CreateTeam { project_id, .. } => {
            let input = input(store, caller, request, log)?;
            create_team(store, caller, &project_id, input).await
        }
        Route::SetBotVoice { bot_id } => {
            let input = input(store, caller, request, log)?;
            set_bot_voice(store, caller, &bot_id, input).await
        }
    }
}

/// Parses the body, and admits the request unless its organization asks for too much.
fn input<I: Input>(
    store: &Store,
    caller: &Caller<'_>,
    request: &Request<'_>,
    log: &mut RequestLog<'_>,
) -> Result<I> {
    let input: I = body::parse(&request.body, request.is_strict)?;
    log.distinct_entry_count = input.distinct_entry_count();
    // DynamoDB bills one unit for each kB of a record, and two in a transaction.
    let kilobytes = request.body.len() / 1024;
    let records = match input.distinct_entry_count() {
        None | Some(1) => 1,
        Some(count) => 2 * count,
    };
    let requester = match caller.identity {
        Identity::KeyId(_) => Some(&caller.org_id),
        Identity::Anonymous => None,
    };
    let load = &store.load;
    load.admit(requester, records + kilobytes, caller.received_at)?;
    Ok(input)
}
