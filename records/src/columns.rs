//! Which attributes a list of records shows, and in which order.

use std::collections::BTreeSet;

use serde_json::Value;
use workspace_management::store::Table;

/// The columns that come last, if a record has them.
const AUDIT_COLUMNS: [&str; 4] = ["created_at", "created_by", "updated_at", "updated_by"];

/// The tables whose records the operations store. Organizations and API keys have their own commands.
pub fn kinds() -> impl Iterator<Item = Table> {
    let tables = Table::ALL.iter().copied();
    tables.filter(|table| ![Table::ORGANIZATIONS, Table::KEYS].contains(table))
}

/// The attributes that identify a record that can be listed: those of its key, or, where the key joins
/// several values, the attributes with these values.
pub fn key_columns(table: Table) -> Vec<&'static str> {
    let ids = ["org_id", "project_id", "team_id"];
    let sort_key = match table {
        Table::MODELS => &["model_type", "model_id"],
        _ => &table.primary_key[1..],
    };
    [&ids[..table.partition.len()], sort_key].concat()
}

/// The columns of a table of records: the key, then the content, then the audit attributes.
pub fn columns<'a>(table: Table, records: impl IntoIterator<Item = &'a Value>) -> Vec<&'a str> {
    let attributes: BTreeSet<&str> = records
        .into_iter()
        .filter_map(Value::as_object)
        .flat_map(|record| record.keys().map(String::as_str))
        .collect();
    let key = key_columns(table);
    let content = attributes.iter().copied().filter(|name| {
        !table.primary_key.contains(name)
            && !key.contains(name)
            && !AUDIT_COLUMNS.contains(name)
            && !name.ends_with("request_id")
    });
    let audit = AUDIT_COLUMNS
        .into_iter()
        .filter(|name| attributes.contains(name));
    key.iter().copied().chain(content).chain(audit).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_show_the_key_then_the_content_then_the_audit_attributes() {
        let records = [
            json!({ "bot_id": "b", "org_id": "o", "type": "t", "enabled": true, "created_by": "c",
                "created_at": "d", "request_id": "r" }),
            json!({ "bot_id": "b", "org_id": "o", "updated_by": "u", "updated_request_id": "r" }),
        ];
        let expected = "org_id bot_id enabled type created_at created_by updated_by";
        let columns_of_both = columns(Table::BOT_VOICES, &records);
        assert_eq!(columns_of_both.join(" "), expected);
        assert_eq!(columns(Table::BOT_VOICES, &[]), ["org_id", "bot_id"]);
    }
}
