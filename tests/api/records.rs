//! Tests of `tools/records/records.schema.json`. `TestApp::all_records` checks records against it.
//! `tools/workspacectl/tests/cli/schemas.rs` checks that no attribute is missing.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use test_support::{TestApp, operation_event};
use workspace_management::{operations::Operation, records::Table};
use workspace_records::{contract::Description, kinds::Kind, schemas};
use yaml_serde::Value as Schema;

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
        let kind = Kind::of(table).plural;
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

/// The path parameters and the fields of the body in the contract's example. If the body has an
/// array, the fields are those of the first entry.
fn sent_fields(operation: Operation) -> Vec<(String, Value)> {
    let description = Description::of(operation);
    let body = json!(description.body()["example"]);
    let entry = body.as_object().unwrap().values().find_map(Value::as_array);
    let fields = entry.map_or(&body, |entries| &entries[0]);
    let fields = fields.as_object().unwrap().clone();
    let parameters = description.path_parameters().into_iter();
    let name = |parameter: &Schema| format!("{{{}}}", parameter["name"].as_str().unwrap());
    parameters
        .map(|parameter| (name(parameter), json!(parameter["example"])))
        .chain(fields)
        .collect()
}

/// The attribute in which a field is stored, according to `docs/records.md`.
fn documented_attribute(field: &str, kind: &str) -> Option<&'static str> {
    let rows = include_str!("../../docs/records.md").lines();
    let mut rows = rows.filter_map(|row| row.strip_prefix(&format!("| `{field}` | ")));
    let row = rows.find(|row| row.contains(&format!("`{kind}`")))?;
    let (_, attribute) = row.split_once(" | `")?;
    attribute.split('`').next()
}

#[tokio::test]
async fn the_documentation_says_in_which_attribute_each_field_is_stored() {
    let app = TestApp::new().await;
    for operation in Operation::ALL {
        app.send(operation_event(*operation)).await.assert_success();
        let table = Sample::example(*operation).records[0].table;
        let kind = Kind::of(table).definition;
        let mut stored = app.records(table).await;
        for (field, value) in sent_fields(*operation) {
            let attribute = documented_attribute(&field, kind);
            let attribute = attribute.unwrap_or_else(|| panic!("no row for {field} of a {kind}"));
            stored.retain(|record| record[attribute] == value);
            assert!(!stored.is_empty(), "no {kind} has the {attribute} {value}");
            let role = &schemas::schema(table)["properties"][attribute]["x-role"];
            let is_from_client = role == "key" || role == "content";
            assert!(is_from_client, "{kind}: {attribute} has the x-role {role}");
        }
    }
}
