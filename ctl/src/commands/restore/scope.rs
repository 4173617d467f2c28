//! Which records `restore` was asked for.

use serde_json::Value;
use workspace_management::store::Table;

use crate::{
    records::text_of,
    usage::{identifier, kind_parser},
};

/// The options that select records.
#[derive(Debug, clap::Args)]
pub(crate) struct Scope {
    /// The kind of the records. Required for a table; each line of a file names its kind
    #[arg(long, value_name = "KIND", value_parser = kind_parser(Table::ALL.iter().copied()))]
    pub(super) to: Option<Table>,
    /// Only records of this organization. A table requires this option or --all-orgs, and so does a
    /// file with records of more than one organization
    #[arg(long, value_parser = identifier)]
    pub(super) org: Option<String>,
    /// The records of all organizations
    #[arg(long, conflicts_with = "org")]
    pub(super) all_orgs: bool,
    /// Only teams, members and the logging instance of this project
    #[arg(long, requires = "org", conflicts_with = "keys", value_parser = identifier)]
    project: Option<String>,
    /// Only this team and its members
    #[arg(long, requires = "project", value_parser = identifier)]
    team: Option<String>,
    /// Required to restore API keys. Restored keys work again unless they are expired or revoked.
    /// Keys in an export cannot be restored, because their hashes are omitted
    #[arg(long)]
    pub(super) keys: bool,
}

impl Scope {
    /// Whether a record is to be restored.
    pub(super) fn selects(&self, table: Table, record: &Value) -> bool {
        self.contains(table, record) && (self.keys || table != Table::KEYS)
    }

    /// The same without regard to `--keys`. A record that contradicts itself is selected by each of
    /// the ids that it has, so that it is checked.
    pub(super) fn contains(&self, table: Table, record: &Value) -> bool {
        let mut in_key = text_of(record, table.primary_key[0]).split('#');
        let mut has = |name: &str, wanted: &Option<String>| {
            let is_in_key = table.partition.contains(&name);
            let in_key = if is_in_key { in_key.next() } else { None };
            let attribute = &record[format!("{name}_id")];
            let is_wanted = |wanted: &String| {
                in_key == Some(wanted.as_str()) || attribute.as_str() == Some(wanted.as_str())
            };
            wanted.as_ref().is_none_or(is_wanted)
        };
        let (org, project) = (has("org", &self.org), has("project", &self.project));
        let team = has("team", &self.team);
        org && project && team && self.to.is_none_or(|kind| kind == table)
    }
}
