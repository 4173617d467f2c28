//! The tables and their names in a deployment.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

use super::Item;
use crate::values::Identifier;

/// A table that `template.yaml` declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Table {
    /// The logical id in `template.yaml`.
    pub logical_id: &'static str,
    /// The environment variable that holds the table's name.
    pub env_variable: &'static str,
    /// The kind of its records, in the plural, as in `workspacectl list`.
    pub record_kind: &'static str,
    /// The attributes of the primary key: the partition key, then the sort key if there is one.
    pub primary_key_attributes: &'static [&'static str],
    /// The names of the ids that the partition key joins with `#`. All but `key` are also options
    /// of `workspacectl`, such as `--org`.
    pub partition_key_parts: &'static [&'static str],
}

#[rustfmt::skip] // keeps each table short
#[allow(missing_docs, reason = "a table is named after its records")]
impl Table {
    pub const ORGANIZATIONS: Self = Self {
        logical_id: "OrganizationsTable", env_variable: "ORGANIZATIONS_TABLE", record_kind: "organizations",
        primary_key_attributes: &["org_id"], partition_key_parts: &["org"],
    };
    pub const API_KEYS: Self = Self {
        logical_id: "KeysTable", env_variable: "KEYS_TABLE", record_kind: "keys",
        primary_key_attributes: &["key_id"], partition_key_parts: &["key"],
    };
    pub const MODELS: Self = Self {
        logical_id: "ModelsTable", env_variable: "MODELS_TABLE", record_kind: "models",
        primary_key_attributes: &["org_id", "model"], partition_key_parts: &["org"],
    };
    pub const TEAMS: Self = Self {
        logical_id: "TeamsTable", env_variable: "TEAMS_TABLE", record_kind: "teams",
        primary_key_attributes: &["project", "team_id"], partition_key_parts: &["org", "project"],
    };
    pub const TEAM_MEMBERS: Self = Self {
        logical_id: "TeamMembersTable", env_variable: "TEAM_MEMBERS_TABLE", record_kind: "members",
        primary_key_attributes: &["team", "user_id"], partition_key_parts: &["org", "project", "team"],
    };
    pub const BOT_VOICES: Self = Self {
        logical_id: "BotVoicesTable", env_variable: "BOT_VOICES_TABLE", record_kind: "voices",
        primary_key_attributes: &["org_id", "bot_id"], partition_key_parts: &["org"],
    };
    pub const DATA_STORES: Self = Self {
        logical_id: "DataStoresTable", env_variable: "DATA_STORES_TABLE", record_kind: "data-stores",
        primary_key_attributes: &["org_id", "data_store_id"], partition_key_parts: &["org"],
    };
    pub const LOGGING_INSTANCES: Self = Self {
        logical_id: "LoggingInstancesTable", env_variable: "LOGGING_INSTANCES_TABLE", record_kind: "logging-instances",
        primary_key_attributes: &["org_id", "project_id"], partition_key_parts: &["org"],
    };

    /// Every table.
    pub const ALL: &[Self] = &[
        Self::ORGANIZATIONS, Self::API_KEYS, Self::MODELS, Self::TEAMS,
        Self::TEAM_MEMBERS, Self::BOT_VOICES, Self::DATA_STORES, Self::LOGGING_INSTANCES,
    ];
}

impl Table {
    /// Builds a primary key from the values of its attributes, in the order of
    /// `primary_key_attributes`.
    pub fn primary_key(self, values: &[&str]) -> Item {
        let mut primary_key = Item::with_capacity(2);
        for (name, value) in self.primary_key_attributes.iter().zip(values) {
            primary_key.insert((*name).to_owned(), AttributeValue::S((*value).to_owned()));
        }
        primary_key
    }
}

/// The partition key of a project's teams. It contains the organization, because project ids are
/// unique only within their organization.
pub(crate) fn teams_partition_key(org_id: &Identifier, project_id: &Identifier) -> String {
    format!("{}#{}", org_id.as_str(), project_id.as_str())
}

/// The names of the tables in a deployment.
#[derive(Debug, Clone)]
pub struct TableNames(HashMap<&'static str, String>);

impl TableNames {
    /// Takes the name of each table from `name_of`.
    ///
    /// # Errors
    /// The first error of `name_of`.
    pub fn new<E>(name_of: impl Fn(Table) -> Result<String, E>) -> Result<Self, E> {
        let mut names = HashMap::new();
        for table in Table::ALL {
            names.insert(table.logical_id, name_of(*table)?);
        }
        Ok(Self(names))
    }

    /// The name of a table in this deployment.
    pub fn get(&self, table: Table) -> &str {
        &self.0[table.logical_id]
    }
}
