//! The tables that `template.yaml` declares, and how to create them on a local DynamoDB.

use std::{convert::Infallible, sync::LazyLock};

use anyhow::{Context as _, Result, anyhow};
use aws_sdk_dynamodb::{
    Client,
    config::{BehaviorVersion, Builder as ConfigBuilder, Credentials, Region},
    types::{
        AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, Projection,
        StreamSpecification,
    },
};
use aws_smithy_http_client::{
    Builder as HttpClientBuilder,
    tls::{Provider, rustls_provider::CryptoMode},
};
use serde::Deserialize;
use workspace_management::store::{Table, TableNames};
use yaml_serde::Value;

/// `template.yaml` at the time of the build.
const TEMPLATE: &str = include_str!("../../template.yaml");

/// The content of `template.yaml`. A value with a tag, such as `!Ref TeamsTable`, equals its text.
///
/// # Errors
/// If the template is not valid YAML.
pub fn template() -> Result<&'static Value> {
    // Parsing takes a while, and every test creates all tables.
    static PARSED: LazyLock<Result<Value, yaml_serde::Error>> =
        LazyLock::new(|| yaml_serde::from_str(TEMPLATE));
    let template = PARSED.as_ref();
    template.map_err(|error| anyhow!("template.yaml is not valid YAML: {error}"))
}

/// An SDK configuration for a local DynamoDB, which accepts any region and credentials.
pub fn sdk_config(endpoint: &str) -> ConfigBuilder {
    let http_client = HttpClientBuilder::new();
    // Without TLS, the client does not have to parse the system's root certificates.
    let http_client = if endpoint.starts_with("https:") {
        let provider = Provider::rustls(CryptoMode::Ring);
        http_client.tls_provider(provider).build_https()
    } else {
        http_client.build_http()
    };
    ConfigBuilder::new()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "local"))
        .endpoint_url(endpoint)
        .http_client(http_client)
}

/// The names of the tables on a local DynamoDB: their logical ids in `template.yaml`.
pub fn table_names() -> TableNames {
    let Ok(names) = TableNames::new(|table| Ok::<_, Infallible>(table.logical_id.to_owned()));
    names
}

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

/// The part of a table's declaration in `template.yaml` that determines what can be read from it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Declaration {
    /// The attributes that a key of the table or of an index contains.
    pub attribute_definitions: Vec<Attribute>,
    /// The partition key, then the sort key if the table has one.
    pub key_schema: Vec<Key>,
    /// The indexes.
    #[serde(default)]
    pub global_secondary_indexes: Vec<Index>,
    /// The change stream, if the table has one.
    #[serde(default)]
    pub stream_specification: Option<Stream>,
}

/// A change stream.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Stream {
    /// What its events contain, such as `NEW_AND_OLD_IMAGES`.
    pub stream_view_type: String,
}

/// Which attributes an index has.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct IndexProjection {
    /// `ALL` or `KEYS_ONLY`.
    pub projection_type: String,
}

/// The type of an attribute.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Attribute {
    /// The attribute.
    pub attribute_name: String,
    /// `S`, `N` or `B`.
    pub attribute_type: String,
}

/// A part of a key.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Key {
    /// The attribute.
    pub attribute_name: String,
    /// `HASH` or `RANGE`.
    pub key_type: String,
}

/// A global secondary index.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Index {
    /// Its name.
    pub index_name: String,
    /// The partition key, then the sort key if the index has one.
    pub key_schema: Vec<Key>,
    /// Which attributes it has.
    pub projection: IndexProjection,
}

impl Declaration {
    /// The declaration of a table.
    ///
    /// # Errors
    /// If `template.yaml` does not declare the table.
    pub fn of(table: Table) -> Result<Self> {
        let template = template()?;
        let properties = template["Resources"][table.logical_id]["Properties"].clone();
        yaml_serde::from_value(properties)
            .with_context(|| format!("template.yaml does not declare {}", table.logical_id))
    }
}
