//! Reads and writes the records of API keys.

use std::time::SystemTime;

use anyhow::{Context as _, Result, anyhow};
use aws_sdk_dynamodb::{
    error::ProvideErrorMetadata as _,
    types::{AttributeValue, ReturnValue},
};
use serde_json::{Value, json};
use workspace_management::{
    api_key::KeyRecord,
    store::{Table, timestamp},
};

use crate::deployment::Deployment;

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
pub(crate) async fn get(deployment: &Deployment, id: &str) -> Result<Value> {
    let response = deployment
        .client
        .get_item()
        .consistent_read(true)
        .table_name(deployment.tables.name(Table::KEYS))
        .key("key_id", AttributeValue::S(id.to_owned()))
        .send()
        .await
        .with_context(|| format!("cannot read the key {id}"))?;
    let item = response.item.ok_or_else(|| no_such_key(id))?;
    serde_dynamo::from_item(item)
        .with_context(|| format!("the record of the key {id} is malformed"))
}

/// Stores a new key's record, and the last four characters of its text. They belong to the
/// checksum, not to the secret.
pub(crate) async fn insert(
    deployment: &Deployment,
    key: &str,
    record: &KeyRecord,
    issued_for: Option<u64>,
) -> Result<()> {
    let last_four = AttributeValue::S(key[key.len() - 4..].to_owned());
    let mut put = deployment
        .client
        .put_item()
        .table_name(deployment.tables.name(Table::KEYS))
        .set_item(Some(serde_dynamo::to_item(record)?))
        .item("last_four", last_four);
    if let Some(seconds) = issued_for {
        put = put.item("issued_for", AttributeValue::N(seconds.to_string()));
    }
    put.condition_expression("attribute_not_exists(key_id)")
        .send()
        .await
        .context("cannot store the key")?;
    Ok(())
}

/// Revokes a key and returns its record. The time of an earlier revocation stays.
pub(crate) async fn revoke(deployment: &Deployment, id: &str) -> Result<Value> {
    let expression = "SET revoked_at = if_not_exists(revoked_at, :at)";
    let at = timestamp(SystemTime::now());
    update(deployment, id, expression, &[(":at", &at)]).await
}

/// Updates the record of an existing key with an expression. Returns the new record.
pub(crate) async fn update(
    deployment: &Deployment,
    id: &str,
    expression: &str,
    values: &[(&str, &str)],
) -> Result<Value> {
    let mut update = deployment
        .client
        .update_item()
        .table_name(deployment.tables.name(Table::KEYS))
        .key("key_id", AttributeValue::S(id.to_owned()))
        .update_expression(expression)
        .condition_expression("attribute_exists(key_id)")
        .return_values(ReturnValue::AllNew);
    for (name, value) in values {
        update = update.expression_attribute_values(*name, AttributeValue::S((*value).to_owned()));
    }
    match update.send().await {
        Ok(updated) => Ok(serde_dynamo::from_item(
            updated.attributes.unwrap_or_default(),
        )?),
        Err(error) if error.code() == Some("ConditionalCheckFailedException") => {
            Err(no_such_key(id))
        }
        Err(error) => Err(error).with_context(|| format!("cannot update the key {id}")),
    }
}

fn no_such_key(id: &str) -> anyhow::Error {
    anyhow!("there is no key {id}: run `workspacectl keys list` to see the existing ones")
}
