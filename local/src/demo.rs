//! The demo organization, and the API key that `events/` and the page of `workspacectl serve` send.

use std::time::SystemTime;

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::{
    Client,
    error::SdkError,
    operation::put_item::PutItemError,
    types::{AttributeValue, ReturnValuesOnConditionCheckFailure},
};
use serde_json::{Value, json};
use workspace_management::{
    api_key::{ApiKey, KeyRecord},
    store::{Item, Table, TableNames, timestamp},
};

use crate::fixtures;

/// The demo organization.
pub const DEMO_ORGANIZATION: &str = "acme";

/// Its API key. It is public, and valid only for a service on this machine.
pub const DEMO_KEY: &str = "wsk_acmeDemoKey1_PublicDemoKeyOfAcmeOnOneMachineNotASecret0002hGfAJ";

/// Stores the demo organization and the record of its API key, unless they exist. An existing key
/// then belongs to the organization as it is registered now.
///
/// # Errors
/// If DynamoDB cannot be reached.
pub async fn store_demo(client: &Client, tables: &TableNames) -> Result<()> {
    let organization = json!({
        "org_id": DEMO_ORGANIZATION,
        "created_at": timestamp(SystemTime::now()),
        "created_by": "demo@localhost",
        "request_id": "0000000000000000",
    });
    let organization = insert(client, tables, Table::ORGANIZATIONS, &organization).await?;
    // An organization that another program has stored may have no registration for keys.
    let Some(AttributeValue::S(registration)) = organization.get("request_id") else {
        return Ok(());
    };
    let mut key = json!(key_record(DEMO_KEY, DEMO_ORGANIZATION, "demo"));
    key["last_four"] = json!(DEMO_KEY[DEMO_KEY.len() - 4..]);
    key["org_request_id"] = json!(registration);
    let key = insert(client, tables, Table::KEYS, &key).await?;
    if key.get("org_request_id") == organization.get("request_id") {
        return Ok(());
    }
    // An earlier version has stored the key, or an operator has registered the organization again.
    client
        .update_item()
        .table_name(tables.name(Table::KEYS))
        .key("key_id", key["key_id"].clone())
        .update_expression("SET org_request_id = :id")
        .condition_expression("attribute_exists(key_id)")
        .expression_attribute_values(":id", AttributeValue::S(registration.clone()))
        .send()
        .await
        .context("cannot change the demo key")?;
    Ok(())
}

/// The record of an API key that does not expire and may call every operation. It belongs to an
/// organization of [`fixtures`].
///
/// # Panics
/// If the key is malformed.
pub fn key_record(key: &str, organization: &str, label: &str) -> KeyRecord {
    let key = ApiKey::parse(key).expect("a well-formed API key");
    KeyRecord {
        key_id: key.id.to_owned(),
        org_id: organization.to_owned(),
        org_request_id: Some(fixtures::REQUEST_ID.to_owned()),
        label: label.to_owned(),
        secret_sha256: key.secret_sha256(),
        operations: None,
        created_at: timestamp(SystemTime::now()),
        expires_at: None,
        revoked_at: None,
    }
}

/// Stores a record unless its key exists. Returns the record that is then stored.
async fn insert(
    client: &Client,
    tables: &TableNames,
    table: Table,
    record: &Value,
) -> Result<Item> {
    let item: Item = serde_dynamo::to_item(record)?;
    let inserted = client
        .put_item()
        .table_name(tables.name(table))
        .set_item(Some(item.clone()))
        .condition_expression("attribute_not_exists(#key)")
        .expression_attribute_names("#key", table.primary_key[0])
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
        .send()
        .await;
    match inserted.map_err(SdkError::into_service_error) {
        Ok(_) => Ok(item),
        Err(PutItemError::ConditionalCheckFailedException(failure)) => {
            failure.item.context("DynamoDB returned no item")
        }
        Err(error) => Err(error)
            .with_context(|| format!("cannot store a demo record in {}", tables.name(table))),
    }
}
