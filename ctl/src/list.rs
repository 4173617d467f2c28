//! `list`: what is stored.

use std::{collections::HashMap, num::NonZeroUsize};

use anyhow::{Context as _, Result, bail};
use aws_sdk_dynamodb::types::AttributeValue;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use clap::ValueEnum;
use serde_json::{Value, json};
use workspace_management::store::Table;

use crate::{deployment::Deployment, progress::Progress, terminal::print_records};

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
    /// At most so many records, in DynamoDB's order; without it, all of them, sorted
    #[arg(long, value_name = "COUNT")]
    limit: Option<NonZeroUsize>,
    /// Go on where a limit ended the last list, with the mark that it gave
    #[arg(long, value_name = "MARK", requires = "limit")]
    after: Option<String>,
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
/// If the records have no such part, the mark is none, or DynamoDB cannot be reached.
pub async fn run(options: Options, deployment: &Deployment, json: bool) -> Result<()> {
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
pub async fn everything(deployment: &Deployment) -> Result<Vec<Value>> {
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

/// All items of a table, or those of one partition of it or of its index, sorted.
///
/// # Errors
/// If DynamoDB cannot be reached.
pub async fn items(
    deployment: &Deployment,
    table: Table,
    index: Option<&'static str>,
    partition: Option<(&'static str, String)>,
) -> Result<Vec<Value>> {
    let scope = match partition {
        Some((key, value)) => Scope::Partition(key, value),
        None => Scope::All,
    };
    let read = Read {
        index,
        ..Read::new(table, scope)
    };
    Ok(read.from(deployment).await?.records)
}

/// Which items to read.
enum Scope {
    All,
    /// Those whose attribute has that value, in the order of DynamoDB.
    Partition(&'static str, String),
    /// Those whose attribute begins so.
    Beginning(&'static str, String),
}

/// What to read of a table.
struct Read {
    table: Table,
    index: Option<&'static str>,
    scope: Scope,
    limit: Option<NonZeroUsize>,
    after: Option<Item>,
}

/// Records that were read, and where to go on if there may be more.
struct Page {
    records: Vec<Value>,
    next: Option<String>,
}

type Item = HashMap<String, AttributeValue>;

impl Read {
    fn new(table: Table, scope: Scope) -> Self {
        Self {
            table,
            index: None,
            scope,
            limit: None,
            after: None,
        }
    }

    async fn from(mut self, deployment: &Deployment) -> Result<Page> {
        let name = deployment.tables.name(self.table);
        let mut progress = Progress::new(deployment, name);
        let most = self.limit.map_or(usize::MAX, NonZeroUsize::get);
        let mut items: Vec<Item> = Vec::new();
        loop {
            let page = self.page(deployment, name);
            let (found, last) = progress
                .during(page, items.len())
                .await
                .with_context(|| format!("{name} cannot be read"))?;
            items.extend(found);
            self.after = last;
            if self.after.is_none() || items.len() >= most {
                break;
            }
        }
        progress.end();
        let next = if items.len() > most {
            items.truncate(most);
            let last = items[most - 1].iter();
            Some(
                last.filter(|(name, _)| self.table.key.contains(&name.as_str()))
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect(),
            )
        } else {
            self.after
        };
        let mut records: Vec<Value> = items
            .into_iter()
            .map(serde_dynamo::from_item)
            .collect::<Result<_, _>>()?;
        if self.limit.is_none() {
            let place = |record: &Value| -> Vec<String> {
                let key = self.table.key.iter();
                key.map(|name| record[*name].to_string()).collect()
            };
            records.sort_by_cached_key(place);
        }
        Ok(Page {
            records,
            next: next.map(mark).transpose()?,
        })
    }

    /// A page of DynamoDB's, and where the next one begins.
    async fn page(
        &self,
        deployment: &Deployment,
        name: &str,
    ) -> Result<(Vec<Item>, Option<Item>), aws_sdk_dynamodb::Error> {
        let client = &deployment.client;
        let limit = self.limit.and_then(|limit| limit.get().try_into().ok());
        if let Scope::Partition(key, value) = &self.scope {
            let page = client
                .query()
                .table_name(name)
                .set_index_name(self.index.map(str::to_owned))
                .key_condition_expression("#key = :value")
                .expression_attribute_names("#key", *key)
                .expression_attribute_values(":value", AttributeValue::S(value.clone()))
                .set_exclusive_start_key(self.after.clone())
                .set_limit(limit)
                .send()
                .await?;
            return Ok((page.items.unwrap_or_default(), page.last_evaluated_key));
        }
        let mut scan = client
            .scan()
            .table_name(name)
            .set_exclusive_start_key(self.after.clone());
        // DynamoDB counts before it filters.
        scan = match &self.scope {
            Scope::Beginning(key, prefix) => scan
                .filter_expression("begins_with(#key, :prefix)")
                .expression_attribute_names("#key", *key)
                .expression_attribute_values(":prefix", AttributeValue::S(prefix.clone())),
            _ => scan.set_limit(limit),
        };
        let page = scan.send().await?;
        Ok((page.items.unwrap_or_default(), page.last_evaluated_key))
    }
}

/// A place in a table as a text to be handed back, and the other way round.
fn mark(place: Item) -> Result<String> {
    let place: HashMap<String, String> = serde_dynamo::from_item(place)?;
    Ok(URL_SAFE_NO_PAD.encode(serde_json::to_vec(&place)?))
}

fn start(mark: &str) -> Result<Item> {
    let place = URL_SAFE_NO_PAD.decode(mark).ok();
    let place =
        place.and_then(|place| serde_json::from_slice::<HashMap<String, String>>(&place).ok());
    let place = place.with_context(|| format!("{mark:?} is no mark that a list gave"))?;
    Ok(serde_dynamo::to_item(place)?)
}
