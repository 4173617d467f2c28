//! Reads and writes the records of API keys.

use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::{Value, json};
use workspace_management::{
    api_key::KeyRecord,
    store::{Table, timestamp},
};

use super::create::NewKey;
use crate::{
    commands::orgs,
    deployment::Deployment,
    query::{Query, Scope},
    records::{self, to_json},
    session::Operator,
    write::{Condition, put, transact},
};

/// The default and the maximum of the parameter `KeyCacheSeconds`.
const DEFAULT_KEY_CACHE: Duration = Duration::from_secs(60);
const MAX_KEY_CACHE: Duration = Duration::from_secs(3_600);

/// A key's record for output: with its state, without the hash of its secret.
pub(crate) fn to_display(mut record: Value) -> Value {
    let state = match serde_json::from_value::<KeyRecord>(record.clone()) {
        Ok(key) if key.revoked_at.is_some() => "revoked",
        Ok(key) if !key.is_valid_at(SystemTime::now()) => "expired",
        // The function accepts only a key that belongs to a registration of its organization.
        Ok(key) if key.org_request_id.is_some() => "active",
        _ => "malformed",
    };
    if let Value::Object(members) = &mut record {
        members.remove("secret_sha256");
        members.insert("state".to_owned(), json!(state));
    }
    record
}

/// The record of a key, with the attributes that the function does not read.
pub(crate) async fn find(deployment: &Deployment, id: &str) -> Result<Value> {
    let key = records::get(deployment, Table::KEYS, &[id]).await?;
    key.ok_or_else(|| no_such_key(id))
}

/// The records of keys, which must all exist.
pub(crate) async fn find_all(deployment: &Deployment, ids: &[String]) -> Result<Vec<Value>> {
    let mut keys = Vec::new();
    for id in ids {
        keys.push(find(deployment, id).await?);
    }
    Ok(keys)
}

/// All keys of an organization, without the index, which can lack a key that was just created.
pub(crate) async fn of(deployment: &Deployment, org: &str) -> Result<Vec<Value>> {
    let query = Query::new(Table::KEYS, Scope::organization(Table::KEYS, org));
    Ok(query.run(deployment).await?.records)
}

/// Whether a key is neither revoked nor expired.
pub(crate) fn is_active(key: &Value) -> bool {
    let is_valid = |key: KeyRecord| key.is_valid_at(SystemTime::now());
    serde_json::from_value(key.clone()).is_ok_and(is_valid)
}

/// Until when functions that have cached a key may accept it, if it has just changed and expires at
/// this time. Empty if that is later than any function caches it.
pub(crate) fn accepted_until(end: SystemTime) -> String {
    let now = SystemTime::now();
    if end > now + MAX_KEY_CACHE {
        return String::new();
    }
    let until = humantime::format_rfc3339_seconds(end.max(now + DEFAULT_KEY_CACHE));
    format!(
        ": functions that cache it may accept it until {until}, or longer if KeyCacheSeconds is above 60"
    )
}

/// Stores a new key's record if its organization is enabled. Both the key and the one that it
/// replaces, if there is one, belong to the organization as it is registered now. The replaced key
/// must be neither revoked nor replaced meanwhile, and gets the new key's id.
///
/// # Errors
/// If a condition fails, or DynamoDB cannot be reached.
pub async fn insert(deployment: &Deployment, new: &mut NewKey, operator: &Operator) -> Result<()> {
    let org = new.record.org_id.clone();
    let Some(registered) = orgs::record::get(deployment, &org).await? else {
        bail!("the organization {org} is not registered: run `workspacectl orgs create` first")
    };
    let Some(registration) = registered["request_id"].as_str() else {
        bail!("the record of the organization {org} has no request_id, which keys need: add one")
    };
    new.record.org_request_id = Some(registration.to_owned());
    let registration = [("registration", registration.to_owned())];
    let organization = Condition::new(
        Table::ORGANIZATIONS,
        &[&org],
        "request_id = :registration AND attribute_not_exists(disabled_at) \
            AND attribute_not_exists(erasing_id)",
        &registration,
    );
    let mut actions = vec![organization.check(deployment)?];
    if let Some(old) = &new.replaces {
        let replaced = Condition::unchanged(Table::KEYS, old, &["replaced_by"])
            .and("org_request_id = :registration", &registration)
            .and("attribute_not_exists(revoked_at)", &[]);
        // A rotation sets `replaced_at` after it has printed the new key.
        let expression = "SET replaced_by = :new REMOVE replaced_at";
        let values = [("new", new.record.key_id.clone())];
        actions.push(replaced.update_action(deployment, expression, &values)?);
    }
    actions.push(put(deployment, Table::KEYS, &new.item(operator)?)?);
    let sent = transact(deployment, actions).await;
    let failed = sent.with_context(|| format!("cannot store the key {}", new.record.key_id))?;
    let Some(failed) = failed.into_iter().next() else {
        return Ok(());
    };
    match (failed.index, orgs::record::state(&to_json(failed.existing))) {
        (0, "enabled") => {
            bail!(
                "the organization {org} was erased or registered again meanwhile: run the command again"
            )
        }
        (0, state) => bail!("the organization {org} is {state}: it cannot get new keys"),
        (1, _) if new.replaces.is_some() => bail!(
            "another command has revoked or replaced it, or it belongs to an earlier registration of {org}"
        ),
        _ => bail!("a key with the same id exists: run the command again"),
    }
}

/// Revokes a key and returns its record. The time of an earlier revocation stays.
///
/// # Errors
/// If there is no such key, it may still be valid, or DynamoDB cannot be reached.
pub(crate) async fn revoke(
    deployment: &Deployment,
    id: &str,
    operator: &Operator,
) -> Result<Value> {
    let keep = "SET revoked_at = if_not_exists(revoked_at, :at), \
        revoked_by = if_not_exists(revoked_by, :by)";
    // For a time that is null, which only other programs write.
    let overwrite = "SET revoked_at = :at, revoked_by = :by";
    let values = [
        ("at", timestamp(SystemTime::now())),
        ("by", operator.name.clone()),
    ];
    let condition = Condition::new(Table::KEYS, &[id], "attribute_exists(key_id)", &[]);
    for expression in [keep, overwrite] {
        let updated = condition.update(deployment, expression, &values).await?;
        let key = updated.ok_or_else(|| no_such_key(id))?;
        if key["revoked_at"].is_string() && !is_active(&key) {
            return Ok(key);
        }
    }
    bail!("the key {id} may still be valid: another program changes its record")
}

fn no_such_key(id: &str) -> anyhow::Error {
    anyhow!("there is no key {id}: run `workspacectl keys list` to see the existing ones")
}
