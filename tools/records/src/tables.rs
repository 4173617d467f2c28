//! The tables as `template.yaml` declares them.

use std::sync::LazyLock;

use anyhow::{Context as _, Result, anyhow};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, GlobalSecondaryIndex, KeySchemaElement, Projection, StreamSpecification,
};
use workspace_management::records::Table;
use yaml_serde::Value;

/// `template.yaml` at the time of the build.
const TEMPLATE: &str = include_str!("../../../template.yaml");

/// The content of `template.yaml`. With a string, `==` ignores tags: `!Ref Teams` equals `"Teams"`.
///
/// # Errors
/// If the template is not valid YAML.
pub fn template() -> Result<&'static Value> {
    // Parsing takes a while, and every test creates all tables.
    static PARSED: LazyLock<Result<Value, yaml_serde::Error>> =
        LazyLock::new(|| yaml_serde::from_str(TEMPLATE));
    PARSED
        .as_ref()
        .map_err(|error| anyhow!("template.yaml is not valid YAML: {error}"))
}

/// What `template.yaml` declares about a table, as far as programs that use the table depend on it.
#[derive(Debug)]
pub struct TableDeclaration {
    /// The types of the attributes in the primary key of the table and the keys of its indexes.
    pub attribute_definitions: Vec<AttributeDefinition>,
    /// The partition key, then the sort key if the table has one.
    pub key_schema: Vec<KeySchemaElement>,
    /// The indexes.
    pub global_secondary_indexes: Vec<GlobalSecondaryIndex>,
    /// The change stream, if the table has one.
    pub stream_specification: Option<StreamSpecification>,
}

impl TableDeclaration {
    /// The declaration of a table.
    ///
    /// # Errors
    /// If `template.yaml` does not declare the table.
    pub fn of(table: Table) -> Result<Self> {
        let properties = &template()?["Resources"][table.logical_id]["Properties"];
        Self::read(properties)
            .with_context(|| format!("template.yaml does not declare {}", table.logical_id))
    }

    fn read(properties: &Value) -> Result<Self> {
        let mut attribute_definitions = Vec::new();
        for attribute in list(&properties["AttributeDefinitions"])? {
            let definition = AttributeDefinition::builder()
                .attribute_name(text(&attribute["AttributeName"])?)
                .attribute_type(text(&attribute["AttributeType"])?.into());
            attribute_definitions.push(definition.build()?);
        }
        let mut global_secondary_indexes = Vec::new();
        if let Some(indexes) = properties.get("GlobalSecondaryIndexes") {
            for index in list(indexes)? {
                let projection_type = text(&index["Projection"]["ProjectionType"])?;
                let projection = Projection::builder().projection_type(projection_type.into());
                let index = GlobalSecondaryIndex::builder()
                    .index_name(text(&index["IndexName"])?)
                    .set_key_schema(Some(read_key(&index["KeySchema"])?))
                    .projection(projection.build());
                global_secondary_indexes.push(index.build()?);
            }
        }
        let mut stream_specification = None;
        if let Some(stream) = properties.get("StreamSpecification") {
            let stream = StreamSpecification::builder()
                .stream_enabled(true)
                .stream_view_type(text(&stream["StreamViewType"])?.into());
            stream_specification = Some(stream.build()?);
        }
        Ok(Self {
            attribute_definitions,
            key_schema: read_key(&properties["KeySchema"])?,
            global_secondary_indexes,
            stream_specification,
        })
    }
}

fn read_key(elements: &Value) -> Result<Vec<KeySchemaElement>> {
    let mut key_schema = Vec::new();
    for element in list(elements)? {
        let element = KeySchemaElement::builder()
            .attribute_name(text(&element["AttributeName"])?)
            .key_type(text(&element["KeyType"])?.into());
        key_schema.push(element.build()?);
    }
    Ok(key_schema)
}

fn list(value: &Value) -> Result<&Vec<Value>> {
    value.as_sequence().context("a list is missing")
}

fn text(value: &Value) -> Result<&str> {
    value.as_str().context("a string is missing")
}
