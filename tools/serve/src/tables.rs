//! Creates the tables of `template.yaml` on a local DynamoDB.

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::{Client, types::BillingMode};
use workspace_management::records::Table;
use workspace_records::tables::TableDeclaration;

/// Creates the tables that do not exist yet, with these names, as `template.yaml` declares them.
///
/// # Errors
/// If `template.yaml` does not declare a table, or a request to DynamoDB fails.
pub async fn create_missing(
    client: &Client,
    tables: impl IntoIterator<Item = (Table, String)>,
) -> Result<()> {
    let existing = client
        .list_tables()
        .into_paginator()
        .items()
        .send()
        .collect::<Result<Vec<_>, _>>()
        .await?;
    for (table, name) in tables {
        if existing.contains(&name) {
            continue;
        }
        let declaration = TableDeclaration::of(table)?;
        let mut request = client
            .create_table()
            .table_name(&name)
            .billing_mode(BillingMode::PayPerRequest)
            .set_key_schema(Some(declaration.key_schema))
            .set_attribute_definitions(Some(declaration.attribute_definitions))
            .set_stream_specification(declaration.stream_specification);
        // Adds each index on its own, because DynamoDB rejects an empty list.
        for index in declaration.global_secondary_indexes {
            request = request.global_secondary_indexes(index);
        }
        request
            .send()
            .await
            .with_context(|| format!("cannot create the table {name}"))?;
    }
    Ok(())
}
