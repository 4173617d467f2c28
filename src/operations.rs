//! Implements the operations: one file each, without HTTP and without DynamoDB's attribute values.

pub(crate) mod add_models;
pub(crate) mod add_team_users;
pub(crate) mod create_data_store;
pub(crate) mod create_logging_instance;
pub(crate) mod create_team;
pub(crate) mod set_bot_voice;

use crate::values::Identifier;

/// The partition key of a project's teams. Project ids are unique only within their organization.
fn project_key(organization: &Identifier, project: &Identifier) -> String {
    format!("{}#{}", organization.as_str(), project.as_str())
}
