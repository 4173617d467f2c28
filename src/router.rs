//! The whole API on one screen: a path to an operation, through `auth`.

use deserr::Deserr;
use lambda_http::{Body, Request, http::Method};

use crate::{
    auth::{Asked, Auth},
    body::{self, Violations},
    caller::Caller,
    error::Error,
    operations::{
        add_models, add_team_users, create_data_store, create_logging_instance, create_team,
        set_bot_voice,
    },
    store::Store,
    values::{Identifier, ModelType},
};

/// Carries out the operation at a path, given by its decoded segments.
pub(crate) async fn route(call: &mut Call<'_>, path: &[&str]) -> Result<(), Error> {
    use Access::{KeyHolders, Open};
    let store = call.store;
    match *path {
        ["api", "v1", "org", org, "addModelsToOrg", model_type] => {
            let caller = call.admit("add_models", Open, Some(org)).await?;
            let model_type = ModelType::parse("modelType", model_type)?;
            add_models(store, &caller, &model_type, call.body()?).await
        }
        ["api", "v1", "org", org, "dataStores", "create"] => {
            let caller = call.admit("create_data_store", Open, Some(org)).await?;
            create_data_store(store, &caller, call.body()?).await
        }
        [
            "api",
            "v1",
            "project",
            org,
            project,
            team,
            "addUsersToTheTeam",
        ] => {
            let caller = call.admit("add_team_users", KeyHolders, Some(org)).await?;
            let project = Identifier::parse("project_id", project)?;
            let team = Identifier::parse("team_id", team)?;
            add_team_users(store, &caller, &project, &team, call.body()?).await
        }
        [
            "api",
            "v1",
            "project",
            org,
            project,
            "createNewTeamOnProject",
        ] => {
            let caller = call.admit("create_team", KeyHolders, Some(org)).await?;
            let project = Identifier::parse("project_id", project)?;
            create_team(store, &caller, &project, call.body()?).await
        }
        [
            "api",
            "v1",
            "project",
            org,
            project,
            "createLoggingInstance",
        ] => {
            let caller = call
                .admit("create_logging_instance", KeyHolders, Some(org))
                .await?;
            let project = Identifier::parse("project_id", project)?;
            create_logging_instance(store, &caller, &project, call.body()?).await
        }
        ["api", "v1", "bot", "playground", bot, "voice"] => {
            let caller = call.admit("set_bot_voice", KeyHolders, None).await?;
            let bot = Identifier::parse("id", bot)?;
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

/// One request on its way, and what becomes known of it, for its log line.
pub(crate) struct Call<'a> {
    pub(crate) auth: &'a Auth,
    pub(crate) store: &'a Store,
    pub(crate) request: &'a Request,
    pub(crate) request_id: &'a str,
    pub(crate) operation: &'a mut Option<&'static str>,
    pub(crate) caller: &'a mut Option<Caller>,
}

impl Call<'_> {
    async fn admit(
        &mut self,
        operation: &'static str,
        access: Access,
        org: Option<&str>,
    ) -> Result<Caller, Error> {
        *self.operation = Some(operation);
        if self.request.method() != Method::POST {
            return Err(Error::MethodNotAllowed);
        }
        let asked = Asked {
            operation,
            organization: org
                .map(|org| Identifier::parse("org_id", org))
                .transpose()?,
            open: access == Access::Open,
            headers: self.request.headers(),
            request_id: self.request_id,
        };
        let caller = self.auth.admit(self.store, asked).await?;
        Ok(self.caller.insert(caller).clone())
    }

    fn body<T: Deserr<Violations>>(&self) -> Result<T, Error> {
        body::read(match self.request.body() {
            Body::Text(text) => text.as_bytes(),
            Body::Binary(bytes) => bytes,
            _ => &[],
        })
    }
}
