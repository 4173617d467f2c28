//! Reads a record, or a table: all of it, a partition, or a page.

use std::{collections::HashMap, num::NonZeroUsize};

use anyhow::Result;
use aws_sdk_dynamodb::types::AttributeValue;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::Value;
use workspace_management::store::{Item, Table};
use workspace_records::item::{primary_key, to_json};

use crate::{
    deployment::Deployment,
    errors::{RequestError, Response as _},
    usage::UsageError,
};

/// The record with a primary key, read with strong consistency.
pub(crate) async fn get(
    deployment: &Deployment,
    table: Table,
    key: &[impl AsRef<str>],
) -> Result<Option<Value>> {
    let key: Vec<&str> = key.iter().map(AsRef::as_ref).collect();
    let name = deployment.tables.name(table);
    let request = deployment
        .client
        .get_item()
        .consistent_read(true)
        .table_name(name)
        .set_key(Some(table.item_key(&key)));
    let response = request.send().await;
    let response = response.or_fail(|| format!("cannot read {} in {name}", key.join(" ")))?;
    Ok(response.item.map(to_json))
}

/// Which records to read.
pub(crate) enum Scope {
    /// All records.
    All,
    /// The records whose partition key has one of these values, which are sorted.
    Partitions(&'static str, Vec<String>),
    /// The records that satisfy a condition on the attribute `#name`, with this value of `:value`. Reads
    /// the whole table.
    Filter(&'static str, &'static str, String),
}

impl Scope {
    /// The records whose partition key has this value.
    pub(crate) fn partition(key: &'static str, value: &str) -> Self {
        Self::Partitions(key, vec![value.to_owned()])
    }

    /// The records of an organization, with strong consistency. Reads the whole tables of keys, teams
    /// and members.
    pub(crate) fn organization(table: Table, org: &str) -> Self {
        match table.partition {
            ["org"] => Self::partition(table.primary_key[0], org),
            // Not the index of the keys, because it can lack a key that was just created.
            ["key"] => Self::Filter("#name = :value", "org_id", org.to_owned()),
            _ => {
                // With the `#`, because another organization's id can begin with this one.
                let prefix = format!("{org}#");
                Self::Filter("begins_with(#name, :value)", table.primary_key[0], prefix)
            }
        }
    }
}

/// A query of a table, read with strong consistency unless it reads from an index.
pub(crate) struct Query {
    pub(crate) table: Table,
    index: Option<&'static str>,
    scope: Scope,
    /// The name of the sort key, and how its values must begin.
    sort_key_prefix: Option<(&'static str, String)>,
    /// The maximum number of records that are still read.
    limit: Option<usize>,
    /// The key after which the next request continues.
    after: Option<Item>,
    /// Whether the whole table was read.
    is_scanned: bool,
}

/// The result of a query.
#[derive(Default)]
pub(crate) struct Page {
    /// The records, sorted by their keys unless the query has a limit.
    pub(crate) records: Vec<Value>,
    /// Where the next page begins, if there may be more records.
    pub(crate) cursor: Option<String>,
    /// Whether the query has a limit.
    pub(crate) is_limited: bool,
}

/// The options of commands that print a page of records.
#[derive(Debug, clap::Args)]
pub(crate) struct PageOptions {
    /// Print at most COUNT records, in DynamoDB's order [default: all records, sorted]
    #[arg(long, value_name = "COUNT", value_parser = limit)]
    pub(crate) limit: Option<NonZeroUsize>,
    /// Continue after the page that printed this cursor
    #[arg(long, value_name = "CURSOR", requires = "limit", value_parser = cursor)]
    after: Option<Item>,
}

impl PageOptions {
    /// Checks that the cursor is of a list of these records: their partition key has this value, or
    /// begins with it and a `#`.
    pub(crate) fn check(&self, key: &str, value: &str) -> Result<(), UsageError> {
        let Some(after) = &self.after else {
            return Ok(());
        };
        let of_cursor = after.get(key).and_then(|value| value.as_s().ok());
        let rest = of_cursor.and_then(|of_cursor| of_cursor.strip_prefix(value));
        match rest {
            Some(rest) if rest.is_empty() || rest.starts_with('#') => Ok(()),
            _ => Err(UsageError("the cursor is of another list".to_owned())),
        }
    }
}

impl Query {
    /// A query of all records in the scope.
    pub(crate) fn new(table: Table, scope: Scope) -> Self {
        Self {
            table,
            index: None,
            scope,
            sort_key_prefix: None,
            limit: None,
            after: None,
            is_scanned: false,
        }
    }

    /// Queries of all records of an organization, with strong consistency. They read the whole tables of
    /// keys, teams and members.
    pub(crate) fn organization(org: &str) -> Vec<Self> {
        let query = |table: &Table| Self::new(*table, Scope::organization(*table, org));
        Table::ALL.iter().map(query).collect()
    }

    /// Reads from an index, whose partition key the scope names.
    pub(crate) fn index(mut self, name: &'static str) -> Self {
        self.index = Some(name);
        self
    }

    /// Reads only records whose sort key begins with a value.
    pub(crate) fn sort_key_prefix(mut self, key: &'static str, prefix: String) -> Self {
        self.sort_key_prefix = Some((key, prefix));
        self
    }

