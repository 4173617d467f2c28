//! The kinds of records, as the tools name them, and their primary keys.

use std::fmt;

use workspace_management::{
    records::{Model, Table, Team, TeamMember},
    store::Item,
};

/// The table of the history, which the function neither reads nor writes.
pub const HISTORY: Table = Table {
    logical_id: "HistoryTable",
    env_variable: "HISTORY_TABLE",
    primary_key_attributes: &["org_id", "entry_id"],
};

/// Every table: those of the function and the history.
pub const ALL_TABLES: [Table; Table::ALL.len() + 1] = {
    let mut tables = [HISTORY; Table::ALL.len() + 1];
    let mut index = 0;
    while index < Table::ALL.len() {
        tables[index] = Table::ALL[index];
        index += 1;
    }
    tables
};

/// A kind of record.
#[derive(Debug)]
pub struct Kind {
    /// The table of its records.
    pub table: Table,
    /// The name of its definition in `records.schema.json`.
    pub definition: &'static str,
    /// Its name in the plural, as in `workspacectl list`.
    pub plural: &'static str,
    /// The names of the ids that the partition key joins with `#`. All but `key` are also options
    /// of `workspacectl`, such as `--org`.
    pub partition_key_parts: &'static [&'static str],
}

const fn kind(
    table: Table,
    definition: &'static str,
    plural: &'static str,
    partition_key_parts: &'static [&'static str],
) -> Kind {
    Kind {
        table,
        definition,
        plural,
        partition_key_parts,
    }
}

static KINDS: [Kind; ALL_TABLES.len()] = [
    kind(
        Table::ORGANIZATIONS,
        "organization",
        "organizations",
        &["org"],
    ),
    kind(Table::API_KEYS, "api_key", "keys", &["key"]),
    kind(Table::MODELS, "model", "models", &["org"]),
    kind(Table::TEAMS, "team", "teams", &["org", "project"]),
    kind(
        Table::TEAM_MEMBERS,
        "team_member",
        "members",
        &["org", "project", "team"],
    ),
    kind(Table::BOT_VOICES, "bot_voice", "voices", &["org"]),
    kind(Table::DATA_STORES, "data_store", "data-stores", &["org"]),
    kind(
        Table::LOGGING_INSTANCES,
        "logging_instance",
        "logging-instances",
        &["org"],
    ),
    kind(HISTORY, "history_entry", "history", &["org"]),
];

impl Kind {
    /// The kind of a table's records.
    ///
    /// # Panics
    /// If there is no such kind.
    pub fn of(table: Table) -> &'static Self {
        let kind = KINDS.iter().find(|kind| kind.table == table);
        kind.unwrap_or_else(|| panic!("add {} to KINDS", table.logical_id))
    }

    /// Its name in the singular, as in the history.
    pub fn singular(&self) -> &'static str {
        self.plural.strip_suffix('s').unwrap_or(self.plural)
    }

    /// The kind with this name in the plural.
    pub fn named(plural: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.plural == plural)
    }
}

/// The tables in which operations store records: all except for organizations and API keys.
pub fn api_tables() -> impl Iterator<Item = Table> {
    Table::ALL
        .iter()
        .copied()
        .filter(|table| ![Table::ORGANIZATIONS, Table::API_KEYS].contains(table))
}

/// The primary key of a record. In their order, organizations are first, and teams are before
/// their members. `Display` names the record, such as `the team docs`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
#[rustfmt::skip] // one line per kind
pub enum PrimaryKey {
    Organization { org: String },
    ApiKey { id: String },
    Model { org: String, model_type: String, model_id: String },
    Team { org: String, project: String, team: String },
    TeamMember { org: String, project: String, team: String, user: String },
    BotVoice { org: String, bot: String },
    DataStore { org: String, data_store: String },
    LoggingInstance { org: String, project: String },
    HistoryEntry { org: String, id: String },
    /// A key from a different program, which does not join as many ids as the keys of its table.
    Malformed { table: Table, values: Vec<String> },
}

impl PrimaryKey {
    /// The primary key of a team.
    pub fn team(org: &str, project: &str, team: &str) -> Self {
        let [org, project, team] = [org, project, team].map(str::to_owned);
        Self::Team { org, project, team }
    }

    /// The primary key in the attributes of an item. `None` if one of them is missing or is not a
    /// string, which DynamoDB does not store.
    pub fn of(table: Table, item: &Item) -> Option<Self> {
        let mut values = Vec::new();
        for name in table.primary_key_attributes {
            values.push(item.get(*name)?.as_s().ok()?.clone());
        }
        Some(Self::parse(table, &values).unwrap_or(Self::Malformed { table, values }))
    }

