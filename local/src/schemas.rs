//! The schemas of `docs/records/`, against which tests validate every record. The feature `schemas`
//! adds this module, so that only tests depend on a validator.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;
use workspace_management::store::Table;

macro_rules! text {
    ($kind:literal) => {
        include_str!(concat!("../../docs/records/", $kind, ".schema.json"))
    };
}

/// The text of each schema.
const SCHEMAS: [(Table, &str); 7] = [
    (Table::ORGANIZATIONS, text!("organization")),
    (Table::MODELS, text!("model")),
    (Table::TEAMS, text!("team")),
    (Table::TEAM_MEMBERS, text!("team_member")),
    (Table::BOT_VOICES, text!("bot_voice")),
    (Table::DATA_STORES, text!("data_store")),
    (Table::LOGGING_INSTANCES, text!("logging_instance")),
];

/// The tables whose records have a schema.
pub fn tables() -> impl Iterator<Item = Table> {
    SCHEMAS.iter().map(|(table, _)| *table)
}

/// The schema of a table's records, or `None` for API keys, which have none.
pub fn schema(table: Table) -> Option<&'static Value> {
    parsed(table).map(|(schema, _)| schema)
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
        let parse = |(_, text): (Table, &str)| {
            let schema: Value = serde_json::from_str(text).expect("a schema is JSON");
            jsonschema::draft202012::meta::validate(&schema).expect("a schema is valid");
            let validator = jsonschema::draft202012::new(&schema).expect("a schema is valid");
            (schema, validator)
        };
        SCHEMAS.map(parse).into()
    });
    let index = tables().position(|other| other == table)?;
    PARSED.get(index)
}
