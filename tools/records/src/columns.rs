//! Which attributes a list of records shows, and in which order.

use std::collections::BTreeSet;

use serde_json::Value;
use workspace_management::records::Table;

use crate::kinds::Kind;

/// The attributes that come last, if a record has them.
const AUDIT_COLUMNS: [&str; 4] = ["created_at", "created_by", "updated_at", "updated_by"];

/// The attributes that identify a record of one of these tables: the attributes of its primary key.
/// Where the primary key joins several ids, the attributes with these ids instead.
pub fn key_columns(table: Table) -> Vec<&'static str> {
    let ids = ["org_id", "project_id", "team_id"];
    let sort_key = match table {
        Table::MODELS => &["model_type", "model_id"],
        _ => &table.primary_key_attributes[1..],
    };
    [&ids[..Kind::of(table).partition_key_parts.len()], sort_key].concat()
}

/// The columns of a list of records: the identifying attributes, the content, the audit attributes.
pub fn columns<'a>(table: Table, records: impl IntoIterator<Item = &'a Value>) -> Vec<&'a str> {
    let attributes: BTreeSet<&str> = records
        .into_iter()
        .filter_map(Value::as_object)
        .flat_map(|record| record.keys().map(String::as_str))
        .collect();
    let mut names = key_columns(table);
    for name in &attributes {
        if !table.primary_key_attributes.contains(name)
            && !names.contains(name)
            && !AUDIT_COLUMNS.contains(name)
            && !name.ends_with("request_id")
        {
            names.push(name);
        }
    }
    for name in AUDIT_COLUMNS {
        if attributes.contains(name) {
            names.push(name);
        }
    }
    names
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
        assert_eq!(columns(Table::BOT_VOICES, &records).join(" "), expected);
        assert_eq!(columns(Table::BOT_VOICES, &[]), ["org_id", "bot_id"]);
    }
}
