//! The schemas of `docs/records/`, against which tests validate every record. The feature `schemas`
//! adds this module, so that only tests depend on a validator.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;
use workspace_management::store::Table;

/// The tables whose records have a schema.
pub const TABLES: [Table; 7] = [
    Table::ORGANIZATIONS,
    Table::MODELS,
    Table::TEAMS,
    Table::TEAM_MEMBERS,
    Table::BOT_VOICES,
    Table::DATA_STORES,
    Table::LOGGING_INSTANCES,
];

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
        .map(|error| format!("{}: {error}: {record}", table.name))
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
        TABLES.map(parse).into()
    });
    let index = TABLES.iter().position(|other| *other == table)?;
    PARSED.get(index)
}

fn text(table: Table) -> &'static str {
    match table {
        Table::ORGANIZATIONS => include_str!("../../docs/records/organization.schema.json"),
        Table::MODELS => include_str!("../../docs/records/model.schema.json"),
        Table::TEAMS => include_str!("../../docs/records/team.schema.json"),
        Table::TEAM_MEMBERS => include_str!("../../docs/records/team_member.schema.json"),
        Table::BOT_VOICES => include_str!("../../docs/records/bot_voice.schema.json"),
        Table::DATA_STORES => include_str!("../../docs/records/data_store.schema.json"),
        Table::LOGGING_INSTANCES => include_str!("../../docs/records/logging_instance.schema.json"),
        other => panic!("{} have no schema", other.name),
    }
}
