//! The records of API keys: their attributes, and how they are stored, read and revoked.

use std::time::{Duration, SystemTime};

use anyhow::{Result, anyhow, bail};
use aws_sdk_dynamodb::types::{Put, TransactWriteItem};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use workspace_management::{
    api_key::{ApiKey, ApiKeyRecord},
    store::{Table, timestamp},
};
use workspace_records::item::string_attribute;

use crate::{
    deployment::Deployment,
    read,
    session::Run,
    write::{GuardedRecord, transact},
};

/// The record of an API key: what the function reads, and what only the operator's tool reads.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FullKeyRecord {
    /// The attributes that the function reads.
    #[serde(flatten)]
    pub(crate) core: ApiKeyRecord,
    /// The last four characters of the key. They are part of its checksum and not of its secret.
    pub(crate) last_four: Option<String>,
    pub(crate) created_by: Option<String>,
    /// The id of the run that created the key.
    #[serde(rename = "request_id")]
    pub(crate) run_id: Option<String>,
    /// The lifetime that was chosen for the key, in seconds. Unlike `expires_at`, it does not change
    /// in a rotation. `None` if the key was issued without an expiry, or by another program.
    #[serde(rename = "issued_for", skip_serializing_if = "Option::is_none")]
    pub(crate) lifetime_seconds: Option<u64>,
    /// The id of the key that this key has replaced.
    #[serde(rename = "replaces", skip_serializing_if = "Option::is_none")]
    pub(crate) predecessor_id: Option<String>,
    /// The id of the key that has replaced this key.
    #[serde(rename = "replaced_by", skip_serializing_if = "Option::is_none")]
    pub(crate) successor_id: Option<String>,
}

/// The state of a key, regardless of the state of its organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum KeyState {
    Active,
    Expired,
    Revoked,
    Malformed,
}

impl KeyState {
    /// The state of the key with this record.
    pub(crate) fn of(record: &Value) -> Self {
        match serde_json::from_value::<ApiKeyRecord>(record.clone()) {
            Ok(parsed) if parsed.revoked_at.is_some() => Self::Revoked,
            Ok(parsed) if !parsed.is_valid_at(SystemTime::now()) => Self::Expired,
            // Without a registration, a key is not active, because the function rejects it.
            Ok(parsed) if parsed.registration_id.is_some() => Self::Active,
            _ => Self::Malformed,
        }
    }
}

/// Whether the key with this record is active and expires within a period.
pub(crate) fn is_active_and_expires_within(record: &Value, period: Duration) -> bool {
    let Ok(expires_at) = humantime::parse_rfc3339(string_attribute(record, "expires_at")) else {
        return false;
    };
    let time_left = expires_at.duration_since(SystemTime::now());
    KeyState::of(record) == KeyState::Active && time_left.is_ok_and(|left| left <= period)
}

/// Prepares the record of a key for output: adds its state and removes the hash of its secret.
pub(crate) fn into_output(mut record: Value) -> Value {
    let state = KeyState::of(&record);
    if let Value::Object(attributes) = &mut record {
        attributes.remove("secret_sha256");
        attributes.insert("state".to_owned(), json!(state));
    }
    record
}

/// Generates a random key. Fails if the operating system provides no random numbers.
pub(crate) fn random_key() -> Result<String> {
    // `ApiKey::encode` takes the 32 bytes of the secret as two halves.
    let mut id = [0; 8];
    let mut secret = [[0; 16]; 2];
    getrandom::fill(&mut id)?;
    getrandom::fill(secret.as_flattened_mut())?;
    Ok(ApiKey::encode(id, secret))
}

/// Reads the records of keys. Fails if one does not exist.
pub(crate) async fn require_records(deployment: &Deployment, ids: &[String]) -> Result<Vec<Value>> {
    let mut records = Vec::new();
    for id in ids {
        let record = read::find(deployment, Table::API_KEYS, &[id]).await?;
        records.push(record.ok_or_else(|| no_such_key_error(id))?);
    }
    Ok(records)
}

/// Stores the record of a new key. If the new key replaces an old key, also stores the new id in
/// the record of the old key. Fails if the organization is not enabled, if the old key is revoked
/// or was replaced since it was read, or if the registration of either is not `registration_id`.
pub(crate) async fn insert_and_link_old(
    deployment: &Deployment,
    new_record: &FullKeyRecord,
    registration_id: &str,
    old_record: Option<&FullKeyRecord>,
) -> Result<()> {
    let org = &new_record.core.org_id;
    let id = &new_record.core.key_id;
    let registration_values = [(":registration", registration_id)];
    let org_if_enabled = GuardedRecord::if_exists(Table::ORGANIZATIONS, &[org]).and(
        "request_id = :registration AND attribute_not_exists(disabled_at) \
            AND attribute_not_exists(erasing_id)",
        &registration_values,
    );
    let put = Put::builder()
        .table_name(deployment.table_name(Table::API_KEYS))
        .set_item(Some(serde_dynamo::to_item(new_record)?))
        .condition_expression("attribute_not_exists(key_id)")
        .build()?;
    let mut actions = vec![
        org_if_enabled.to_check_action(deployment)?,
        TransactWriteItem::builder().put(put).build(),
    ];
    if let Some(old_record) = old_record {
        let condition = "org_request_id = :registration AND attribute_not_exists(revoked_at)";
        let key_if_replaceable =
            GuardedRecord::if_exists(Table::API_KEYS, &[&old_record.core.key_id])
                .and(condition, &registration_values)
                // If `old_record` has no `replaced_by`, the stored record must have none either.
                .and_unchanged(&json!(old_record), &["replaced_by"]);
        let expression = "SET replaced_by = :new";
        actions.push(key_if_replaceable.to_update_action(
            deployment,
            expression,
            &[(":new", id)],
        )?);
    }
    let message = format!("cannot store the key {id}");
    let failed_conditions = transact(deployment, actions, message).await?;
    let Some(failed) = failed_conditions.into_iter().next() else {
        return Ok(());
    };
    // The order of `actions`: the organization, the new key, the old key.
    match failed.index {
        0 => bail!("the organization {org} has changed since it was read: run the command again"),
        1 => bail!("a key with the same id exists: run the command again"),
        _ => bail!(
            "another command has revoked or replaced the old key, or it belongs to an earlier registration of {org}: see `workspacectl keys check`"
        ),
    }
}

/// Revokes a key and returns its record. A key that is already revoked keeps its `revoked_at` and
/// `revoked_by`. Fails if there is no such key.
pub(crate) async fn revoke(deployment: &Deployment, id: &str, run: &Run) -> Result<Value> {
    let expression = "SET revoked_at = if_not_exists(revoked_at, :at), \
        revoked_by = if_not_exists(revoked_by, :by)";
    let now = timestamp(SystemTime::now());
    let values = [(":at", now.as_str()), (":by", run.operator.as_str())];
    let key_if_exists = GuardedRecord::if_exists(Table::API_KEYS, &[id]);
    let revoked = key_if_exists
        .update(deployment, expression, &values)
        .await?;
    revoked.ok_or_else(|| no_such_key_error(id))
}

fn no_such_key_error(id: &str) -> anyhow::Error {
    anyhow!("there is no key {id}: see `workspacectl keys list`")
}