    /// Reads only a page.
    pub(crate) fn page(mut self, options: PageOptions) -> Self {
        self.limit = options.limit.map(NonZeroUsize::get);
        self.after = options.after;
        // Continues in the partition of the cursor, or in the next one if it is gone.
        if let (Scope::Partitions(key, values), Some(after)) = (&mut self.scope, &self.after)
            && let Some(Ok(value)) = after.get(*key).map(AttributeValue::as_s)
        {
            values.retain(|other| other >= value);
            if values.first() != Some(value) {
                self.after = None;
            }
        }
        self
    }

    /// Sends the requests that the query takes.
    pub(crate) async fn run(mut self, deployment: &Deployment) -> Result<Page> {
        let is_limited = self.limit.is_some();
        let mut items: Vec<Item> = Vec::new();
        while self.limit != Some(0)
            && let Some(found) = self.next(deployment).await?
        {
            // The next request has a lower limit, because a cursor must be the end of a request.
            self.limit = self.limit.map(|limit| limit.saturating_sub(found.len()));
            items.extend(found);
        }
        let mut last_key = None;
        if !self.is_finished() {
            // At the end of a partition, there is no key of the last request.
            let last = || items.last().map(|item| self.key(item));
            last_key = self.after.clone().or_else(last);
        }
        let mut records: Vec<Value> = items.into_iter().map(to_json).collect();
        if !is_limited {
            records.sort_by_cached_key(|record| primary_key(self.table, record));
        }
        Ok(Page {
            records,
            cursor: last_key.map(encode_cursor).transpose()?,
            is_limited,
        })
    }

    /// The primary key of an item.
    pub(crate) fn key(&self, item: &Item) -> Item {
        let key = self.table.primary_key.iter();
        let attribute = |name: &&str| Some((name.to_string(), item.get(*name)?.clone()));
        key.filter_map(attribute).collect()
    }

    /// Counts the records, of which it keeps none.
    pub(crate) async fn count(mut self, deployment: &Deployment) -> Result<usize> {
        let mut count = 0;
        while let Some(found) = self.next(deployment).await? {
            count += found.len();
        }
        Ok(count)
    }

    /// Sends the next request. Returns its items, at most a megabyte, or `None` after the last.
    pub(crate) async fn next(&mut self, deployment: &Deployment) -> Result<Option<Vec<Item>>> {
        if self.is_finished() {
            return Ok(None);
        }
        let name = deployment.tables.name(self.table);
        let response = self.request(deployment, name).await;
        let (items, last_key) = response.or_fail(|| format!("cannot read {name}"))?;
        self.after = last_key;
        if self.after.is_none() {
            match &mut self.scope {
                Scope::Partitions(_, values) => drop(values.remove(0)),
                _ => self.is_scanned = true,
            }
        }
        Ok(Some(items))
    }

    fn is_finished(&self) -> bool {
        match &self.scope {
            Scope::Partitions(_, values) => values.is_empty(),
            _ => self.is_scanned,
        }
    }

    /// Sends one request. Returns the items, and the last key if there may be more.
    async fn request(
        &self,
        deployment: &Deployment,
        name: &str,
    ) -> Result<(Vec<Item>, Option<Item>), RequestError> {
        let limit = self.limit.and_then(|limit| limit.try_into().ok());
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let Scope::Partitions(key, values) = &self.scope else {
            let mut scan = deployment
                .client
                .scan()
                .table_name(name)
                .consistent_read(true)
                .set_exclusive_start_key(self.after.clone());
            // A filter has no limit, because DynamoDB counts the items before it filters them.
            scan = match &self.scope {
                Scope::Filter(condition, name, value) => scan
                    .filter_expression(*condition)
                    .expression_attribute_names("#name", *name)
                    .expression_attribute_values(":value", text(value)),
                _ => scan.set_limit(limit),
            };
            let response = scan.send().await?;
            let items = response.items.unwrap_or_default();
            return Ok((items, response.last_evaluated_key));
        };
        let mut query = deployment
            .client
            .query()
            .table_name(name)
            .set_index_name(self.index.map(str::to_owned))
            .consistent_read(self.index.is_none())
            .key_condition_expression("#key = :value")
            .expression_attribute_names("#key", *key)
            .expression_attribute_values(":value", text(&values[0]))
            .set_exclusive_start_key(self.after.clone())
            .set_limit(limit);
        if let Some((sort_key, prefix)) = &self.sort_key_prefix {
            query = query
                .key_condition_expression("#key = :value AND begins_with(#sort_key, :prefix)")
                .expression_attribute_names("#sort_key", *sort_key)
                .expression_attribute_values(":prefix", text(prefix));
        }
        let response = query.send().await?;
        let items = response.items.unwrap_or_default();
        Ok((items, response.last_evaluated_key))
    }
}

/// A key whose attributes are strings, as text for the command line.
fn encode_cursor(key: Item) -> Result<String> {
    let key: HashMap<String, String> = serde_dynamo::from_item(key)?;
    Ok(URL_SAFE_NO_PAD.encode(serde_json::to_vec(&key)?))
}

fn limit(text: &str) -> Result<NonZeroUsize, &'static str> {
    text.parse().map_err(|_| "give a number from 1")
}

fn cursor(text: &str) -> Result<Item, &'static str> {
    let decode = || {
        let json = URL_SAFE_NO_PAD.decode(text).ok()?;
        let key: HashMap<String, String> = serde_json::from_slice(&json).ok()?;
        serde_dynamo::to_item(key).ok()
    };
    decode().ok_or("use the cursor that the previous page printed")
}
