//! The schemas of records, against which tests and `workspacectl restore` validate every record.

use std::sync::OnceLock;

use jsonschema::{Validator, error::ValidationErrorKind};
use serde_json::Value;
use workspace_management::store::Table;

/// The tables whose records have a schema for readers: all but that of API keys.
pub fn tables() -> impl Iterator<Item = Table> {
    let tables = Table::ALL.iter().copied();
    tables.filter(|table| *table != Table::KEYS)
}

/// The text of the schema of a table's records, if there is one.
pub fn text(table: Table) -> Option<&'static str> {
    Some(match table {
        Table::ORGANIZATIONS => include_str!("../schemas/organization.schema.json"),
        Table::KEYS => include_str!("../schemas/api_key.schema.json"),
        Table::MODELS => include_str!("../schemas/model.schema.json"),
        Table::TEAMS => include_str!("../schemas/team.schema.json"),
        Table::TEAM_MEMBERS => include_str!("../schemas/team_member.schema.json"),
        Table::BOT_VOICES => include_str!("../schemas/bot_voice.schema.json"),
        Table::DATA_STORES => include_str!("../schemas/data_store.schema.json"),
        Table::LOGGING_INSTANCES => include_str!("../schemas/logging_instance.schema.json"),
        _ => return None,
    })
}

/// The schema of a table's records.
///
/// # Panics
/// If there is none, or it is invalid.
pub fn schema(table: Table) -> &'static Value {
    &parsed(table).0
}

/// A record of the organization `acme`, as an operation creates it: with the first example of each
/// attribute of its key, its content and its creation. `None` for API keys.
pub fn example(table: Table) -> Option<Value> {
    if table == Table::KEYS {
        return None;
    }
    let attributes = schema(table)["properties"].as_object()?.iter();
    let is_created = |name: &str, role: &Value| {
        let of_creation = ["created_at", "created_by", "request_id"];
        role == "key" || role == "content" || of_creation.contains(&name)
    };
    let attributes = attributes.filter(|(name, attribute)| is_created(name, &attribute["x-role"]));
    let examples =
        attributes.map(|(name, attribute)| (name.clone(), attribute["examples"][0].clone()));
    Some(examples.collect())
}

/// What is wrong with a record of the current version: which rules of the schema it violates, and
/// which of its attributes the schema lacks. Readers must accept such attributes, but the current
/// version stores none. Empty for an API key.
pub fn errors(table: Table, record: &Value) -> Vec<String> {
    if table == Table::KEYS {
        return vec![];
    }
    let (schema, validator) = parsed(table);
    let invalid = validator.iter_errors(record);
    let invalid = invalid.map(|error| format!("{}: {error}", error.instance_path()));
    let undescribed =
        undescribed(schema, record).map(|name| format!("/{name}: the schema lacks this attribute"));
    let errors = invalid.chain(undescribed);
    let errors = errors.chain(contradiction(table, record));
    errors
        .map(|error| format!("{}: {error}: {record}", table.noun))
        .collect()
}

/// The first error of a record in words for operators, which can contain unescaped text of the
/// record. Also of an API key, which can have further attributes.
pub fn violation(table: Table, record: &Value) -> Option<String> {
    let (schema, validator) = parsed(table);
    let undescribed = undescribed(schema, record).next();
    if let Some(name) = undescribed.filter(|_| table != Table::KEYS) {
        return Some(format!("its attribute {name} is not in the schema"));
    }
    let Some(error) = validator.iter_errors(record).next() else {
        return contradiction(table, record);
    };
    if let ValidationErrorKind::Required { property } = error.kind() {
        return Some(format!("it has no {}", property.as_str().unwrap_or("key")));
    }
    let name = error.instance_path().to_string();
    let value: String = error.instance().to_string().chars().take(80).collect();
    let name = name.trim_start_matches('/');
    Some(format!(
        "its {name} is {value}, which the schema does not allow"
    ))
}

/// Which attribute of the primary key is not joined from the ids that the record has besides.
fn contradiction(table: Table, record: &Value) -> Option<String> {
    let (name, ids) = match (table, table.partition) {
        (Table::MODELS, _) => ("model", &["model_type", "model_id"][..]),
        (_, [_, _]) => (table.primary_key[0], &["org_id", "project_id"][..]),
        (_, [_, _, _]) => (
            table.primary_key[0],
            &["org_id", "project_id", "team_id"][..],
        ),
        _ => return None,
    };
    let values: Vec<_> = ids.iter().filter_map(|id| record[*id].as_str()).collect();
    let (key, joined) = (record[name].as_str()?, values.join("#"));
    let ids = ids.join(" and ");
    (key != joined).then(|| format!("its {name} is {key}, but its {ids} make {joined}"))
}

/// The attributes of a record that its schema lacks.
fn undescribed<'a>(schema: &'a Value, record: &'a Value) -> impl Iterator<Item = &'a String> {
    let names = record.as_object().into_iter().flatten();
    let names = names.map(|(name, _)| name);
    names.filter(|name| schema["properties"][name.as_str()].is_null())
}

/// The schema of a table's records, and its validator.
///
/// # Panics
/// If there is none, or it is invalid.
fn parsed(table: Table) -> &'static (Value, Validator) {
    const COUNT: usize = Table::ALL.len();
    static PARSED: [OnceLock<(Value, Validator)>; COUNT] = [const { OnceLock::new() }; COUNT];
    let index = Table::ALL.iter().position(|other| *other == table);
    PARSED[index.expect("the table is in Table::ALL")].get_or_init(|| {
        let text = text(table).unwrap_or_else(|| panic!("add the schema of {}", table.noun));
        let schema = serde_json::from_str(text)
            .unwrap_or_else(|error| panic!("the schema of {} is not JSON: {error}", table.noun));
        let validator = jsonschema::draft202012::meta::validate(&schema)
            .and_then(|()| jsonschema::draft202012::new(&schema))
            .unwrap_or_else(|error| panic!("the schema of {} is invalid: {error}", table.noun));
        (schema, validator)
    })
}
