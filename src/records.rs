//! The tables, and one struct for each kind of record. Records can have further attributes, which
//! the function ignores.
//!
//! # Other programs
//!
//! Programs other than the function and `workspacectl` can write to the tables. In an attribute
//! that restricts access (`disabled_at`, `erasing_id`, `revoked_at`, `expires_at`, `operations`,
//! `projects`, `removing_id`), NULL counts as the strictest value, and a missing attribute restricts
//! nothing. Other missing attributes are read as empty, except in [`ApiKeyRecord`], where some are
//! required.

#![allow(missing_docs, reason = "docs/records.md describes each attribute")]

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

mod access;

use access::null_as_strictest;
pub use access::{ApiKeyRecord, ApiKeyState, Organization, OrganizationState};

/// A table that `template.yaml` declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Table {
    /// The logical id in `template.yaml`.
    pub logical_id: &'static str,
    /// The environment variable that holds the table's name.
    pub env_variable: &'static str,
    /// The attributes of the primary key: the partition key, then the sort key if there is one.
    pub primary_key_attributes: &'static [&'static str],
}

#[rustfmt::skip] // keeps each table short
impl Table {
    pub const ORGANIZATIONS: Self = Self {
        logical_id: "OrganizationsTable", env_variable: "ORGANIZATIONS_TABLE",
        primary_key_attributes: &["org_id"],
    };
    pub const API_KEYS: Self = Self {
        logical_id: "KeysTable", env_variable: "KEYS_TABLE",
        primary_key_attributes: &["key_id"],
    };
    pub const MODELS: Self = Self {
        logical_id: "ModelsTable", env_variable: "MODELS_TABLE",
        primary_key_attributes: &["org_id", "model"],
    };
    pub const TEAMS: Self = Self {
        logical_id: "TeamsTable", env_variable: "TEAMS_TABLE",
        primary_key_attributes: &["project", "team_id"],
    };
    pub const TEAM_MEMBERS: Self = Self {
        logical_id: "TeamMembersTable", env_variable: "TEAM_MEMBERS_TABLE",
        primary_key_attributes: &["team", "user_id"],
    };
    pub const BOT_VOICES: Self = Self {
        logical_id: "BotVoicesTable", env_variable: "BOT_VOICES_TABLE",
        primary_key_attributes: &["org_id", "bot_id"],
    };
    pub const DATA_STORES: Self = Self {
        logical_id: "DataStoresTable", env_variable: "DATA_STORES_TABLE",
        primary_key_attributes: &["org_id", "data_store_id"],
    };
    pub const LOGGING_INSTANCES: Self = Self {
        logical_id: "LoggingInstancesTable", env_variable: "LOGGING_INSTANCES_TABLE",
        primary_key_attributes: &["org_id", "project_id"],
    };

    /// Every table.
    pub const ALL: &[Self] = &[
        Self::ORGANIZATIONS, Self::API_KEYS, Self::MODELS, Self::TEAMS,
        Self::TEAM_MEMBERS, Self::BOT_VOICES, Self::DATA_STORES, Self::LOGGING_INSTANCES,
    ];
}

/// When, by whom and in which request a record was created.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CreationAttributes {
    /// RFC 3339, in UTC, with milliseconds.
    pub created_at: String,
    /// The id of the API key, or `anonymous`.
    pub created_by: String,
    pub request_id: String,
}

/// A chat model that an organization uses.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Model<'a> {
    pub org_id: Cow<'a, str>,
    #[serde(rename = "model")]
    pub sort_key: String,
    pub model_type: Cow<'a, str>,
    /// The `modelid` in the contract, such as `gpt-4o`.
    pub model_id: Cow<'a, str>,
    /// The number that the client chose.
    #[serde(rename = "id")]
    pub number: i64,
    #[serde(flatten)]
    pub creation: Cow<'a, CreationAttributes>,
}

impl Model<'_> {
    /// `<model_type>#<model_id>`.
    pub fn sort_key(model_type: &str, model_id: &str) -> String {
        format!("{model_type}#{model_id}")
    }
}

/// A team of a project.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Team {
    #[serde(rename = "project")]
    pub partition_key: String,
    pub org_id: String,
    pub project_id: String,
    pub team_id: String,
    pub team_name: String,
    pub team_description: String,
    /// The id of the removal, while `workspacectl` removes the team.
    #[serde(deserialize_with = "null_as_strictest")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removing_id: Option<String>,
    #[serde(flatten)]
    pub creation: CreationAttributes,
}

impl Team {
    /// `<organization>#<project>`, because project ids are unique only within their organization.
    pub fn partition_key(org_id: &str, project_id: &str) -> String {
        format!("{org_id}#{project_id}")
    }
}

/// A member of a team. Each has a separate record, so that concurrent requests do not conflict.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TeamMember<'a> {
    #[serde(rename = "team")]
    pub partition_key: Cow<'a, str>,
    pub user_id: Cow<'a, str>,
    pub org_id: Cow<'a, str>,
    pub project_id: Cow<'a, str>,
    pub team_id: Cow<'a, str>,
    #[serde(flatten)]
    pub creation: Cow<'a, CreationAttributes>,
}

impl TeamMember<'_> {
    /// `<organization>#<project>#<team>`.
    pub fn partition_key(org_id: &str, project_id: &str, team_id: &str) -> String {
        format!("{org_id}#{project_id}#{team_id}")
    }
}

/// The voice of a bot.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BotVoice<'a> {
    pub org_id: Cow<'a, str>,
    pub bot_id: Cow<'a, str>,
    #[serde(rename = "type")]
    pub voice_type: Cow<'a, str>,
    pub enabled: bool,
    pub updated_at: Cow<'a, str>,
    pub updated_by: Cow<'a, str>,
    pub updated_request_id: Cow<'a, str>,
    #[serde(flatten)]
    pub creation: Cow<'a, CreationAttributes>,
}

/// A data store of an organization.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DataStore {
    pub org_id: String,
    pub data_store_id: String,
    pub data_store_name: String,
    pub data_store_description: String,
    #[serde(flatten)]
    pub creation: CreationAttributes,
}

/// The logging instance of a project, which has at most one.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LoggingInstance {
    pub org_id: String,
    pub project_id: String,
    pub project_name: String,
    #[serde(flatten)]
    pub creation: CreationAttributes,
}
