//! The records of API keys: what only this tool reads, and how it changes them.

use std::time::SystemTime;

use anyhow::{Context as _, Result, anyhow, bail};
use aws_sdk_dynamodb::types::{Put, TransactWriteItem};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use workspace_management::{
    api_key::KeyRecord,
    store::{Table, timestamp},
};
use workspace_records::item::to_json;

use super::create::NewKey;
use crate::{
    commands::orgs::organization::{Organization, State},
    deployment::Deployment,
    query::{self, Query, Scope},
    session::Operator,
    write::{Condition, transact},
};

/// What is said of a key that has just changed.
pub(super) const MAY_BE_CACHED: &str = "functions that have cached it accept it for up to a minute";

/// The record of an API key, with the attributes that the function does not read.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredKey {
    #[serde(flatten)]
    pub(crate) record: KeyRecord,
    /// The last characters of the key, which belong to its checksum and not to the secret.
    pub(super) last_four: Option<String>,
    pub(super) created_by: Option<String>,
    pub(super) request_id: Option<String>,
    /// How long the key is valid, in seconds. `None` means for ever. A rotation lets the key
    /// expire earlier, and does not change this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) issued_for: Option<u64>,
    /// The id of the key that this key replaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) replaces: Option<String>,
    /// The id of the key that replaces this key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) replaced_by: Option<String>,
}

/// A key's record for output: with its state, without the hash of its secret.
pub(crate) fn to_display(mut record: Value) -> Value {
    let state = match serde_json::from_value::<KeyRecord>(record.clone()) {
        Ok(key) if key.revoked_at.is_some() => "revoked",
        Ok(key) if !key.is_valid_at(SystemTime::now()) => "expired",
        // The function accepts only a key that belongs to a registration of its organization.
        Ok(key) if key.org_request_id.is_some() => "active",
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
        let key = query::get(deployment, Table::KEYS, &[id]).await?;
        keys.push(key.ok_or_else(|| no_such_key(id))?);
    }
    Ok(keys)
}

/// All keys of an organization, without the index, which can lack a key that was just created.
pub(super) async fn of(deployment: &Deployment, org: &str) -> Result<Vec<Value>> {
    let query = Query::new(Table::KEYS, Scope::organization(Table::KEYS, org));
    Ok(query.run(deployment).await?.records)
}

/// Stores a new key if its organization is enabled. Both the key and the one that it replaces, if there
/// is one, belong to the organization as it is registered now. The replaced key must not be revoked
/// and must not have changed since it was read. It gets the new key's id.
///
/// # Errors
/// If a condition fails, or DynamoDB cannot be reached.
pub async fn insert(
    deployment: &Deployment,
    new: &mut NewKey,
    replaced: Option<&StoredKey>,
    operator: &Operator,
) -> Result<()> {
    let org = new.stored.record.org_id.clone();
    let Some(organization) = Organization::get(deployment, &org).await? else {
        bail!("the organization {org} is not registered: run `workspacectl orgs create` first")
    };
    let Some(registration) = organization.registration() else {
        bail!("the record of the organization {org} has no request_id, which keys need: add one")
    };
    new.stored.record.org_request_id = Some(registration.to_owned());
    new.stored.created_by = Some(operator.name.clone());
    new.stored.request_id = Some(operator.run_id.clone());
    let id = &new.stored.record.key_id;
    let registration = [(":registration", registration)];
    let accepts_keys = Condition::new(Table::ORGANIZATIONS, &[&org]).and(
        "request_id = :registration AND attribute_not_exists(disabled_at) \
            AND attribute_not_exists(erasing_id)",
        &registration,
    );
    let put = Put::builder()
        .table_name(deployment.tables.name(Table::KEYS))
        .set_item(Some(serde_dynamo::to_item(&new.stored)?))
        .condition_expression("attribute_not_exists(key_id)")
        .build()?;
    let mut actions = vec![
        accepts_keys.check(deployment)?,
        TransactWriteItem::builder().put(put).build(),
    ];
    if let Some(old) = replaced {
        let is_valid = "org_request_id = :registration AND attribute_not_exists(revoked_at)";
        let condition = Condition::new(Table::KEYS, &[&old.record.key_id])
            .and(is_valid, &registration)
            .and_unchanged(&json!(old), &["replaced_by"]);
        let replace = "SET replaced_by = :new";
        actions.push(condition.update_action(deployment, replace, &[(":new", id)])?);
    }
    let what = || format!("cannot store the key {id}");
    let failed = transact(deployment, actions, what).await?;
    let Some(failed) = failed.into_iter().next() else {
        return Ok(());
    };
    match failed.index {
        0 => match Organization(to_json(failed.existing)).state() {
            State::Enabled => bail!(
                "the organization {org} was erased or registered again at the same time: run the command again"
            ),
            state => bail!("the organization {org} is {state}: it cannot get new keys"),
        },
        1 => bail!("a key with the same id exists: run the command again"),
        _ => bail!(
            "another command has revoked or replaced it, or it belongs to an earlier registration of {org}"
        ),
    }
}

/// Revokes a key and returns its record. The time of an earlier revocation stays.
///
/// # Errors
/// If there is no such key, or DynamoDB cannot be reached.
pub(super) async fn revoke(
    deployment: &Deployment,
    id: &str,
    operator: &Operator,
) -> Result<Value> {
    let expression = "SET revoked_at = if_not_exists(revoked_at, :at), \
        revoked_by = if_not_exists(revoked_by, :by)";
    let now = timestamp(SystemTime::now());
    let values = [(":at", now.as_str()), (":by", operator.name.as_str())];
    let exists = Condition::new(Table::KEYS, &[id]).and("attribute_exists(key_id)", &[]);
    let revoked = exists.update(deployment, expression, &values).await?;
    revoked.ok_or_else(|| no_such_key(id))
}

/// The record of a key whose attributes are as this tool writes them.
pub(super) fn parse(record: &Value) -> Result<StoredKey> {
    let key = serde_json::from_value(record.clone());
    key.with_context(|| format!("the record of the key {} is malformed", record["key_id"]))
}

fn no_such_key(id: &str) -> anyhow::Error {
    anyhow!("there is no key {id}: run `workspacectl keys list` to see the existing ones")
}
