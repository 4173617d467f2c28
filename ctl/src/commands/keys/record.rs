//! Reads and writes the records of API keys.

use std::time::SystemTime;

use anyhow::{Context as _, Result, anyhow, bail};
use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem};
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
    write::{Condition, text, transact},
};

/// A key's record for output: with its state, without the hash of its secret.
pub(crate) fn to_display(mut record: Value) -> Value {
    let state = match serde_json::from_value::<KeyRecord>(record.clone()) {
        Ok(key) if key.is_valid_at(SystemTime::now()) => "active",
        Ok(key) if key.revoked_at.is_some() => "revoked",
        Ok(_) => "expired",
        Err(_) => "malformed",
    };
    if let Value::Object(members) = &mut record {
        members.remove("secret_sha256");
        members.insert("state".to_owned(), json!(state));
    }
    record
}

/// The record of a key, with the attributes that the function does not read.
///
/// # Errors
/// If there is no such key, or DynamoDB cannot be reached.
pub(crate) async fn find(deployment: &Deployment, id: &str) -> Result<Value> {
    let key = records::get(deployment, Table::KEYS, &[id]).await?;
    key.ok_or_else(|| no_such_key(id))
}

/// The active keys of an organization, without the index, which can lack a key that was just created.
///
/// # Errors
/// If DynamoDB cannot be reached.
pub(crate) async fn active_of(deployment: &Deployment, org: &str) -> Result<Vec<Value>> {
    let query = Query::new(Table::KEYS, Scope::organization(Table::KEYS, org));
    let keys = query.run(deployment).await?.records.into_iter();
    let is_active = |key: &Value| to_display(key.clone())["state"] == "active";
    Ok(keys.filter(is_active).collect())
}

/// Stores a new key's record if its organization is enabled and the key that it replaces, if there is
/// one, is not revoked. With it, stores the last four characters of the key, which belong to the
/// checksum and not to the secret.
///
/// # Errors
/// If a condition fails, or DynamoDB cannot be reached.
pub async fn insert(deployment: &Deployment, new: &NewKey, operator: &Operator) -> Result<()> {
    let organization = Condition {
        table: Table::ORGANIZATIONS,
        key: &[&new.record.org_id],
        expression: "attribute_exists(org_id) AND attribute_not_exists(disabled_at) \
            AND attribute_not_exists(erasing_id)",
        values: &[],
    };
    let old = new.replaces.as_deref().unwrap_or_default();
    let replaced = Condition {
        table: Table::KEYS,
        key: &[old],
        expression: "attribute_exists(key_id) AND attribute_not_exists(revoked_at)",
        values: &[],
    };
    let mut actions = vec![organization.check(deployment)?];
    if new.replaces.is_some() {
        actions.push(replaced.check(deployment)?);
    }
    actions.push(put(deployment, new, operator)?);
    let failed = transact(deployment, actions)
        .await
        .context("cannot store the key")?;
    let Some(failed) = failed.into_iter().next() else {
        return Ok(());
    };
    let org = &new.record.org_id;
    match failed.index {
        0 if failed.existing.is_empty() => {
            bail!("the organization {org} is not registered: run `workspacectl orgs create` first")
        }
        0 => {
            let state = orgs::record::state(&to_json(failed.existing));
            bail!("the organization {org} is {state}: it cannot get new keys")
        }
        1 if new.replaces.is_some() => bail!("the key {old} was revoked meanwhile"),
        _ => bail!("a key with the same id exists: run the command again"),
    }
}

/// The action that stores a new key's record, with the attributes that the function does not read.
fn put(deployment: &Deployment, new: &NewKey, operator: &Operator) -> Result<TransactWriteItem> {
    let mut put = Put::builder()
        .table_name(deployment.tables.name(Table::KEYS))
        .set_item(Some(serde_dynamo::to_item(&new.record)?))
        .item("last_four", text(&new.key[new.key.len() - 4..]))
        .item("created_by", text(&operator.name))
        .item("request_id", text(&operator.run_id))
        .condition_expression("attribute_not_exists(key_id)");
    if let Some(seconds) = new.issued_for {
        put = put.item("issued_for", AttributeValue::N(seconds.to_string()));
    }
    if let Some(old) = &new.replaces {
        put = put.item("replaces", text(old));
    }
    if let Some(rotation) = &new.rotation {
        put = put.item("rotation_id", text(rotation));
    }
    Ok(TransactWriteItem::builder().put(put.build()?).build())
}

/// Revokes a key and returns its record. The time of an earlier revocation stays.
///
/// # Errors
/// If there is no such key, or DynamoDB cannot be reached.
pub(crate) async fn revoke(
    deployment: &Deployment,
    id: &str,
    operator: &Operator,
) -> Result<Value> {
    let expression = "SET revoked_at = if_not_exists(revoked_at, :at), \
        revoked_by = if_not_exists(revoked_by, :by)";
    let values = [
        ("at", timestamp(SystemTime::now())),
        ("by", operator.name.clone()),
    ];
    update(deployment, id, expression, &values).await
}

/// Updates the record of an existing key with an expression. Returns the new record.
///
/// # Errors
/// If there is no such key, or DynamoDB cannot be reached.
pub(crate) async fn update(
    deployment: &Deployment,
    id: &str,
    expression: &str,
    values: &[(&'static str, String)],
) -> Result<Value> {
    let condition = Condition {
        table: Table::KEYS,
        key: &[id],
        expression: "attribute_exists(key_id)",
        values: &[],
    };
    let updated = condition.update(deployment, expression, values).await?;
    updated.map(to_json).ok_or_else(|| no_such_key(id))
}

fn no_such_key(id: &str) -> anyhow::Error {
    anyhow!("there is no key {id}: run `workspacectl keys list` to see the existing ones")
}
