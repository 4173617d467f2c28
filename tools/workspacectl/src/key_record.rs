//! The records of API keys: their state, and how they are stored, read and revoked.

use std::time::{Duration, SystemTime};

use anyhow::{Result, anyhow, bail};
use aws_sdk_dynamodb::types::{Put, TransactWriteItem};
use serde::Deserialize as _;
use serde_json::{Value, json};
use workspace_management::{
    api_key::ApiKey,
    records::{ApiKeyRecord, ApiKeyState},
    store::{Table, timestamp},
};

use crate::{
    deployment::Deployment,
    read,
    session::Run,
    write::{GuardedRecord, transact},
};

/// The state of the key with this record. A record that cannot be parsed is malformed.
pub(crate) fn state_of(record: &Value) -> ApiKeyState {
    let parsed = ApiKeyRecord::deserialize(record);
    parsed.map_or(ApiKeyState::Malformed, |key| key.state(SystemTime::now()))
}

/// Whether a key is active and expires within a period.
pub(crate) fn is_active_and_expires_within(key: &ApiKeyRecord, period: Duration) -> bool {
    let now = SystemTime::now();
    let Some(Ok(expires_at)) = key.expires_at.as_deref().map(humantime::parse_rfc3339) else {
        return false;
    };
    let time_left = expires_at.duration_since(now);
    key.state(now) == ApiKeyState::Active && time_left.is_ok_and(|left| left <= period)
}

/// Prepares the record of a key for output: adds its state and removes the hash of its secret.
pub(crate) fn into_output(mut record: Value) -> Value {
    let state = state_of(&record);
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
    new_record: &ApiKeyRecord,
    registration_id: &str,
    old_record: Option<&ApiKeyRecord>,
) -> Result<()> {
    let org = &new_record.org_id;
    let id = &new_record.key_id;
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
        let key_if_replaceable = GuardedRecord::if_exists(Table::API_KEYS, &[&old_record.key_id])
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
