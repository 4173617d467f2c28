//! The operations of the API (one module each), their names, their path parameters and their
//! results.

use deserr::Deserr;

use crate::body::Violations;

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
    /// Every operation, in the order in which `cargo serve`, `workspacectl doctor` and the tests
    /// call them. `CreateTeam` precedes `AddTeamUsers`, which needs the team.
    pub const ALL: &[Self] = &[
        Self::AddModels,
        Self::CreateTeam,
        Self::AddTeamUsers,
        Self::SetBotVoice,
        Self::CreateDataStore,
        Self::CreateLoggingInstance,
    ];

    /// The name of the operation in the records of API keys, in logs, in `openapi.yaml` (the
    /// `operationId`) and in the file names of `events/`.
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

    /// Whether the API key is optional in the contract. `AnonymousAccess` can be stricter.
    pub const fn is_key_optional(self) -> bool {
        matches!(self, Self::AddModels | Self::CreateDataStore)
    }
}

/// The valid body of a request.
pub(crate) trait Input: Deserr<Violations> {
    /// The number of distinct entries, if the body has a list.
    fn distinct_entry_count(&self) -> Option<usize> {
        None
    }
}

/// The names of the path parameters, as in `openapi.yaml`.
pub(crate) mod parameter {
    pub(crate) const ORG_ID: &str = "org_id";
    pub(crate) const PROJECT_ID: &str = "project_id";
    pub(crate) const TEAM_ID: &str = "team_id";
    pub(crate) const BOT_ID: &str = "id";
    pub(crate) const MODEL_TYPE: &str = "modelType";
}

/// The result of a successful operation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Success {
    /// The records are as requested. The response has no headers about them.
    Written,
    /// A create operation created its record, or found an existing one with the same content.
    CreatedOrFound {
        /// The id that is derived from the record's name. `None` if the record has no such id.
        id: Option<String>,
        /// Whether this request created the record.
        is_new: bool,
    },
}
