//! Creates the tables of `template.yaml` on a local DynamoDB.

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::{Client, types::BillingMode};
use workspace_management::store::{Table, TableNames};
use workspace_records::tables::Declaration;

/// Creates the tables that do not exist yet, as `template.yaml` declares them.
///
/// # Errors
/// If the template cannot be read or DynamoDB rejects a request.
pub async fn create_missing(client: &Client, tables: &TableNames) -> Result<()> {
    let existing = client
        .list_tables()
        .into_paginator()
        .items()
        .send()
        .collect::<Result<Vec<_>, _>>()
        .await?;
    for table in Table::ALL {
        let name = tables.name(*table);
        if existing.iter().any(|existing| existing == name) {
            continue;
        }
        let declaration = Declaration::of(*table)?;
        let indexes = declaration.global_secondary_indexes;
        client
            .create_table()
            .table_name(name)
            .billing_mode(BillingMode::PayPerRequest)
            .set_key_schema(Some(declaration.key_schema))
            .set_attribute_definitions(Some(declaration.attribute_definitions))
            // DynamoDB rejects an empty list.
            .set_global_secondary_indexes(Some(indexes).filter(|indexes| !indexes.is_empty()))
            .set_stream_specification(declaration.stream_specification)
            .send()
            .await
            .with_context(|| format!("cannot create the table {name}"))?;
    }
    Ok(())
}
