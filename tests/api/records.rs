//! `records/schemas/` describes the records. Every test validates those that it stores; here are the
//! tests of the schemas themselves. `ctl/tests/cli/schemas.rs` checks that no attribute is missing.

use std::collections::BTreeSet;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use test_support::{TestApp, operation_event};
use workspace_management::{operations::Operation, store::Table};
use workspace_records::schemas;

use crate::operations::{Sample, Values};

/// The tables, each with its schema and a record that has every attribute.
fn examples() -> impl Iterator<Item = (Table, &'static Value, Value)> {
    schemas::tables().map(|table| {
        let schema = schemas::schema(table);
        let attributes = schema["properties"].as_object().unwrap().iter();
        let example = |attribute: &Value| attribute["examples"][0].clone();
        let record = attributes.map(|(name, attribute)| (name.clone(), example(attribute)));
        (table, schema, record.collect())
    })
}

#[test]
fn a_record_of_the_examples_is_valid_and_one_with_another_attribute_is_not() {
    for (table, _, mut record) in examples() {
        assert_eq!(schemas::errors(table, &record), [""; 0]);
        record["colour"] = json!("red");
        let errors = schemas::errors(table, &record);
        assert!(errors[0].contains("/colour"), "{errors:?}");
    }
}

#[test]
fn a_record_without_a_required_attribute_or_with_another_type_is_invalid() {
    for (table, schema, record) in examples() {
        let required = schema["required"].as_array().unwrap();
        for name in required {
            let mut changed = record.clone();
            let attributes = changed.as_object_mut().unwrap();
            attributes.remove(name.as_str().unwrap()).unwrap();
            let case = format!("{}: {name}", table.noun);
            assert!(!schemas::errors(table, &changed).is_empty(), "{case}");
        }
        let required: BTreeSet<_> = required.iter().map(|name| name.as_str().unwrap()).collect();
        let attributes = schema["properties"].as_object().unwrap().iter();
        let keys = attributes.filter(|(_, attribute)| attribute["x-role"] == "key");
        let keys = keys.map(|(name, _)| name.as_str());
        let expected: BTreeSet<_> = keys.chain(["created_at"]).collect();
        assert_eq!(required, expected, "{}", table.noun);
        for (name, value) in record.as_object().unwrap() {
            for other in [
                json!("x".repeat(3000)),
                json!(i64::MIN),
                json!(null),
                json!(["x"]),
            ] {
                let mut changed = record.clone();
                changed[name] = other.clone();
                let case = format!("{}: {name} = {other} instead of {value}", table.noun);
                assert!(!schemas::errors(table, &changed).is_empty(), "{case}");
            }
        }
    }
}

/// The parameters in the path of an operation's event, and the fields of its body. Of an array,
/// those of the first entry.
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

/// The attribute and its role in the row of a field in `docs/records.md`.
fn field_row(field: &str, kind: &str) -> Option<(&'static str, &'static str)> {
    let (field, kind) = (format!("`{field}`"), format!("`{kind}`"));
    let documentation = include_str!("../../docs/records.md");
    documentation.lines().find_map(|line| {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let [_, name, kinds, attribute, role, _] = cells[..] else {
            return None;
        };
        (name == field && kinds.contains(&kind)).then_some((attribute, role))
    })
}

#[tokio::test]
async fn the_documentation_says_where_each_field_of_a_request_is_stored() {
    let app = TestApp::new().await;
    app.insert_demo_key().await;

    for operation in Operation::ALL {
        let event = operation_event(*operation);
        app.send(event.clone()).await.assert_success();
        let table = Sample::of(*operation, &Values::example()).records[0].table;
        let schema = schemas::schema(table);
        let kind = schema["$id"].as_str().unwrap().rsplit(':').next().unwrap();
        let mut stored = app.records(table).await;
        for (field, value) in sent_fields(&event) {
            let row = field_row(&field, kind);
            let (attribute, role) = row.unwrap_or_else(|| panic!("no row for {field} of a {kind}"));
            let attribute = attribute.split('`').nth(1).unwrap();
            stored.retain(|record| record[attribute] == value);
            assert!(!stored.is_empty(), "no {kind} has the {attribute} {value}");
            let expected = schema["properties"][attribute]["x-role"].as_str().unwrap();
            assert_eq!(role.split('`').nth(1), Some(expected), "{kind}: {field}");
        }
    }
}
