//! The tables as `template.yaml` declares them.

use std::sync::LazyLock;

use anyhow::{Context as _, Result, anyhow};
use serde::Deserialize;
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
