//! What identifies a record, and whether the service could have stored it.

use serde_json::Value;
use workspace_management::store::Table;
use workspace_records::schemas;

use crate::records::text_of;

/// The maximum size of a record in DynamoDB: 400 KB.
pub(super) const MAX_SIZE: usize = 400 * 1024;

/// The size of a record as JSON, which is at least its size in DynamoDB.
pub(super) fn size(record: &Value) -> usize {
    record.to_string().len()
}

/// The organization in the key of a record. Of an API key, the one that it belongs to.
pub(super) fn organization(table: Table, record: &Value) -> &str {
    let name = match table {
        Table::KEYS => "org_id",
        _ => table.primary_key[0],
    };
    let ids = text_of(record, name).split('#').next();
    ids.unwrap_or_default()
}

/// What is wrong with a record. One that is too large needs only a key, because it is skipped.
pub(super) fn violation(table: Table, record: &Value) -> Option<String> {
    let mut key = table.primary_key.iter();
    let has_key = key.all(|name| record[*name].is_string());
    match has_key && size(record) > MAX_SIZE {
        true => None,
        false => schemas::violation(table, record),
    }
}
