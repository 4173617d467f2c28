//! Reads a table: all of it, a partition, or a page.

use std::{collections::HashMap, num::NonZeroUsize};

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::types::AttributeValue;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::Value;
use workspace_management::store::Table;

use crate::{deployment::Deployment, progress::Progress};

type Item = HashMap<String, AttributeValue>;

/// Which records to read.
pub(crate) enum Scope {
    /// All records.
    All,
    /// The records whose partition key has this value.
    Partition(&'static str, String),
    /// The records whose partition key begins with this value. Reads the whole table.
    KeyPrefix(&'static str, String),
}

/// A query of a table.
pub(crate) struct Query {
    table: Table,
    index: Option<&'static str>,
    scope: Scope,
    limit: Option<NonZeroUsize>,
    after: Option<Item>,
}

/// The result of a query.
pub(crate) struct Page {
    /// The records, sorted by their keys unless the query has a limit.
    pub(crate) records: Vec<Value>,
    /// Where the next page begins, if there may be more records.
    pub(crate) cursor: Option<String>,
}

impl Query {
    /// A query of all records in the scope.
    pub(crate) fn new(table: Table, scope: Scope) -> Self {
        Self {
            table,
            index: None,
            scope,
            limit: None,
            after: None,
        }
    }

    /// Reads from an index, whose partition key the scope names.
    pub(crate) fn index(mut self, name: &'static str) -> Self {
        self.index = Some(name);
        self
    }

    /// Reads at most `limit` records, after the ones that end at `cursor`.
    ///
    /// # Errors
    /// If the cursor is invalid.
    pub(crate) fn page(
        mut self,
        limit: Option<NonZeroUsize>,
        cursor: Option<&str>,
    ) -> Result<Self> {
        self.limit = limit;
        self.after = cursor.map(decode_cursor).transpose()?;
        Ok(self)
    }

    /// Sends the requests that the query takes.
    ///
    /// # Errors
    /// If DynamoDB cannot be reached or rejects a request.
    pub(crate) async fn run(mut self, deployment: &Deployment) -> Result<Page> {
        let name = deployment.tables.name(self.table);
        let mut progress = Progress::new(deployment, name);
        let limit = self.limit.map_or(usize::MAX, NonZeroUsize::get);
        let mut items: Vec<Item> = Vec::new();
        loop {
            let request = self.request(deployment, name);
            let (found, last_key) = progress
                .track(request, items.len())
                .await
                .with_context(|| format!("cannot read {name}"))?;
            items.extend(found);
            self.after = last_key;
            if self.after.is_none() || items.len() >= limit {
                break;
            }
        }
        progress.finish();
        let last_key = if items.len() > limit {
            items.truncate(limit);
            let key = self.table.key.iter();
            let attribute =
                |name: &&str| Some((name.to_string(), items.last()?.get(*name)?.clone()));
            Some(key.filter_map(attribute).collect())
        } else {
            self.after
        };
        let mut records: Vec<Value> = items
            .into_iter()
            .map(serde_dynamo::from_item)
            .collect::<Result<_, _>>()?;
        if self.limit.is_none() {
            let key = |record: &Value| -> Vec<String> {
                let key = self.table.key.iter();
                key.map(|name| record[*name].to_string()).collect()
            };
            records.sort_by_cached_key(key);
        }
        Ok(Page {
            records,
            cursor: last_key.map(encode_cursor).transpose()?,
        })
    }

    /// Sends one request. Returns the items, and the last key if there may be more.
    async fn request(
        &self,
        deployment: &Deployment,
        name: &str,
    ) -> Result<(Vec<Item>, Option<Item>)> {
        let client = &deployment.client;
        let limit = self.limit.and_then(|limit| limit.get().try_into().ok());
        if let Scope::Partition(key, value) = &self.scope {
            let response = client
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
            return Ok((
                response.items.unwrap_or_default(),
                response.last_evaluated_key,
            ));
        }
        let mut scan = client
            .scan()
            .table_name(name)
            .set_exclusive_start_key(self.after.clone());
        scan = match &self.scope {
            // Without a limit, because DynamoDB counts the items before it filters them.
            Scope::KeyPrefix(key, prefix) => scan
                .filter_expression("begins_with(#key, :prefix)")
                .expression_attribute_names("#key", *key)
                .expression_attribute_values(":prefix", AttributeValue::S(prefix.clone())),
            Scope::All | Scope::Partition(..) => scan.set_limit(limit),
        };
        let response = scan.send().await?;
        Ok((
            response.items.unwrap_or_default(),
            response.last_evaluated_key,
        ))
    }
}

/// All records of a table, sorted by their keys.
///
/// # Errors
/// If DynamoDB cannot be reached or rejects a request.
pub(crate) async fn all_records(deployment: &Deployment, table: Table) -> Result<Vec<Value>> {
    let page = Query::new(table, Scope::All).run(deployment).await?;
    Ok(page.records)
}

/// A key whose attributes are strings, as text for the command line.
fn encode_cursor(key: Item) -> Result<String> {
    let key: HashMap<String, String> = serde_dynamo::from_item(key)?;
    Ok(URL_SAFE_NO_PAD.encode(serde_json::to_vec(&key)?))
}

fn decode_cursor(cursor: &str) -> Result<Item> {
    let key = URL_SAFE_NO_PAD.decode(cursor).ok();
    let key = key.and_then(|key| serde_json::from_slice::<HashMap<String, String>>(&key).ok());
    let key = key.with_context(|| {
        format!("invalid --after cursor {cursor:?}: use the one that the previous page printed")
    })?;
    Ok(serde_dynamo::to_item(key)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_decodes_to_the_key_that_it_encodes() {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let key = Item::from([
            ("team".to_owned(), text("acme#apollo#docs")),
            ("user_id".to_owned(), text("Zoë \"7\"")),
        ]);
        let cursor = encode_cursor(key.clone()).expect("a cursor");
        assert!(
            !cursor
                .contains(|character: char| !character.is_ascii_alphanumeric()
                    && !"-_".contains(character)),
            "{cursor}"
        );
        assert_eq!(decode_cursor(&cursor).expect("a key"), key);
    }

    #[test]
    fn an_invalid_cursor_is_rejected() {
        for cursor in ["", "nonsense", "W10", "eyJhIjoxfQ"] {
            let error = decode_cursor(cursor).expect_err(cursor).to_string();
            assert!(
                error.starts_with(&format!("invalid --after cursor {cursor:?}")),
                "{error}"
            );
        }
    }
}