    fn parse(table: Table, values: &[String]) -> Option<Self> {
        let mut ids = Vec::new();
        for (index, value) in values.iter().enumerate() {
            match (index, table) {
                (0, Table::TEAMS | Table::TEAM_MEMBERS) => ids.extend(value.split('#')),
                // The id of a model can contain `#`.
                (1, Table::MODELS) => ids.extend(value.splitn(2, '#')),
                _ => ids.push(value.as_str()),
            }
        }
        let ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
        Some(match table {
            Table::ORGANIZATIONS => {
                let [org] = ids.try_into().ok()?;
                Self::Organization { org }
            }
            Table::API_KEYS => {
                let [id] = ids.try_into().ok()?;
                Self::ApiKey { id }
            }
            Table::MODELS => {
                let [org, model_type, model_id] = ids.try_into().ok()?;
                Self::Model {
                    org,
                    model_type,
                    model_id,
                }
            }
            Table::TEAMS => {
                let [org, project, team] = ids.try_into().ok()?;
                Self::Team { org, project, team }
            }
            Table::TEAM_MEMBERS => {
                let [org, project, team, user] = ids.try_into().ok()?;
                Self::TeamMember {
                    org,
                    project,
                    team,
                    user,
                }
            }
            Table::BOT_VOICES => {
                let [org, bot] = ids.try_into().ok()?;
                Self::BotVoice { org, bot }
            }
            Table::DATA_STORES => {
                let [org, data_store] = ids.try_into().ok()?;
                Self::DataStore { org, data_store }
            }
            Table::LOGGING_INSTANCES => {
                let [org, project] = ids.try_into().ok()?;
                Self::LoggingInstance { org, project }
            }
            HISTORY => {
                let [org, id] = ids.try_into().ok()?;
                Self::HistoryEntry { org, id }
            }
            _ => return None,
        })
    }

    /// The table that has the record.
    pub fn table(&self) -> Table {
        match self {
            Self::Organization { .. } => Table::ORGANIZATIONS,
            Self::ApiKey { .. } => Table::API_KEYS,
            Self::Model { .. } => Table::MODELS,
            Self::Team { .. } => Table::TEAMS,
            Self::TeamMember { .. } => Table::TEAM_MEMBERS,
            Self::BotVoice { .. } => Table::BOT_VOICES,
            Self::DataStore { .. } => Table::DATA_STORES,
            Self::LoggingInstance { .. } => Table::LOGGING_INSTANCES,
            Self::HistoryEntry { .. } => HISTORY,
            Self::Malformed { table, .. } => *table,
        }
    }

    /// The values of the key's attributes: the partition key, then the sort key if there is one.
    pub fn values(&self) -> Vec<String> {
        match self {
            Self::Organization { org: id } | Self::ApiKey { id } => vec![id.clone()],
            Self::Model {
                org,
                model_type,
                model_id,
            } => {
                vec![org.clone(), Model::sort_key(model_type, model_id)]
            }
            Self::Team { org, project, team } => {
                vec![Team::partition_key(org, project), team.clone()]
            }
            Self::TeamMember {
                org,
                project,
                team,
                user,
            } => {
                vec![TeamMember::partition_key(org, project, team), user.clone()]
            }
            Self::BotVoice { org, bot: id }
            | Self::DataStore {
                org,
                data_store: id,
            }
            | Self::LoggingInstance { org, project: id }
            | Self::HistoryEntry { org, id } => vec![org.clone(), id.clone()],
            Self::Malformed { values, .. } => values.clone(),
        }
    }

    /// The value of the partition key.
    pub fn partition(&self) -> String {
        self.values().swap_remove(0)
    }

    /// The value of the last attribute, which identifies the record in its partition.
    pub fn id(&self) -> String {
        self.values().pop().unwrap_or_default()
    }

    /// The key's attributes.
    pub fn to_item(&self) -> Item {
        let values = self.values();
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        self.table().primary_key(&values)
    }

    /// The organization in the key. `None` for an API key, whose record names it.
    pub fn org(&self) -> Option<String> {
        match self {
            Self::ApiKey { .. } => None,
            _ => {
                let partition = self.values().swap_remove(0);
                partition.split('#').next().map(str::to_owned)
            }
        }
    }

    /// The keys of the records without which this record must not exist: its organization and, for
    /// a member, its team. Empty for an API key or a malformed key, which do not name them, and for an
    /// entry of the history, which can outlive its organization.
    pub fn parents(&self) -> Vec<Self> {
        let mut parents = Vec::new();
        match self {
            Self::Organization { .. }
            | Self::ApiKey { .. }
            | Self::HistoryEntry { .. }
            | Self::Malformed { .. } => {}
            Self::Model { org, .. }
            | Self::Team { org, .. }
            | Self::TeamMember { org, .. }
            | Self::BotVoice { org, .. }
            | Self::DataStore { org, .. }
            | Self::LoggingInstance { org, .. } => {
                parents.push(Self::Organization { org: org.clone() });
            }
        }
        if let Self::TeamMember {
            org, project, team, ..
        } = self
        {
            parents.push(Self::team(org, project, team));
        }
        parents
    }
}

impl fmt::Display for PrimaryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Organization { org } => write!(f, "the organization {org}"),
            Self::ApiKey { id } => write!(f, "the key {id}"),
            Self::Model {
                model_type,
                model_id,
                ..
            } => {
                write!(f, "the model {model_id} of the type {model_type}")
            }
            Self::Team { team, .. } => write!(f, "the team {team}"),
            Self::TeamMember { team, user, .. } => {
                write!(f, "the member {user} of the team {team}")
            }
            Self::BotVoice { bot, .. } => write!(f, "the voice of the bot {bot}"),
            Self::DataStore { data_store, .. } => write!(f, "the data store {data_store}"),
            Self::LoggingInstance { project, .. } => {
                write!(f, "the logging instance of the project {project}")
            }
            Self::HistoryEntry { org, id } => write!(f, "the entry {id} of the history of {org}"),
            Self::Malformed { values, .. } => write!(f, "the record {}", values.join(" ")),
        }
    }
}
