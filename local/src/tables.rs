//! Creates the tables of `template.yaml` on a local DynamoDB.

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::{
    Client,
    types::{
        AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, Projection,
        StreamSpecification,
    },
};
use workspace_management::store::{Table, TableNames};
use workspace_records::tables::{Declaration, Key};

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
        let mut request = client
            .create_table()
            .table_name(name)
            .billing_mode(BillingMode::PayPerRequest)
            .set_key_schema(Some(key_schema(&declaration.key_schema)?));
        for attribute in declaration.attribute_definitions {
            request = request.attribute_definitions(
                AttributeDefinition::builder()
                    .attribute_name(attribute.attribute_name)
                    .attribute_type(attribute.attribute_type.as_str().into())
                    .build()?,
            );
        }
        for index in declaration.global_secondary_indexes {
            request = request.global_secondary_indexes(
                GlobalSecondaryIndex::builder()
                    .index_name(index.index_name)
                    .set_key_schema(Some(key_schema(&index.key_schema)?))
                    .projection(
                        Projection::builder()
                            .projection_type(index.projection.projection_type.as_str().into())
                            .build(),
                    )
                    .build()?,
            );
        }
        if let Some(stream) = declaration.stream_specification {
            let stream = StreamSpecification::builder()
                .stream_enabled(true)
                .stream_view_type(stream.stream_view_type.as_str().into())
                .build()?;
            request = request.stream_specification(stream);
        }
        request
            .send()
            .await
            .with_context(|| format!("cannot create the table {name}"))?;
    }
    Ok(())
}

fn key_schema(keys: &[Key]) -> Result<Vec<KeySchemaElement>> {
    let element = |key: &Key| {
        KeySchemaElement::builder()
            .attribute_name(&key.attribute_name)
            .key_type(key.key_type.as_str().into())
            .build()
    };
    Ok(keys.iter().map(element).collect::<Result<_, _>>()?)
}
