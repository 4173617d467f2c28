//! Reads single records, and shows items as JSON.

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::types::AttributeValue;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Number, Value, json};
use workspace_management::store::{Item, Table};

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

/// An item as JSON. The service stores no binary data and no sets: bytes that another program has
/// written become base64, and sets become arrays.
pub(crate) fn to_json(item: Item) -> Value {
    let attributes = item.into_iter();
    attributes
        .map(|(name, value)| (name, attribute(value)))
        .collect()
}

fn attribute(value: AttributeValue) -> Value {
    match value {
        AttributeValue::S(text) => json!(text),
        AttributeValue::N(number) => {
            // A number that JSON cannot contain, such as one with 38 digits, stays text.
            let parsed: Option<Number> = number.parse().ok();
            parsed.map_or_else(|| json!(number), Value::Number)
        }
        AttributeValue::Bool(flag) => json!(flag),
        AttributeValue::L(list) => list.into_iter().map(attribute).collect(),
        AttributeValue::M(map) => to_json(map),
        AttributeValue::Ss(texts) | AttributeValue::Ns(texts) => json!(texts),
        AttributeValue::B(bytes) => json!(STANDARD.encode(bytes)),
        AttributeValue::Bs(list) => {
            let list = list.into_iter();
            list.map(|bytes| STANDARD.encode(bytes)).collect()
        }
        _ => Value::Null,
    }
}

/// Whether a record has an attribute. One that is null, which only other programs write, counts.
pub(crate) fn has(record: &Value, name: &str) -> bool {
    record.get(name).is_some()
}

/// The text of an attribute, or an empty one.
pub(crate) fn text_of<'a>(record: &'a Value, name: &str) -> &'a str {
    record[name].as_str().unwrap_or_default()
}

/// The values of a record's primary key.
pub(crate) fn key(table: Table, record: &Value) -> Vec<&str> {
    let names = table.primary_key.iter();
    names.map(|name| text_of(record, name)).collect()
}

/// The values of a record's primary key, for a collection that outlives the record.
pub(crate) fn owned_key(table: Table, record: &Value) -> Vec<String> {
    let values = key(table, record).into_iter();
    values.map(str::to_owned).collect()
}
