//! Records as the current version writes them, for tests that do not create them with a request.

use std::borrow::Cow;

use serde_json::{Value, json};
use workspace_management::records::{
    ApiKeyRecord, CreationAttributes, Model, Organization, Team, TeamMember,
};
use workspace_records::item;

/// When the records were created: RFC 3339 in UTC, with milliseconds.
pub const CREATED_AT: &str = "2026-01-01T00:00:00.000Z";

/// The `request_id` of the records.
pub const REQUEST_ID: &str = "setup";

/// A `removing_id` or an `erasing_id`: 16 hexadecimal digits.
pub const RANDOM_ID: &str = "00000000000000a1";

/// An enabled organization.
pub fn organization(org: &str) -> Value {
    json!(Organization {
        org_id: org.to_owned(),
        created_at: CREATED_AT.to_owned(),
        created_by: "setup".to_owned(),
        registration_id: Some(REQUEST_ID.to_owned()),
        ..Organization::default()
    })
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
    item::new_key_record(key, organization, REQUEST_ID, label, CREATED_AT)
        .expect("a well-formed API key")
}

/// A team in a project. The id `team` should be derived from `name`.
pub fn team(org: &str, project: &str, team: &str, name: &str) -> Value {
    json!(Team {
        partition_key: Team::partition_key(org, project),
        org_id: org.to_owned(),
        project_id: project.to_owned(),
        team_id: team.to_owned(),
        team_name: name.to_owned(),
        creation: creation(),
        ..Team::default()
    })
}

pub fn member(org: &str, project: &str, team: &str, user: &str) -> Value {
    json!(TeamMember {
        partition_key: TeamMember::partition_key(org, project, team).into(),
        org_id: org.into(),
        project_id: project.into(),
        team_id: team.into(),
        user_id: user.into(),
        creation: Cow::Owned(creation()),
    })
}

pub fn model(org: &str, model_type: &str, id: &str) -> Value {
    json!(Model {
        org_id: org.into(),
        sort_key: Model::sort_key(model_type, id),
        model_type: model_type.into(),
        model_id: id.into(),
        number: 1,
        creation: Cow::Owned(creation()),
    })
}

fn creation() -> CreationAttributes {
    CreationAttributes {
        created_at: CREATED_AT.to_owned(),
        created_by: "setup".to_owned(),
        request_id: REQUEST_ID.to_owned(),
    }
}
