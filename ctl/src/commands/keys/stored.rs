//! The records of API keys: their attributes, and how they are stored, read and revoked.

use std::time::SystemTime;

use anyhow::{Result, anyhow, bail};
use aws_sdk_dynamodb::types::{Put, TransactWriteItem};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use workspace_management::{
    api_key::KeyRecord,
    store::{Table, timestamp},
};
use workspace_records::item::to_json;

use crate::{
    deployment::Deployment,
    organization::{Organization, State},
    read,
    session::Run,
    write::{Precondition, transact},
};

/// The record of an API key as it is stored: the `record` that the function reads, and more.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredKey {
    #[serde(flatten)]
    pub(crate) record: KeyRecord,
    /// The last four characters of the key. They are part of its checksum and not of its secret.
    pub(super) last_four: Option<String>,
    pub(super) created_by: Option<String>,
    pub(super) request_id: Option<String>,
    /// The lifetime that was chosen for the key, in seconds. A rotation does not change it. `None`
    /// if the key was issued without an expiry, or by another program.
    #[serde(rename = "issued_for", skip_serializing_if = "Option::is_none")]
    pub(super) lifetime_seconds: Option<u64>,
    /// The id of the key that this key replaces.
    #[serde(rename = "replaces", skip_serializing_if = "Option::is_none")]
    pub(super) old_id: Option<String>,
    /// The id of the key that replaces this key. `replaced_by_operator` names the operator.
    #[serde(rename = "replaced_by", skip_serializing_if = "Option::is_none")]
    pub(super) new_id: Option<String>,
}

/// A key's record for output: has the state of the key instead of the hash of its secret.
pub(crate) fn to_output(mut record: Value) -> Value {
    let state = match serde_json::from_value::<KeyRecord>(record.clone()) {
        Ok(key) if key.revoked_at.is_some() => "revoked",
        Ok(key) if !key.is_valid_at(SystemTime::now()) => "expired",
        // Without a registration, the key is malformed: the function rejects it.
        Ok(key) if key.registration_id.is_some() => "active",
        _ => "malformed",
    };
    if let Value::Object(attributes) = &mut record {
        attributes.remove("secret_sha256");
        attributes.insert("state".to_owned(), json!(state));
    }
    record
}

/// The records of keys, which must all exist.
pub(super) async fn find_all(deployment: &Deployment, ids: &[String]) -> Result<Vec<Value>> {
    let mut keys = Vec::new();
    for id in ids {
        let key = read::get(deployment, Table::KEYS, &[id]).await?;
        keys.push(key.ok_or_else(|| no_such_key(id))?);
    }
    Ok(keys)
}

/// Stores the record of a new key if the conditions of [`super::NewKey::issue`] hold.
pub(super) async fn insert(
    deployment: &Deployment,
    new: &StoredKey,
    registration_id: &str,
    old: Option<&StoredKey>,
) -> Result<()> {
    let (org, id) = (&new.record.org_id, &new.record.key_id);
    let registration = [(":registration", registration_id)];
    let if_enabled = Precondition::new(Table::ORGANIZATIONS, &[org]).and(
        "request_id = :registration AND attribute_not_exists(disabled_at) \
            AND attribute_not_exists(erasing_id)",
        &registration,
    );
    let put = Put::builder()
        .table_name(deployment.tables.name(Table::KEYS))
        .set_item(Some(serde_dynamo::to_item(new)?))
        .condition_expression("attribute_not_exists(key_id)")
        .build()?;
    let mut actions = vec![
        if_enabled.check_action(deployment)?,
        TransactWriteItem::builder().put(put).build(),
    ];
    if let Some(old) = old {
        // `org_request_id` is the stored name of `registration_id`.
        let condition = "org_request_id = :registration AND attribute_not_exists(revoked_at)";
        let if_replaceable = Precondition::new(Table::KEYS, &[&old.record.key_id])
            .and(condition, &registration)
            .and_unchanged(&json!(old), &["replaced_by"]); // JSON as stored, without `None`
        let replace = "SET replaced_by = :new";
        actions.push(if_replaceable.update_action(deployment, replace, &[(":new", id)])?);
    }
    let failed = transact(deployment, actions, format!("cannot store the key {id}")).await?;
    let Some(failed) = failed.into_iter().next() else {
        return Ok(());
    };
    // The order of `actions`: the organization, the new key, the old key.
    match failed.index {
        0 => match Organization(to_json(failed.existing)).state() {
            // Not disabled, so the registration differs, or there is no record.
            State::Enabled => bail!(
                "the organization {org} was erased or registered again since this command began: run it again"
            ),
            state => bail!("no key can be created, because {org} is {}", state.as_str()),
        },
        1 => bail!("a key with the same id exists: run the command again"),
        _ => bail!(
            "another command has revoked or replaced the old key, or it belongs to an earlier registration of {org}: see `workspacectl keys check`"
        ),
    }
}

/// Revokes a key, and returns its record. If it is already revoked, keeps the time and the
/// operator. Fails if there is no such key, or DynamoDB cannot be reached.
pub(super) async fn revoke(deployment: &Deployment, id: &str, run: &Run) -> Result<Value> {
    let expression = "SET revoked_at = if_not_exists(revoked_at, :at), \
        revoked_by = if_not_exists(revoked_by, :by)";
    let now = timestamp(SystemTime::now());
    let values = [(":at", now.as_str()), (":by", run.operator.as_str())];
    let if_exists = Precondition::new(Table::KEYS, &[id]);
    let revoked = if_exists.update(deployment, expression, &values).await?;
    revoked.ok_or_else(|| no_such_key(id))
}

fn no_such_key(id: &str) -> anyhow::Error {
    anyhow!("there is no key {id}: see `workspacectl keys list`")
}
