//! Tests of `tools/records/records.schema.json`. `TestApp::all_records` checks records against it.
//! `tools/workspacectl/tests/cli/schemas.rs` checks that no attribute is missing.

use std::collections::BTreeSet;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use test_support::{TestApp, operation_event};
use workspace_management::{operations::Operation, store::Table};
use workspace_records::schemas;

use crate::operations::Sample;

/// A record that has every attribute of the schema, with the examples in the schema as values.
fn full_record(table: Table) -> Value {
    let mut record = json!({});
    for (name, attribute) in schemas::schema(table)["properties"].as_object().unwrap() {
        record[name] = attribute["examples"][0].clone();
    }
    record
}

#[test]
fn only_a_record_with_the_required_and_known_attributes_and_right_values_is_valid() {
    for table in schemas::tables() {
        let kind = table.record_kind;
        let schema = schemas::schema(table);
        let record = full_record(table);
        assert_eq!(schemas::errors(table, &record), [""; 0]);
        let mut required = BTreeSet::new();
        for name in schema["required"].as_array().unwrap() {
            let name = name.as_str().unwrap();
            required.insert(name);
            let mut changed = record.clone();
            changed.as_object_mut().unwrap().remove(name).unwrap();
            let is_invalid = !schemas::errors(table, &changed).is_empty();
            assert!(is_invalid, "{kind} without {name}");
        }
        let mut expected = BTreeSet::from(["created_at"]);
        for (name, attribute) in schema["properties"].as_object().unwrap() {
            if attribute["x-role"] == "key" {
                expected.insert(name);
            }
        }
        assert_eq!(required, expected, "{kind}");
        let names = record.as_object().unwrap().keys().map(String::as_str);
        for name in names.chain(["unknown"]) {
            for wrong in [
                json!("x".repeat(3000)),
                json!(i64::MIN),
                json!(null),
                json!(["x"]),
            ] {
                let mut changed = record.clone();
                changed[name] = wrong.clone();
                let is_invalid = !schemas::errors(table, &changed).is_empty();
                assert!(is_invalid, "{kind}: {name} = {wrong}");
            }
        }
    }
}

/// The path parameters and the fields of the body in an operation's event. If the body has an
/// array, the fields are those of the first entry.
fn sent_fields(event: &Value) -> Vec<(String, Value)> {
    let body = STANDARD.decode(event["body"].as_str().unwrap()).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let entry = body.as_object().unwrap().values().find_map(Value::as_array);
    let fields = entry.map_or(&body, |entries| &entries[0]);
    let fields = fields.as_object().unwrap().clone();
    let parameters = event["pathParameters"].as_object().unwrap().iter();
    parameters
        .map(|(name, value)| (format!("{{{name}}}"), value.clone()))
        .chain(fields)
        .collect()
}

/// The attribute in which a field is stored, and the role of the attribute, according to the row of
/// the field in `docs/records.md`. A path parameter is in braces.
fn field_row(field: &str, kind: &str) -> Option<(&'static str, &'static str)> {
    let field = format!("`{field}`");
    let kind = format!("`{kind}`");
    for line in include_str!("../../docs/records.md").lines() {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        if let [_, name, kinds, attribute, role, _] = cells[..]
            && name == field
            && kinds.contains(&kind)
        {
            return Some((attribute, role));
        }
    }
    None
}

#[tokio::test]
async fn the_documentation_says_in_which_attribute_each_field_is_stored() {
    let app = TestApp::new().await;
    app.insert_demo_key().await;

    for operation in Operation::ALL {
        let event = operation_event(*operation);
        app.send(event.clone()).await.assert_success();
        let table = Sample::example(*operation).records[0].table;
        let schema = schemas::schema(table);
        let kind = schemas::kind(table);
        let mut stored = app.records(table).await;
        for (field, value) in sent_fields(&event) {
            let row = field_row(&field, &kind);
            let (attribute, role) = row.unwrap_or_else(|| panic!("no row for {field} of a {kind}"));
            let attribute = attribute.split('`').nth(1).unwrap();
            stored.retain(|record| record[attribute] == value);
            assert!(!stored.is_empty(), "no {kind} has the {attribute} {value}");
            let expected = schema["properties"][attribute]["x-role"].as_str().unwrap();
            assert_eq!(role.split('`').nth(1), Some(expected), "{kind}: {field}");
        }
    }
}
