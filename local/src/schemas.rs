//! The schemas of `docs/records/`, against which tests validate every record. The feature `schemas`
//! adds this module, so that only tests depend on a validator.

use std::sync::LazyLock;

use include_dir::{Dir, File, include_dir};
use jsonschema::Validator;
use serde_json::Value;
use workspace_management::store::Table;

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../docs/records");

/// The tables whose records have a schema: all but that of API keys.
pub fn tables() -> impl Iterator<Item = Table> {
    let tables = Table::ALL.iter().copied();
    tables.filter(|table| *table != Table::KEYS)
}

/// The text of the schema of a table: that of `TeamMembersTable` is in `team_member.schema.json`.
///
/// # Panics
/// If the file is missing.
fn text(table: Table) -> &'static str {
    let is_of_table = |file: &&File| {
        let name = file.path().to_str().unwrap_or_default();
        let kind = name.trim_end_matches(".schema.json").replace('_', "");
        format!("{kind}sTable").eq_ignore_ascii_case(table.logical_id)
    };
    let file = FILES.files().find(is_of_table);
    let text = file.and_then(File::contents_utf8);
    text.unwrap_or_else(|| panic!("docs/records/ has no schema for {}", table.logical_id))
}

/// The schema of a table's records, or `None` for API keys, which have none.
pub fn schema(table: Table) -> Option<&'static Value> {
    parsed(table).map(|(schema, _)| schema)
}

/// A record of the organization `acme`, as an operation creates it: with the first example of each
/// attribute of its key, its content and its creation. `None` for API keys.
pub fn example(table: Table) -> Option<Value> {
    let attributes = schema(table)?["properties"].as_object()?.iter();
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
    let Some((schema, validator)) = parsed(table) else {
        return vec![];
    };
    let invalid = validator.iter_errors(record);
    let invalid = invalid.map(|error| format!("{}: {error}", error.instance_path()));
    let names = record.as_object().into_iter().flatten();
    let undescribed = names
        .map(|(name, _)| name)
        .filter(|name| schema["properties"][name.as_str()].is_null())
        .map(|name| format!("/{name}: the schema lacks this attribute"));
    let errors = invalid.chain(undescribed);
    errors
        .map(|error| format!("{}: {error}: {record}", table.noun))
        .collect()
}

/// The schema and its validator.
fn parsed(table: Table) -> Option<&'static (Value, Validator)> {
    static PARSED: LazyLock<Vec<(Value, Validator)>> = LazyLock::new(|| {
        let parse = |table| {
            let schema: Value = serde_json::from_str(text(table)).expect("a schema is JSON");
            jsonschema::draft202012::meta::validate(&schema).expect("a schema is valid");
            let validator = jsonschema::draft202012::new(&schema).expect("a schema is valid");
            (schema, validator)
        };
        tables().map(parse).collect()
    });
    let index = tables().position(|other| other == table)?;
    PARSED.get(index)
}
