//! `docs/records/` describes the records. Every test validates those that it stores; here are the
//! tests of the schemas themselves. `ctl/tests/cli/records.rs` checks that no attribute is missing.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use workspace_local::{fixtures, schemas};
use workspace_management::store::Table;

/// The tables, each with its schema and a record that has every attribute.
fn examples() -> impl Iterator<Item = (Table, &'static Value, Value)> {
    schemas::tables().map(|table| {
        let schema = schemas::schema(table).unwrap();
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

#[test]
fn every_attribute_is_described_with_its_role_and_an_example() {
    let mut checked = 0;
    for (table, schema, record) in examples() {
        for (name, attribute) in schema["properties"].as_object().unwrap() {
            let case = format!("{}: {name}", table.noun);
            let role = attribute["x-role"].as_str().unwrap();
            let roles = ["key", "content", "audit", "internal"];
            assert!(roles.contains(&role), "{case}");
            assert!(attribute["description"].is_string(), "{case}");
            let examples = attribute["examples"].as_array().unwrap();
            assert!(!examples.is_empty(), "{case}");
            for example in examples {
                let mut record = record.clone();
                record[name] = example.clone();
                assert_eq!(schemas::errors(table, &record), [""; 0], "{case}");
            }
            checked += 1;
        }
    }
    assert!(checked > 50, "{checked}");
}

#[test]
fn the_fixtures_of_tests_are_valid() {
    let mut marked = fixtures::team("acme", "apollo", "docs", "Docs");
    marked["removing_id"] = json!(fixtures::RANDOM_ID);
    for (table, record) in [
        (Table::ORGANIZATIONS, fixtures::organization("acme")),
        (
            Table::ORGANIZATIONS,
            fixtures::disabled_organization("acme"),
        ),
        (Table::TEAMS, marked),
        (
            Table::TEAM_MEMBERS,
            fixtures::member("acme", "apollo", "docs", "ada"),
        ),
        (Table::MODELS, fixtures::model("acme", "chat", "gpt-4o")),
        (Table::BOT_VOICES, fixtures::bot_voice("acme", "bot-7")),
        (
            Table::DATA_STORES,
            fixtures::data_store("acme", "papers", "Papers"),
        ),
        (
            Table::LOGGING_INSTANCES,
            fixtures::logging_instance("acme", "apollo"),
        ),
    ] {
        assert_eq!(schemas::errors(table, &record), [""; 0]);
    }
}
