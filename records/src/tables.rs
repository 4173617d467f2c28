//! The tables as `template.yaml` declares them.

use std::sync::LazyLock;

use anyhow::{Context as _, Result, anyhow};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, GlobalSecondaryIndex, KeySchemaElement, Projection, StreamSpecification,
};
use workspace_management::store::Table;
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

/// The part of a table's declaration in `template.yaml` that determines what can be read from it.
#[derive(Debug)]
pub struct Declaration {
    /// The types of the attributes that a key of the table or of an index contains.
    pub attribute_definitions: Vec<AttributeDefinition>,
    /// The partition key, then the sort key if the table has one.
    pub key_schema: Vec<KeySchemaElement>,
    /// The indexes.
    pub global_secondary_indexes: Vec<GlobalSecondaryIndex>,
    /// The change stream, if the table has one.
    pub stream_specification: Option<StreamSpecification>,
}

impl Declaration {
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
        let attribute = |attribute: &Value| {
            let attribute_type = text(&attribute["AttributeType"])?;
            let attribute = AttributeDefinition::builder()
                .attribute_name(text(&attribute["AttributeName"])?)
                .attribute_type(attribute_type.into());
            Ok(attribute.build()?)
        };
        let index = |index: &Value| {
            let projection_type = text(&index["Projection"]["ProjectionType"])?;
            let projection = Projection::builder().projection_type(projection_type.into());
            let index = GlobalSecondaryIndex::builder()
                .index_name(text(&index["IndexName"])?)
                .set_key_schema(Some(read_key(&index["KeySchema"])?))
                .projection(projection.build());
            Ok(index.build()?)
        };
        let stream = |stream: &Value| {
            let stream = StreamSpecification::builder()
                .stream_enabled(true)
                .stream_view_type(text(&stream["StreamViewType"])?.into());
            anyhow::Ok(stream.build()?)
        };
        Ok(Self {
            attribute_definitions: read_all(&properties["AttributeDefinitions"], attribute)?,
            key_schema: read_key(&properties["KeySchema"])?,
            global_secondary_indexes: match properties.get("GlobalSecondaryIndexes") {
                Some(indexes) => read_all(indexes, index)?,
                None => vec![],
            },
            stream_specification: properties
                .get("StreamSpecification")
                .map(stream)
                .transpose()?,
        })
    }
}

fn read_key(value: &Value) -> Result<Vec<KeySchemaElement>> {
    read_all(value, |part| {
        let part = KeySchemaElement::builder()
            .attribute_name(text(&part["AttributeName"])?)
            .key_type(text(&part["KeyType"])?.into());
        Ok(part.build()?)
    })
}

fn read_all<T>(values: &Value, read: impl Fn(&Value) -> Result<T>) -> Result<Vec<T>> {
    let values = values.as_sequence().context("a list is missing")?;
    values.iter().map(read).collect()
}

fn text(value: &Value) -> Result<&str> {
    value.as_str().context("a text is missing")
}
