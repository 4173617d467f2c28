//! `docs/records/` describes every record that the operations store.

use std::collections::BTreeSet;

use jsonschema::Validator;
use serde_json::{Value, json};
use workspace_management::{operation::Operation, store::Table};

use crate::{
    operations::{Sample, Values},
    support::{TestApp, operation_event},
};

/// The schema of a table's records.
fn schema(table: Table) -> Value {
    let text = match table {
        Table::ORGANIZATIONS => include_str!("../../docs/records/organization.schema.json"),
        Table::MODELS => include_str!("../../docs/records/model.schema.json"),
        Table::TEAMS => include_str!("../../docs/records/team.schema.json"),
        Table::TEAM_MEMBERS => include_str!("../../docs/records/team_member.schema.json"),
        Table::BOT_VOICES => include_str!("../../docs/records/bot_voice.schema.json"),
        Table::DATA_STORES => include_str!("../../docs/records/data_store.schema.json"),
        Table::LOGGING_INSTANCES => include_str!("../../docs/records/logging_instance.schema.json"),
        other => panic!("{} have no schema", other.name),
    };
    serde_json::from_str(text).unwrap()
}

fn validator(table: Table) -> Validator {
    let schema = schema(table);
    jsonschema::draft202012::meta::validate(&schema).unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
}

/// A record of every kind that the operations store. The voice has changed.
async fn records() -> Vec<(Table, Value)> {
    let app = TestApp::new().await;
    app.insert_demo_key().await;
    for operation in Operation::ALL {
        app.send(operation_event(*operation)).await.assert_success();
    }
    let client = app.client_with_new_key("acme").await;
    let values = Values {
        flag: !Values::example().flag,
        ..Values::example()
    };
    let sample = Sample::of(Operation::SetBotVoice, &values);
    client
        .post(&sample.path, sample.body)
        .await
        .assert_success();
    let mut records = Vec::new();
    for table in crate::support::written_tables() {
        let found = app.records(table).await;
        assert!(!found.is_empty(), "{}", table.name);
        records.extend(found.into_iter().map(|record| (table, record)));
    }
    records
}

#[tokio::test]
async fn every_record_of_an_operation_validates() {
    for (table, record) in records().await {
        let errors: Vec<_> = validator(table)
            .iter_errors(&record)
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{}: {record}: {errors:?}", table.name);
    }
}

/// An attribute that the code stores is described, and one that only an operation can store is
/// stored. The others are those of `workspacectl`.
#[tokio::test]
async fn the_schemas_have_exactly_the_attributes_of_the_records() {
    const MARKS: [&str; 9] = [
        "restored_at",
        "restored_by",
        "restored_request_id",
        "removing_at",
        "removing_by",
        "removing_id",
        "erasing_at",
        "erasing_by",
        "erasing_id",
    ];
    let records = records().await;
    for table in crate::support::written_tables() {
        let of_table = records.iter().filter(|(other, _)| *other == table);
        let stored: BTreeSet<String> = of_table
            .flat_map(|(_, record)| record.as_object().unwrap().keys().cloned())
            .collect();
        let schema = schema(table);
        let described = schema["properties"].as_object().unwrap().keys();
        let described: BTreeSet<String> = described
            .filter(|name| !MARKS.contains(&name.as_str()))
            .cloned()
            .collect();
        assert_eq!(stored, described, "{}", table.name);
    }
}

#[tokio::test]
async fn a_record_without_a_required_attribute_or_with_another_type_is_invalid() {
    for (table, record) in records().await {
        let validator = validator(table);
        let schema = schema(table);
        for name in schema["required"].as_array().unwrap() {
            let mut changed = record.clone();
            changed
                .as_object_mut()
                .unwrap()
                .remove(name.as_str().unwrap());
            assert!(!validator.is_valid(&changed), "{}: {name}", table.name);
        }
        for name in record.as_object().unwrap().keys() {
            let mut changed = record.clone();
            changed[name] = json!(["x"]);
            assert!(!validator.is_valid(&changed), "{}: {name}", table.name);
        }
    }
}

#[test]
fn every_attribute_is_described_with_its_role_and_an_example() {
    let mut checked = 0;
    for table in crate::support::written_tables().chain([Table::ORGANIZATIONS]) {
        let schema = schema(table);
        for (name, attribute) in schema["properties"].as_object().unwrap() {
            let case = format!("{}: {name}", table.name);
            let role = attribute["x-role"].as_str().unwrap();
            assert!(
                ["key", "content", "audit", "internal"].contains(&role),
                "{case}"
            );
            assert!(attribute["description"].is_string(), "{case}");
            assert!(
                !attribute["examples"].as_array().unwrap().is_empty(),
                "{case}"
            );
            checked += 1;
        }
        for name in table.key.iter().chain(&["created_at"]) {
            let required = schema["required"].as_array().unwrap();
            assert!(required.contains(&json!(name)), "{}: {name}", table.name);
        }
    }
    assert!(checked > 50, "{checked}");
}
