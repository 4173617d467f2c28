//! Reading a table, in whole, in part or in pages.

use std::{collections::HashMap, num::NonZeroUsize};

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::types::AttributeValue;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::Value;
use workspace_management::store::Table;

use crate::{deployment::Deployment, progress::Progress};

/// All items of a table, or those of one partition of it or of its index, sorted.
///
/// # Errors
/// If DynamoDB cannot be reached.
pub(crate) async fn items(
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
pub(crate) enum Scope {
    All,
    /// Those whose attribute has that value, in the order of DynamoDB.
    Partition(&'static str, String),
    /// Those whose attribute begins so.
    Beginning(&'static str, String),
}

/// What to read of a table.
pub(crate) struct Read {
    pub(crate) table: Table,
    pub(crate) index: Option<&'static str>,
    pub(crate) scope: Scope,
    pub(crate) limit: Option<NonZeroUsize>,
    pub(crate) after: Option<Item>,
}

/// Records that were read, and where to go on if there may be more.
pub(crate) struct Page {
    pub(crate) records: Vec<Value>,
    pub(crate) next: Option<String>,
}

type Item = HashMap<String, AttributeValue>;

impl Read {
    pub(crate) fn new(table: Table, scope: Scope) -> Self {
        Self {
            table,
            index: None,
            scope,
            limit: None,
            after: None,
        }
    }

    pub(crate) async fn from(mut self, deployment: &Deployment) -> Result<Page> {
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

pub(crate) fn start(mark: &str) -> Result<Item> {
    let place = URL_SAFE_NO_PAD.decode(mark).ok();
    let place =
        place.and_then(|place| serde_json::from_slice::<HashMap<String, String>>(&place).ok());
    let place = place.with_context(|| format!("{mark:?} is no mark that a list gave"))?;
    Ok(serde_dynamo::to_item(place)?)
}
