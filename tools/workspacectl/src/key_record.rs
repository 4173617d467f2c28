//! The records of API keys: their state, and how they are stored, read and revoked.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use anyhow::{Result, anyhow};
use serde_json::{Value, json};
use workspace_management::{
    api_key::{API_KEY_ID_LENGTH, ApiKey},
    records::{ApiKeyRecord, ApiKeyState, Table},
    store::timestamp,
};
use workspace_records::kinds::PrimaryKey;

use crate::{
    context::Run,
    deployment::Deployment,
    organization,
    read::{self, Scope},
    record::{Record, Stored},
    write::{Outcome, Refusal, Write, change, set},
};

/// The primary key of the record of an API key.
pub(crate) fn key(id: &str) -> PrimaryKey {
    PrimaryKey::ApiKey { id: id.to_owned() }
}

/// Whether a text has the form of an id of an API key.
pub(crate) fn is_id(text: &str) -> bool {
    text.len() == API_KEY_ID_LENGTH && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The state of the key with this record. A record that cannot be parsed is malformed.
pub(crate) fn state_of(record: &Record) -> ApiKeyState {
    let parsed = record.clone().parse::<ApiKeyRecord>();
    parsed.map_or(ApiKeyState::Malformed, |key| {
        key.fields.state(SystemTime::now())
    })
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

/// The record of a key for output: with its state, and without the hash of its secret.
pub(crate) fn to_output(record: &Record) -> Value {
    let mut output = record.to_json();
    if let Value::Object(attributes) = &mut output {
        attributes.remove("secret_sha256");
        attributes.insert("state".to_owned(), json!(state_of(record)));
    }
    output
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

/// Reads the records of keys. Fails if one does not exist, and says who erased it, if the history
/// does.
pub(crate) async fn require(deployment: &Deployment, ids: &[String]) -> Result<Vec<Record>> {
    let mut records = Vec::new();
    for id in ids {
        records.push(match read::find(deployment, &key(id)).await? {
            Some(record) => record,
            None => return Err(missing_key_error(deployment, id).await?),
        });
    }
    Ok(records)
}

/// What to say about a key that does not exist.
async fn missing_key_error(deployment: &Deployment, id: &str) -> Result<anyhow::Error> {
    if deployment.require_history().is_err() {
        return Ok(no_such_key_error(id));
    }
    let erasures = Scope::erasures_of_key(id).read(deployment).await?;
    let Some(erasure) = erasures.first() else {
        return Ok(no_such_key_error(id));
    };
    let [org, at, by] = ["org_id", "at", "by"].map(|name| erasure.text(name).unwrap_or("-"));
    Ok(anyhow!(
        "there is no key {id}: {by} erased it with the organization {org} at {at}"
    ))
}

/// Adds the labels of API keys to the attributes of records that name the keys, for people. Reads
/// each key once.
pub(crate) async fn add_labels(deployment: &Deployment, records: &mut [Value]) -> Result<()> {
    let mut named = BTreeMap::new();
    for record in records {
        for attribute in ["created_by", "updated_by"] {
            let Some(id) = record[attribute].as_str().filter(|by| is_id(by)) else {
                continue;
            };
            if !named.contains_key(id) {
                let found = read::find(deployment, &key(id)).await?;
                let label = found.as_ref().and_then(|key| key.text("label"));
                let label = label.filter(|label| !label.is_empty());
                let name = label.map_or_else(|| id.to_owned(), |label| format!("{id} ({label})"));
                named.insert(id.to_owned(), name);
            }
            record[attribute] = json!(named[id]);
        }
    }
    Ok(())
}

/// Stores the record of a new key. If the new key replaces an old key, also stores the new id in
/// the record of the old key. Fails if the organization is not enabled, if the old key is revoked
/// or was replaced since it was read, or if the registration of either is not `registration_id`.
/// Returns the stored record.
pub(crate) async fn insert_and_link_old(
    deployment: &Deployment,
    run: &Run,
    new_key: &ApiKeyRecord,
    registration_id: &str,
    old_key: Option<&Stored<ApiKeyRecord>>,
) -> Result<Record> {
    let (org, id) = (&new_key.org_id, &new_key.key_id);
    let record = Record::new(Table::API_KEYS, serde_dynamo::to_item(new_key)?)?;
    let check_org = Write::check(&organization::key(org))
        .if_equal("request_id", registration_id)
        .if_missing("disabled_at")
        .if_missing("erasing_id")
        .or_say(format!(
            "the organization {org} has changed since it was read: run the command again"
        ));
    let put =
        Write::put(record.clone()).or_say("a key with the same id exists: run the command again");
    let mut writes = vec![check_org, put];
    if let Some(old_key) = old_key {
        let link = Write::update(&old_key.record, [set("replaced_by", id)])
            .if_equal("org_request_id", registration_id)
            .if_missing("revoked_at")
            .if_unchanged(&old_key.record, &["replaced_by"])
            .or_say(format!(
                "another command has revoked or replaced the old key, or it belongs to an earlier registration of {org}: see `workspacectl keys check`"
            ));
        writes.push(link);
    }
    let verb = if old_key.is_some() {
        "rotate"
    } else {
        "create"
    };
    change(deployment, run, verb, writes).await?.done()?;
    Ok(record)
}

/// Revokes a key and returns its record. A key that is already revoked does not change. Fails if the
/// key no longer exists.
pub(crate) async fn revoke(deployment: &Deployment, key: &Record, run: &Run) -> Result<Record> {
    let assignments = [
        set("revoked_at", timestamp(SystemTime::now())),
        set("revoked_by", &run.operator),
    ];
    let write = Write::update(key, assignments)
        .if_missing("revoked_at")
        .or_say(no_such_key_error(&key.key.id()).to_string());
    let revoked = write.result();
    match change(deployment, run, "revoke", vec![write]).await? {
        Outcome::Done => Ok(revoked),
        Outcome::Refused(Refusal {
            existing: Some(existing),
            ..
        }) => Ok(existing),
        Outcome::Refused(refusal) => Err(refusal.into_error()),
    }
}

fn no_such_key_error(id: &str) -> anyhow::Error {
    anyhow!("there is no key {id}: see `workspacectl keys list`")
}
