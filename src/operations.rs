//! The six operations: plain functions that know neither HTTP nor attribute maps.

use crate::values::Identifier;

mod add_models;
mod add_team_users;
mod create_data_store;
mod create_logging_instance;
mod create_team;
mod set_bot_voice;

pub use add_models::{AddModels, add_models};
pub use add_team_users::{AddTeamUsers, add_team_users};
pub use create_data_store::{CreateDataStore, create_data_store};
pub use create_logging_instance::{CreateLoggingInstance, create_logging_instance};
pub use create_team::{CreateTeam, create_team};
pub use set_bot_voice::{SetBotVoice, set_bot_voice};

/// What a project is known by in tables of all organizations.
pub(crate) fn project_key(organization: &Identifier, project: &Identifier) -> String {
    format!("{}#{}", organization.as_str(), project.as_str())
}

/// The name of every operation, as keys, logs, events and the contract spell it.
pub const NAMES: [&str; 6] = [
    "add_models",
    "add_team_users",
    "create_team",
    "set_bot_voice",
    "create_data_store",
    "create_logging_instance",
];
