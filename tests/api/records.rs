//! Tests of `tools/records/records.schema.json`. `TestApp::all_records` checks records against it.
//! `tools/workspacectl/tests/cli/schemas.rs` checks that no attribute is missing.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use workspace_management::records::Table;
use workspace_records::{kinds::Kind, schemas};

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
