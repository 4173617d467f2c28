//! Items as JSON, their primary keys, and the records of new API keys.

use serde_json::{Value, json};
use workspace_management::{
    api_key::ApiKey,
    records::{ApiKeyRecord, Table},
    store::Item,
};

/// Converts an item to JSON. Sets become arrays, and binary data becomes `"(binary data)"`. The
/// service stores neither, but a different program can.
pub fn to_json(item: Item) -> Value {
    let mut record = json!({});
    for (name, attribute) in item {
        let value = serde_dynamo::from_attribute_value(attribute);
        record[name] = value.unwrap_or_else(|_| json!("(binary data)"));
    }
    record
}

/// The value of a string attribute. Empty if the attribute is missing or is not a string.
pub fn string_attribute<'a>(record: &'a Value, name: &str) -> &'a str {
    record[name].as_str().unwrap_or_default()
}

/// The values of the attributes of a record's primary key.
pub fn primary_key_values(table: Table, record: &Value) -> Vec<String> {
    let mut values = Vec::new();
    for name in table.primary_key_attributes {
        values.push(string_attribute(record, name).to_owned());
    }
    values
}

/// The record of a new API key that does not expire and may call every operation. `None` if `key` is
/// malformed. `registration_id` is the `request_id` of the organization's record.
pub fn new_key_record(
    key: &str,
    org_id: &str,
    registration_id: &str,
    label: &str,
    created_at: &str,
) -> Option<ApiKeyRecord> {
    let parsed = ApiKey::parse(key)?;
    Some(ApiKeyRecord {
        key_id: parsed.id.to_owned(),
        org_id: org_id.to_owned(),
        registration_id: Some(registration_id.to_owned()),
        label: label.to_owned(),
        secret_sha256: parsed.secret_sha256(),
        last_four: Some(key[key.len() - 4..].to_owned()),
        created_at: created_at.to_owned(),
        ..ApiKeyRecord::default()
    })
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::{primitives::Blob, types::AttributeValue};

    use super::*;

    #[test]
    fn sets_become_arrays_and_binary_data_becomes_a_note() {
        let texts = AttributeValue::Ss(vec!["a".to_owned()]);
        let bytes = AttributeValue::B(Blob::new("ab"));
        let item = [("texts".to_owned(), texts), ("bytes".to_owned(), bytes)];
        let expected = json!({ "texts": ["a"], "bytes": "(binary data)" });
        assert_eq!(to_json(item.into()), expected);
    }
}
