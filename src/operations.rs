//! The operations of the API: one module each, their names, the parameters of their paths, and their
//! results.

pub(crate) mod add_models;
pub(crate) mod add_team_users;
pub(crate) mod create_data_store;
pub(crate) mod create_logging_instance;
pub(crate) mod create_team;
pub(crate) mod set_bot_voice;

/// An operation of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each variant has a module that describes it")]
pub enum Operation {
    AddModels,
    CreateTeam,
    AddTeamUsers,
    SetBotVoice,
    CreateDataStore,
    CreateLoggingInstance,
}

impl Operation {
    /// Every operation, in an order in which each can succeed: `AddTeamUsers` needs the team of
    /// `CreateTeam`.
    pub const ALL: &[Self] = &[
        Self::AddModels,
        Self::CreateTeam,
        Self::AddTeamUsers,
        Self::SetBotVoice,
        Self::CreateDataStore,
        Self::CreateLoggingInstance,
    ];

    /// The name in API keys and logs. It is also the `operationId` in `openapi.yaml` and the name
    /// of the file in `events/`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AddModels => "add_models",
            Self::CreateTeam => "create_team",
            Self::AddTeamUsers => "add_team_users",
            Self::SetBotVoice => "set_bot_voice",
            Self::CreateDataStore => "create_data_store",
            Self::CreateLoggingInstance => "create_logging_instance",
        }
    }

    /// Whether callers without an API key may call it, because the contract shows it without an
    /// `Authorization` header. A deployment can require a key all the same.
    pub const fn allows_anonymous(self) -> bool {
        matches!(self, Self::AddModels | Self::CreateDataStore)
    }
}

/// The names of the parameters in paths.
pub(crate) mod parameter {
    pub(crate) const ORG_ID: &str = "org_id";
    pub(crate) const PROJECT_ID: &str = "project_id";
    pub(crate) const TEAM_ID: &str = "team_id";
    pub(crate) const BOT_ID: &str = "id";
    pub(crate) const MODEL_TYPE: &str = "modelType";
}

/// The result of an operation that succeeds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Success {
    Done,
    /// A record with the content of the request exists.
    Stored {
        /// The id that was derived from the name of the record, if it has such an id.
        id: Option<String>,
        /// Whether this request created it.
        is_new: bool,
    },
}
