//! The tables, and how they are made from `template.yaml` on an engine.

use std::sync::LazyLock;

use anyhow::{Context as _, Result, anyhow};
use aws_sdk_dynamodb::{
    Client,
    config::{BehaviorVersion, Builder, Credentials, Region},
    types::{
        AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, Projection,
        ProjectionType, TableDescription, TableStatus,
    },
};
use serde::Deserialize;
use workspace_management::store::{Table, Tables};
use yaml_serde::Value;

/// The template that declares the tables, as it was when this tool was built.
pub const TEMPLATE: &str = include_str!("../../template.yaml");

/// The tables under their logical ids, as `serve` makes them.
pub fn logical_names() -> Tables {
    Tables::named(|table| Some(table.logical_id.to_owned())).unwrap_or_else(|_| unreachable!())
}

/// An SDK configuration for an engine on this machine, which takes any credentials.
pub fn local_config(endpoint: &str) -> Builder {
    Builder::new()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "local"))
        .endpoint_url(endpoint)
}

/// Makes the tables that are not there yet, as `template.yaml` declares them.
///
/// # Errors
/// If the template is not as expected, or the engine refuses.
pub async fn create_missing(client: &Client, tables: &Tables) -> Result<()> {
    let present = client
        .list_tables()
        .into_paginator()
        .items()
        .send()
        .collect::<Result<Vec<_>, _>>()
        .await?;
    for table in Table::ALL {
        let name = tables.name(table);
        if present.iter().any(|present| present == name) {
            continue;
        }
        let declared = declared(table)?;
        let mut request = client
            .create_table()
            .table_name(name)
            .billing_mode(BillingMode::PayPerRequest)
            .set_key_schema(Some(keys(&declared.key_schema)?));
        for attribute in declared.attribute_definitions {
            request = request.attribute_definitions(
                AttributeDefinition::builder()
                    .attribute_name(attribute.attribute_name)
                    .attribute_type(attribute.attribute_type.as_str().into())
                    .build()?,
            );
        }
        for index in declared.global_secondary_indexes {
            request = request.global_secondary_indexes(
                GlobalSecondaryIndex::builder()
                    .index_name(index.index_name)
                    .set_key_schema(Some(keys(&index.key_schema)?))
                    .projection(
                        Projection::builder()
                            .projection_type(ProjectionType::All)
                            .build(),
                    )
                    .build()?,
            );
        }
        request
            .send()
            .await
            .with_context(|| format!("the table {name} cannot be made"))?;
    }
    Ok(())
}

/// What the template says of a table.
///
/// # Errors
/// If it says nothing.
pub fn declared(table: Table) -> Result<Declaration> {
    // Read once: it is long, and a test makes all tables anew.
    static PARSED: LazyLock<Result<Value, yaml_serde::Error>> =
        LazyLock::new(|| yaml_serde::from_str(TEMPLATE));
    let template = PARSED
        .as_ref()
        .map_err(|error| anyhow!("template.yaml is not YAML: {error}"))?;
    let declared = template["Resources"][table.logical_id]["Properties"].clone();
    yaml_serde::from_value(declared)
        .with_context(|| format!("template.yaml does not declare {}", table.logical_id))
}

/// What an engine needs of a table's declaration.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Declaration {
    attribute_definitions: Vec<Attribute>,
    key_schema: Vec<Key>,
    #[serde(default)]
    global_secondary_indexes: Vec<Index>,
}

impl Declaration {
    /// In what a table is not as declared.
    pub fn differences(&self, table: &TableDescription) -> Vec<String> {
        let mut differences = Vec::new();
        let mut expect = |holds: bool, difference: String| {
            if !holds {
                differences.push(difference);
            }
        };
        let status = table
            .table_status
            .as_ref()
            .map_or("unknown", TableStatus::as_str);
        expect(status == "ACTIVE", format!("its status is {status}"));
        let has_keys = |declared: &[Key], present: &[KeySchemaElement]| {
            declared.len() == present.len()
                && declared.iter().zip(present).all(|(declared, present)| {
                    declared.attribute_name == present.attribute_name
                        && declared.key_type == present.key_type.as_str()
                })
        };
        let is_keyed = has_keys(&self.key_schema, table.key_schema());
        expect(
            is_keyed,
            "its key is another than the template's".to_owned(),
        );
        let types = self.attribute_definitions.iter().all(|declared| {
            let mut present = table.attribute_definitions().iter();
            present.any(|present| {
                present.attribute_name == declared.attribute_name
                    && present.attribute_type.as_str() == declared.attribute_type
            })
        });
        expect(
            types,
            "its key's attributes have other types than the template's".to_owned(),
        );
        let billing = table
            .billing_mode_summary()
            .and_then(|billing| billing.billing_mode.clone());
        let is_on_demand = billing == Some(BillingMode::PayPerRequest);
        expect(is_on_demand, "it is not billed by request".to_owned());
        for declared in &self.global_secondary_indexes {
            let mut indexes = table.global_secondary_indexes().iter();
            let present = indexes.any(|index| {
                index.index_name.as_ref() == Some(&declared.index_name)
                    && has_keys(&declared.key_schema, index.key_schema())
            });
            expect(present, format!("it has no index {}", declared.index_name));
        }
        differences
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Attribute {
    attribute_name: String,
    attribute_type: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Key {
    attribute_name: String,
    key_type: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Index {
    index_name: String,
    key_schema: Vec<Key>,
}

fn keys(schema: &[Key]) -> Result<Vec<KeySchemaElement>> {
    let element = |key: &Key| {
        KeySchemaElement::builder()
            .attribute_name(&key.attribute_name)
            .key_type(key.key_type.as_str().into())
            .build()
    };
    Ok(schema.iter().map(element).collect::<Result<_, _>>()?)
}
