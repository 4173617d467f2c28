//! The organization or the team that a record belongs to.

use anyhow::Result;
use aws_sdk_dynamodb::types::TransactWriteItem;
use serde_json::Value;
use workspace_management::store::Table;

use crate::{
    deployment::Deployment,
    records::{get, has, unchanged},
    write::Condition,
};

/// A record that others belong to: an organization or a team.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Parent {
    table: Table,
    key: Vec<String>,
    pub(super) record: Value,
}

/// The attribute that marks an organization or a team which is being deleted.
fn mark(table: Table) -> &'static str {
    match table {
        Table::TEAMS => "removing_id",
        _ => "erasing_id",
    }
}

impl Parent {
    /// Reads a record. `None` if it does not exist or is being deleted.
    ///
    /// # Errors
    /// If DynamoDB cannot be reached.
    pub(super) async fn read(
        deployment: &Deployment,
        table: Table,
        key: Vec<String>,
    ) -> Result<Option<Self>> {
        let values: Vec<_> = key.iter().map(String::as_str).collect();
        let record = get(deployment, table, &values).await?;
        let record = record.filter(|record| !has(record, mark(table)));
        Ok(record.map(|record| Self { table, key, record }))
    }

    /// Checks that the record is still the one that was read, and is not being deleted.
    pub(super) fn check(&self, deployment: &Deployment) -> Result<TransactWriteItem> {
        let key: Vec<_> = self.key.iter().map(String::as_str).collect();
        let (unchanged, values) = unchanged(&self.record, &["created_at", "request_id"]);
        // The last attribute, because DynamoDB reserves the name `project`.
        let name = self.table.primary_key.last().copied().unwrap_or_default();
        let mark = mark(self.table);
        let condition = Condition {
            table: self.table,
            key: &key,
            expression: &format!(
                "attribute_exists({name}) AND attribute_not_exists({mark}) AND {unchanged}"
            ),
            values: &values,
        };
        condition.check(deployment)
    }
}
