//! The demo organization, and the API key that `events/` and the page of `workspacectl serve` send.

use std::time::SystemTime;

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::{Client, error::ProvideErrorMetadata as _, types::AttributeValue};
use serde::Serialize;
use serde_json::json;
use workspace_management::{
    api_key::{ApiKey, KeyRecord},
    store::{Table, TableNames, timestamp},
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
    insert(client, tables, Table::ORGANIZATIONS, &organization).await?;
    let stored = client
        .get_item()
        .consistent_read(true)
        .table_name(tables.name(Table::ORGANIZATIONS))
        .key("org_id", AttributeValue::S(DEMO_ORGANIZATION.to_owned()))
        .send()
        .await
        .context("cannot read the demo organization")?;
    let stored = stored.item.unwrap_or_default();
    // An organization that another program has stored may have no registration for keys.
    let Some(Ok(registration)) = stored.get("request_id").map(AttributeValue::as_s) else {
        return Ok(());
    };
    let mut key = serde_json::to_value(key_record(DEMO_KEY, DEMO_ORGANIZATION, "demo"))?;
    key["last_four"] = json!(DEMO_KEY[DEMO_KEY.len() - 4..]);
    key["org_request_id"] = json!(registration);
    insert(client, tables, Table::KEYS, &key).await?;
    adopt_key(client, tables, registration).await
}

/// Changes the registration to which an existing demo key belongs. An earlier version can have stored
/// the key, or an operator can have registered the demo organization again.
async fn adopt_key(client: &Client, tables: &TableNames, registration: &str) -> Result<()> {
    let key_id = ApiKey::parse(DEMO_KEY).expect("a well-formed API key").id;
    let updated = client
        .update_item()
        .table_name(tables.name(Table::KEYS))
        .key("key_id", AttributeValue::S(key_id.to_owned()))
        .update_expression("SET org_request_id = :id")
        .condition_expression("attribute_not_exists(org_request_id) OR org_request_id <> :id")
        .expression_attribute_values(":id", AttributeValue::S(registration.to_owned()))
        .send()
        .await;
    match updated {
        Err(error) if error.code() == Some("ConditionalCheckFailedException") => Ok(()),
        updated => updated.map(|_| ()).context("cannot change the demo key"),
    }
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

/// Stores a record unless its key exists.
async fn insert(
    client: &Client,
    tables: &TableNames,
    table: Table,
    record: &impl Serialize,
) -> Result<()> {
    let inserted = client
        .put_item()
        .table_name(tables.name(table))
        .set_item(Some(serde_dynamo::to_item(record)?))
        .condition_expression("attribute_not_exists(#key)")
        .expression_attribute_names("#key", table.primary_key[0])
        .send()
        .await;
    match inserted {
        Err(error) if error.code() == Some("ConditionalCheckFailedException") => Ok(()),
        inserted => inserted
            .map(|_| ())
            .with_context(|| format!("cannot store a demo record in {}", tables.name(table))),
    }
}
