//! The kinds of records, as the tools name them.

use workspace_management::records::Table;

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

static KINDS: [Kind; Table::ALL.len()] = [
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
