//! Finds the operation of a request, authorizes the caller and runs the operation.

use crate::{
    auth::{AnonymousAccess, Caller, PathIds, authorize},
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
    values::PathParameter,
};

/// Runs the operation named by the path of a request, if the caller is authorized. All paths of the
/// API are here. Operations use the authorized `caller.org_id` instead of the `org_id` in the path.
#[rustfmt::skip] // keeps each path on one line
pub(crate) async fn dispatch<'a>(
    store: &Store,
    anonymous_access: AnonymousAccess,
    request: &'a Request<'_>,
    log: &mut RequestLog<'a>,
) -> Result<Success> {
    let segments: Vec<&str> = request.segments.iter().map(AsRef::as_ref).collect();
    let mut gate = Gate { store, anonymous_access, request, log };
    match *segments {
        ["api", "v1", "org", org_id, "addModelsToOrg", model_type] => {
            let org_id = gate.parse(ORG_ID, org_id)?;
            let model_type = gate.parse(MODEL_TYPE, model_type)?;
            let (caller, input) = gate.admit(Operation::AddModels, Some((&org_id, None))).await?;
            add_models(store, &caller, &model_type, input).await
        }
        ["api", "v1", "org", org_id, "dataStores", "create"] => {
            let org_id = gate.parse(ORG_ID, org_id)?;
            let (caller, input) = gate.admit(Operation::CreateDataStore, Some((&org_id, None))).await?;
            create_data_store(store, &caller, input).await
        }
        ["api", "v1", "project", org_id, project_id, team_id, "addUsersToTheTeam"] => {
            let org_id = gate.parse(ORG_ID, org_id)?;
            let project_id = gate.parse(PROJECT_ID, project_id)?;
            let team_id = gate.parse(TEAM_ID, team_id)?;
            let (caller, input) = gate.admit(Operation::AddTeamUsers, Some((&org_id, Some(&project_id)))).await?;
            add_team_users(store, &caller, &project_id, &team_id, input).await
        }
        ["api", "v1", "project", org_id, project_id, "createNewTeamOnProject"] => {
            let org_id = gate.parse(ORG_ID, org_id)?;
            let project_id = gate.parse(PROJECT_ID, project_id)?;
            let (caller, input) = gate.admit(Operation::CreateTeam, Some((&org_id, Some(&project_id)))).await?;
            create_team(store, &caller, &project_id, input).await
        }
        ["api", "v1", "project", org_id, project_id, "createLoggingInstance"] => {
            let org_id = gate.parse(ORG_ID, org_id)?;
            let project_id = gate.parse(PROJECT_ID, project_id)?;
            let (caller, input) = gate.admit(Operation::CreateLoggingInstance, Some((&org_id, Some(&project_id)))).await?;
            create_logging_instance(store, &caller, &project_id, input).await
        }
        ["api", "v1", "bot", "playground", bot_id, "voice"] => {
            let bot_id = gate.parse(BOT_ID, bot_id)?;
            let (caller, input) = gate.admit(Operation::SetBotVoice, None).await?;
            set_bot_voice(store, &caller, &bot_id, input).await
        }
        _ => {
            gate.log.set_unknown_path(&segments);
            Err(Error::NoSuchPath)
        }
    }
}

/// What stands between a request and its operation.
struct Gate<'g, 'a, 'e> {
    store: &'g Store,
    anonymous_access: AnonymousAccess,
    request: &'a Request<'e>,
    log: &'g mut RequestLog<'a>,
}

impl<'a> Gate<'_, 'a, '_> {
    /// Parses a path parameter and adds it to the log if it is valid.
    fn parse<const MAX_LENGTH: usize>(
        &mut self,
        parameter_name: &'static str,
        segment: &'a str,
    ) -> Result<PathParameter<MAX_LENGTH>> {
        let value = PathParameter::parse(segment).ok_or(Error::MalformedPath {
            parameter_name,
            max_length: MAX_LENGTH,
        })?;
        self.log.parameters.insert(parameter_name, segment);
        Ok(value)
    }

    /// Authorizes the caller, parses the body, and admits the request unless its organization asks
    /// for too much.
    async fn admit<I: Input>(
        &mut self,
        operation: Operation,
        path_ids: PathIds<'_>,
    ) -> Result<(Caller, I)> {
        let request = self.request;
        self.log.operation = Some(operation);
        if request.method != "POST" {
            return Err(Error::MethodNotAllowed);
        }
        let caller = authorize(
            self.store,
            self.anonymous_access,
            request,
            operation,
            path_ids,
            self.log,
        )
        .await?;
        let input: I = body::parse(&request.body, request.is_strict)?;
        let entry_count = input.distinct_entry_count();
        self.log.distinct_entry_count = entry_count;
        let records = entry_count.unwrap_or(1);
        // A transaction costs twice as much.
        let units = if records > 1 { 2 * records } else { records };
        // DynamoDB bills one unit for each kB of a record.
        let units = units + request.body.len() / 1024;
        let load = &self.store.load;
        load.admit(caller.requester(), units, caller.received_at)?;
        Ok((caller, input))
    }
}
