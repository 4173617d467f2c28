//! `list`: what is stored.

use anyhow::{Context as _, Result, bail};
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::Value;
use workspace_management::store::Table;

use crate::{tables::Deployment, terminal::print_records};

/// What to list.
#[derive(Debug, clap::Args)]
pub struct Options {
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
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, clap::ValueEnum)]
#[allow(missing_docs, reason = "the tables' own names")]
pub enum Kind {
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
/// If the records have no such part, or DynamoDB cannot be reached.
pub async fn run(options: Options, deployment: &Deployment) -> Result<()> {
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
    let whole = given.len() == parts;
    let records = if whole {
        items(
            deployment,
            table,
            None,
            Some((table.key[0], given.join("#"))),
        )
        .await?
    } else {
        let mut records = items(deployment, table, None, None).await?;
        let prefix: String = given.iter().map(|part| format!("{part}#")).collect();
        records.retain(|record| {
            record[table.key[0]]
                .as_str()
                .is_some_and(|key| key.starts_with(&prefix))
        });
        records
    };
    print_records(&records, columns, options.json)
}

/// All items of a table, or those of one partition of it or of its index.
///
/// # Errors
/// If DynamoDB cannot be reached.
pub async fn items(
    deployment: &Deployment,
    table: Table,
    index: Option<&str>,
    partition: Option<(&str, String)>,
) -> Result<Vec<Value>> {
    let name = deployment.tables.name(table);
    let items: Result<Vec<_>, aws_sdk_dynamodb::Error> = match partition {
        Some((key, value)) => {
            let query = deployment
                .client
                .query()
                .table_name(name)
                .set_index_name(index.map(str::to_owned))
                .key_condition_expression("#key = :value")
                .expression_attribute_names("#key", key)
                .expression_attribute_values(":value", AttributeValue::S(value));
            let items = query.into_paginator().items().send();
            items.collect::<Result<_, _>>().await.map_err(Into::into)
        }
        None => {
            let scan = deployment.client.scan().table_name(name);
            let items = scan.into_paginator().items().send();
            items.collect::<Result<_, _>>().await.map_err(Into::into)
        }
    };
    let items = items.with_context(|| format!("{name} cannot be read"))?;
    let mut records: Vec<Value> = items
        .into_iter()
        .map(serde_dynamo::from_item)
        .collect::<Result<_, _>>()?;
    let place = |record: &Value| {
        table
            .key
            .iter()
            .map(|key| record[*key].to_string())
            .collect::<Vec<_>>()
    };
    records.sort_by_cached_key(place);
    Ok(records)
}
