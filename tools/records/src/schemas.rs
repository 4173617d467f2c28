//! The JSON Schemas of records. Tests and `workspacectl restore` validate every record with them.

use std::sync::OnceLock;

use anyhow::Result;
use jsonschema::{Validator, error::ValidationErrorKind};
use serde_json::{Value, json};
use workspace_management::records::Table;

use crate::kinds::{ALL_TABLES, Kind};

/// The tables whose records have a public schema: all except for the table of API keys.
pub fn tables() -> impl Iterator<Item = Table> {
    Table::ALL
        .iter()
        .copied()
        .filter(|table| *table != Table::API_KEYS)
}

/// The schema of a table's records. Each attribute has the keywords of the definition to which it
/// refers.
///
/// # Panics
/// If the table has no schema, or the schema is invalid.
pub fn schema(table: Table) -> &'static Value {
    &parsed(table).0
}

/// An example of a new record of the organization `acme`: the first example in the schema of each
/// attribute that an operation writes. `None` for API keys.
pub fn example(table: Table) -> Option<Value> {
    if table == Table::API_KEYS {
        return None;
    }
    let mut record = json!({});
    for (name, attribute) in schema(table)["properties"].as_object()? {
        let is_creation = matches!(name.as_str(), "created_at" | "created_by" | "request_id");
        if is_creation || attribute["x-role"] == "key" || attribute["x-role"] == "content" {
            record[name] = attribute["examples"][0].clone();
        }
    }
    Some(record)
}

/// All errors of a record that this version stored: violated rules of the schema, and attributes
/// that are not in the schema. Readers must accept such attributes, but this version stores none.
/// Empty for an API key.
pub fn errors(table: Table, record: &Value) -> Vec<String> {
    if table == Table::API_KEYS {
        return vec![];
    }
    let (schema, validator) = parsed(table);
    let mut errors = Vec::new();
    for error in validator.iter_errors(record) {
        errors.push(format!("{}: {error}", error.instance_path()));
    }
    for name in unknown_names(schema, record) {
        errors.push(format!("/{name}: the schema lacks this attribute"));
    }
    errors.extend(key_mismatch(table, record));
    for error in &mut errors {
        *error = format!("{}: {error}: {record}", Kind::of(table).plural);
    }
    errors
}

/// Describes the first error of a record to an operator. The description can contain unescaped text
/// of the record. Unlike [`errors`], checks API keys too, and allows them unknown attributes.
pub fn first_violation(table: Table, record: &Value) -> Option<String> {
    let (schema, validator) = parsed(table);
    if table != Table::API_KEYS
        && let Some(name) = unknown_names(schema, record).next()
    {
        return Some(format!("its attribute {name} is not in the schema"));
    }
    let Some(error) = validator.iter_errors(record).next() else {
        return key_mismatch(table, record);
    };
    if let ValidationErrorKind::Required { property } = error.kind() {
        return Some(format!("it has no {}", property.as_str().unwrap_or("key")));
    }
    let pointer = error.instance_path().to_string();
    let name = pointer.trim_start_matches('/');
    let value: String = error.instance().to_string().chars().take(80).collect();
    Some(format!("its {name} is {value}, which the schema forbids"))
}

/// What is wrong if an attribute of the primary key joins ids, and the record's attributes with
/// these ids have different values.
fn key_mismatch(table: Table, record: &Value) -> Option<String> {
    let (name, ids): (&str, &[&str]) = match table {
        Table::MODELS => ("model", &["model_type", "model_id"]),
        Table::TEAMS => ("project", &["org_id", "project_id"]),
        Table::TEAM_MEMBERS => ("team", &["org_id", "project_id", "team_id"]),
        _ => return None,
    };
    let values: Vec<_> = ids.iter().filter_map(|id| record[*id].as_str()).collect();
    let joined = values.join("#");
    let key = record[name].as_str()?;
    if key == joined {
        return None;
    }
    let ids = ids.join(" and ");
    Some(format!("its {name} is {key}, but its {ids} make {joined}"))
}

/// The names of the attributes of a record that its schema lacks.
fn unknown_names<'a>(schema: &'a Value, record: &'a Value) -> impl Iterator<Item = &'a String> {
    record
        .as_object()
        .into_iter()
        .flat_map(|attributes| attributes.keys())
        .filter(|name| schema["properties"].get(*name).is_none())
}

/// The schema of a table's records, and its validator.
///
/// # Panics
/// If the table has no schema, or the schema is invalid.
fn parsed(table: Table) -> &'static (Value, Validator) {
    static PARSED: [OnceLock<(Value, Validator)>; ALL_TABLES.len()] =
        [const { OnceLock::new() }; ALL_TABLES.len()];
    let index = ALL_TABLES.iter().position(|known| *known == table);
    PARSED[index.expect("a known table")]
        .get_or_init(|| parse(table).unwrap_or_else(|error| panic!("records.schema.json: {error}")))
}

/// Parses the schema of a table's records.
///
/// # Errors
/// If the table has no schema, or the schema is invalid.
pub fn parse(table: Table) -> Result<(Value, Validator)> {
    let mut schema: Value = serde_json::from_str(include_str!("../records.schema.json"))?;
    schema["$ref"] = json!(format!("#/$defs/{}", Kind::of(table).definition));
    let validator = jsonschema::draft202012::new(&schema)?;
    Ok((jsonschema::dereference(&schema)?, validator))
}
