//! Records as the current version writes them, for tests that do not create them with a request.

use serde_json::{Value, json};
use workspace_management::api_key::{ApiKey, ApiKeyRecord};
use workspace_records::item;

/// When the records were created: RFC 3339 in UTC, with milliseconds.
pub const CREATED_AT: &str = "2026-01-01T00:00:00.000Z";

/// The `request_id` of the records.
pub const REQUEST_ID: &str = "setup";

/// A `removing_id` or an `erasing_id`: 16 hexadecimal digits.
pub const RANDOM_ID: &str = "00000000000000a1";

/// An enabled organization.
pub fn organization(org: &str) -> Value {
    created(json!({ "org_id": org }))
}

pub fn disabled_organization(org: &str) -> Value {
    let mut record = organization(org);
    record["disabled_at"] = json!(CREATED_AT);
    record["disabled_by"] = json!("setup");
    record
}

/// The record of an API key that does not expire and may call every operation. The key belongs to
/// the registration of the organization whose `request_id` is [`REQUEST_ID`].
///
/// # Panics
/// If the key is malformed.
pub fn key_record(key: &str, organization: &str, label: &str) -> ApiKeyRecord {
    let key = ApiKey::parse(key).expect("a well-formed API key");
    item::new_key_record(key, organization, REQUEST_ID, label, CREATED_AT)
}

/// A team in a project. The id `team` should be derived from `name`.
pub fn team(org: &str, project: &str, team: &str, name: &str) -> Value {
    created(json!({
        "project": format!("{org}#{project}"),
        "org_id": org,
        "project_id": project,
        "team_id": team,
        "team_name": name,
        "team_description": "",
    }))
}

pub fn member(org: &str, project: &str, team: &str, user: &str) -> Value {
    created(json!({
        "team": format!("{org}#{project}#{team}"),
        "org_id": org,
        "project_id": project,
        "team_id": team,
        "user_id": user,
    }))
}

pub fn model(org: &str, model_type: &str, id: &str) -> Value {
    created(json!({
        "org_id": org,
        "model": format!("{model_type}#{id}"),
        "model_type": model_type,
        "model_id": id,
        "id": 1,
    }))
}

/// Adds the audit attributes of a new record.
fn created(mut record: Value) -> Value {
    record["created_at"] = json!(CREATED_AT);
    record["created_by"] = json!("setup");
    record["request_id"] = json!(REQUEST_ID);
    record
}
