//! The whole API on one screen: a path to an operation, through `auth`.

use std::borrow::Cow;

use deserr::Deserr;

use crate::{
    auth::{Asked, Auth},
    body::{self, Violations},
    caller::Caller,
    error::Error,
    operations::{
        add_models, add_team_users, create_data_store, create_logging_instance, create_team,
        project_key, set_bot_voice,
    },
    store::{Store, Table},
    values::{Identifier, ModelType},
};

/// Carries out the operation that a request's path names.
#[rustfmt::skip] // a path is one line
pub(crate) async fn route(call: &mut Call<'_>) -> Result<(), Error> {
    use Access::{KeyHolders, Open};
    let store = call.store;
    let path = std::mem::take(&mut call.request.path);
    let path: Vec<&str> = path.iter().map(AsRef::as_ref).collect();
    match *path {
        ["api", "v1", "org", org, "addModelsToOrg", model_type] => {
            let org = Identifier::parse("org_id", org)?;
            let model_type = ModelType::parse("modelType", model_type)?;
            let caller = call.admit("add_models", Open, Some(org)).await?;
            add_models(store, &caller, &model_type, call.body()?).await
        }
        ["api", "v1", "org", org, "dataStores", "create"] => {
            let org = Identifier::parse("org_id", org)?;
            let caller = call.admit("create_data_store", Open, Some(org)).await?;
            create_data_store(store, &caller, call.body()?).await
        }
        ["api", "v1", "project", org, project, team, "addUsersToTheTeam"] => {
            let org = Identifier::parse("org_id", org)?;
            let project = Identifier::parse("project_id", project)?;
            let team = Identifier::parse("team_id", team)?;
            let known_by = [project_key(&org, &project), team.as_str().to_owned()];
            call.foreseen = Some((Table::TEAMS, known_by));
            let caller = call.admit("add_team_users", KeyHolders, Some(org)).await?;
            add_team_users(store, &caller, &project, &team, call.body()?).await
        }
        ["api", "v1", "project", org, project, "createNewTeamOnProject"] => {
            let org = Identifier::parse("org_id", org)?;
            let project = Identifier::parse("project_id", project)?;
            let caller = call.admit("create_team", KeyHolders, Some(org)).await?;
            create_team(store, &caller, &project, call.body()?).await
        }
        ["api", "v1", "project", org, project, "createLoggingInstance"] => {
            let org = Identifier::parse("org_id", org)?;
            let project = Identifier::parse("project_id", project)?;
            let caller = call.admit("create_logging_instance", KeyHolders, Some(org)).await?;
            create_logging_instance(store, &caller, &project, call.body()?).await
        }
        ["api", "v1", "bot", "playground", bot, "voice"] => {
            let bot = Identifier::parse("id", bot)?;
            let caller = call.admit("set_bot_voice", KeyHolders, None).await?;
            set_bot_voice(store, &caller, &bot, call.body()?).await
        }
        _ => Err(Error::NoSuchPath),
    }
}

/// Who may call an operation at all.
#[derive(PartialEq)]
enum Access {
    /// Anonymous callers too: the contract shows the operation without `Authorization`.
    Open,
    KeyHolders,
}

/// A request, as an event brought it.
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    /// The decoded segments of the path.
    pub(crate) path: Vec<Cow<'a, str>>,
    /// Every value of the `Authorization` header.
    pub(crate) authorization: Vec<&'a str>,
    pub(crate) body: Cow<'a, [u8]>,
}

/// One request on its way, and what becomes known of it, for its log line.
pub(crate) struct Call<'a> {
    pub(crate) auth: &'a Auth,
    pub(crate) store: &'a Store,
    pub(crate) request: Request<'a>,
    pub(crate) request_id: &'a str,
    /// What the operation will ask for, to be read together with the key.
    pub(crate) foreseen: Option<(Table, [String; 2])>,
    pub(crate) operation: &'a mut Option<&'static str>,
    /// Who was recognized, admitted or not.
    pub(crate) caller: &'a mut Option<Caller>,
}

impl Call<'_> {
    async fn admit(
        &mut self,
        operation: &'static str,
        access: Access,
        organization: Option<Identifier>,
    ) -> Result<Caller, Error> {
        *self.operation = Some(operation);
        if self.request.method != "POST" {
            return Err(Error::MethodNotAllowed);
        }
        let asked = Asked {
            operation,
            organization,
            foreseen: self.foreseen.take(),
            open: access == Access::Open,
            authorization: &self.request.authorization,
            request_id: self.request_id,
        };
        self.auth.admit(self.store, asked, self.caller).await
    }

    fn body<T: Deserr<Violations>>(&self) -> Result<T, Error> {
        body::read(&self.request.body)
    }
}
