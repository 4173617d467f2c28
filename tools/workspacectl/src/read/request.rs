//! The requests of a scope.

use anyhow::Result;
use aws_sdk_dynamodb::types::AttributeValue;
use workspace_management::{records::Table, store::Item};

use crate::{deployment::Deployment, errors::RequestResultExt as _, expressions::Expressions};

/// What one scan or one query returns, in one or several requests.
#[derive(Debug, Clone)]
pub(super) enum Read {
    /// Reads the whole table, and returns the records that match, if given.
    Scan(Option<Match>),
    /// Returns the records with a partition key and, if given, a sort key that match.
    Query {
        index: Option<&'static str>,
        partition_key: Match,
        sort_key: Option<Match>,
    },
}

/// Which values of an attribute match.
#[derive(Debug, Clone)]
pub(super) enum Match {
    Equal(&'static str, String),
    BeginsWith(&'static str, String),
    /// A list of strings that has this one.
    Contains(&'static str, String),
}

/// What a request returns: items and, if there may be more, where the next request starts.
pub(super) type Page = (Vec<Item>, Option<Item>);

/// Where a request starts, and how many records it reads at most.
pub(super) struct PageRequest {
    pub(super) start_key: Option<Item>,
    pub(super) size: Option<i32>,
}

impl Read {
    pub(super) async fn send(
        &self,
        deployment: &Deployment,
        table: Table,
        page: PageRequest,
    ) -> Result<Page> {
        match self {
            Self::Scan(matches) => scan(deployment, table, matches.as_ref(), page).await,
            Self::Query {
                index,
                partition_key,
                sort_key,
            } => {
                let mut expressions = Expressions::default();
                let mut condition = partition_key.render(&mut expressions);
                if let Some(sort_key) = sort_key {
                    condition += &format!(" AND {}", sort_key.render(&mut expressions));
                }
                let table_name = deployment.table_name(table);
                let query = deployment.dynamodb.query().table_name(table_name);
                let response = query
                    .set_index_name(index.map(str::to_owned))
                    .consistent_read(index.is_none())
                    .key_condition_expression(condition)
                    .set_expression_attribute_names(expressions.names)
                    .set_expression_attribute_values(expressions.values)
                    .set_exclusive_start_key(page.start_key)
                    .set_limit(page.size)
                    .send()
                    .await
                    .request_context(deployment, format!("cannot read {table_name}"))?;
                let items = response.items.unwrap_or_default();
                Ok((items, response.last_evaluated_key))
            }
        }
    }
}

async fn scan(
    deployment: &Deployment,
    table: Table,
    matches: Option<&Match>,
    page: PageRequest,
) -> Result<Page> {
    let mut expressions = Expressions::default();
    let filter = matches.map(|matches| matches.render(&mut expressions));
    let table_name = deployment.table_name(table);
    let scan = deployment.dynamodb.scan().table_name(table_name);
    let response = scan
        .consistent_read(true)
        .set_filter_expression(filter)
        .set_expression_attribute_names(expressions.names)
        .set_expression_attribute_values(expressions.values)
        .set_exclusive_start_key(page.start_key)
        .set_limit(page.size)
        .send()
        .await
        .request_context(deployment, format!("cannot read {table_name}"))?;
    let items = response.items.unwrap_or_default();
    Ok((items, response.last_evaluated_key))
}

impl Match {
    fn render(&self, expressions: &mut Expressions) -> String {
        match self {
            Self::Equal(attribute, value) => {
                let name = expressions.name(attribute);
                let value = expressions.value(attribute, AttributeValue::S(value.clone()));
                format!("{name} = {value}")
            }
            Self::BeginsWith(attribute, prefix) => {
                let name = expressions.name(attribute);
                let prefix = expressions.value(attribute, AttributeValue::S(prefix.clone()));
                format!("begins_with({name}, {prefix})")
            }
            Self::Contains(attribute, entry) => {
                let name = expressions.name(attribute);
                let entry = expressions.value(attribute, AttributeValue::S(entry.clone()));
                format!("contains({name}, {entry})")
            }
        }
    }
}
