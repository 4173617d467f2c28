//! Reads single records.

use anyhow::{Context as _, Result};
use serde_json::Value;
use workspace_management::store::Table;
pub(crate) use workspace_records::item::{primary_key, text as text_of, to_json};

use crate::deployment::Deployment;

/// The record with a key, read with strong consistency.
pub(crate) async fn get(
    deployment: &Deployment,
    table: Table,
    key: &[&str],
) -> Result<Option<Value>> {
    let name = deployment.tables.name(table);
    let response = deployment
        .client
        .get_item()
        .consistent_read(true)
        .table_name(name)
        .set_key(Some(table.item_key(key)))
        .send()
        .await
        .with_context(|| format!("cannot read {} in {name}", key.join(" ")))?;
    Ok(response.item.map(to_json))
}

/// Whether a record has an attribute. One that is null, which only other programs write, counts.
pub(crate) fn has(record: &Value, name: &str) -> bool {
    record.get(name).is_some()
}

/// The values of a record's primary key.
pub(crate) fn key(table: Table, record: &Value) -> Vec<&str> {
    let names = table.primary_key.iter();
    names.map(|name| text_of(record, name)).collect()
}
