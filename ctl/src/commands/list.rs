//! `list`: what is stored.

use std::num::NonZeroUsize;

use anyhow::{Result, bail};
use clap::ValueEnum;
use serde_json::{Value, json};
use workspace_management::store::Table;

use crate::{
    deployment::Deployment,
    output::print_records,
    query::{Page, Read, Scope, items, start},
};

/// What to list.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// What to list
    kind: Kind,
    /// Only of this organization
    #[arg(long)]
    org: Option<String>,
    /// Only of this project of it (teams, members)
    #[arg(long, requires = "org")]
    project: Option<String>,
    /// Only of this team of it (members)
    #[arg(long, requires = "project")]
    team: Option<String>,
    /// At most so many records, in DynamoDB's order; without it, all of them, sorted
    #[arg(long, value_name = "COUNT")]
    limit: Option<NonZeroUsize>,
    /// Go on where a limit ended the last list, with the mark that it gave
    #[arg(long, value_name = "MARK", requires = "limit")]
    after: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, clap::ValueEnum)]
#[allow(missing_docs, reason = "the tables' own names")]
pub(crate) enum Kind {
    Models,
    Teams,
    Members,
    Voices,
    DataStores,
    LoggingInstances,
}

impl Kind {
    /// Its table, and the columns to show.
    fn table(self) -> (Table, &'static [&'static str]) {
        match self {
            Self::Models => (
                Table::MODELS,
                &["org_id", "model", "id", "created_at", "created_by"],
            ),
            Self::Teams => (
                Table::TEAMS,
                &[
                    "project",
                    "team_id",
                    "team_name",
                    "team_description",
                    "created_at",
                    "created_by",
                ],
            ),
            Self::Members => (
                Table::TEAM_MEMBERS,
                &["team", "user_id", "created_at", "created_by"],
            ),
            Self::Voices => (
                Table::BOT_VOICES,
                &[
                    "org_id",
                    "bot_id",
                    "type",
                    "enabled",
                    "updated_at",
                    "updated_by",
                ],
            ),
            Self::DataStores => (
                Table::DATA_STORES,
                &[
                    "org_id",
                    "data_store_id",
                    "data_store_name",
                    "data_store_description",
                    "created_at",
                    "created_by",
                ],
            ),
            Self::LoggingInstances => (
                Table::LOGGING_INSTANCES,
                &[
                    "org_id",
                    "project_id",
                    "project_name",
                    "created_at",
                    "created_by",
                ],
            ),
        }
    }
}

/// Lists records.
///
/// # Errors
/// If the records have no such part, the mark is none, or DynamoDB cannot be reached.
pub(crate) async fn run(options: Options, deployment: &Deployment, json: bool) -> Result<()> {
    let (table, columns) = options.kind.table();
    // How many of organization, project and team the partition key joins.
    let parts = match options.kind {
        Kind::Teams => 2,
        Kind::Members => 3,
        _ => 1,
    };
    let given: Vec<String> = [options.org, options.project, options.team]
        .into_iter()
        .flatten()
        .collect();
    if given.len() > parts {
        let option = ["", "--project", "--team"][given.len() - 1];
        bail!("{option} does not apply to these records");
    }
    let scope = if given.is_empty() {
        Scope::All
    } else if given.len() == parts {
        Scope::Partition(table.key[0], given.join("#"))
    } else {
        let prefix = given.iter().map(|part| format!("{part}#")).collect();
        Scope::Beginning(table.key[0], prefix)
    };
    let read = Read {
        limit: options.limit,
        after: options.after.as_deref().map(start).transpose()?,
        ..Read::new(table, scope)
    };
    let Page { records, next } = read.from(deployment).await?;
    print_records(&records, columns, json)?;
    if let Some(next) = next {
        eprintln!("there may be more: --after {next}");
    }
    Ok(())
}

/// The records of every kind, each with its name and the columns that show it.
///
/// # Errors
/// If DynamoDB cannot be reached.
pub(crate) async fn everything(deployment: &Deployment) -> Result<Vec<Value>> {
    let mut kinds = Vec::new();
    for kind in Kind::value_variants() {
        let (table, columns) = kind.table();
        let name = kind
            .to_possible_value()
            .map(|value| value.get_name().to_owned());
        let records = items(deployment, table, None, None).await?;
        kinds.push(json!({ "kind": name, "columns": columns, "records": records }));
    }
    Ok(kinds)
}
