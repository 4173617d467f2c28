//! The demo organization, and the API key that `events/` and the page of `cargo serve` send.

use std::time::SystemTime;

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::Client;
use serde_json::json;
use workspace_management::{
    records::{Organization, Table},
    store::{TableNames, timestamp},
};
use workspace_records::item::new_key_record;

/// The demo organization.
pub const DEMO_ORGANIZATION: &str = "acme";

/// The API key of the demo organization. Public, and valid only for a service on this machine.
pub const DEMO_KEY: &str = "wsk_acmeDemoKey1_PublicDemoKeyOfAcmeOnOneMachineNotASecret0002hGfAJ";

/// The `request_id` of the demo organization's record.
const ORG_REQUEST_ID: &str = "0000000000000000";

/// Stores the demo organization and the record of its API key in new tables.
///
/// # Errors
/// If DynamoDB cannot be reached.
pub async fn store_demo(client: &Client, table_names: &TableNames) -> Result<()> {
    let now = timestamp(SystemTime::now());
    let organization = Organization {
        org_id: DEMO_ORGANIZATION.to_owned(),
        created_at: now.clone(),
        created_by: "demo@localhost".to_owned(),
        registration_id: Some(ORG_REQUEST_ID.to_owned()),
        ..Organization::default()
    };
    let key = new_key_record(DEMO_KEY, DEMO_ORGANIZATION, ORG_REQUEST_ID, "demo", &now)
        .context("the demo key is malformed")?;
    for (table, record) in [
        (Table::ORGANIZATIONS, json!(organization)),
        (Table::API_KEYS, json!(key)),
    ] {
        let name = table_names.get(table);
        client
            .put_item()
            .table_name(name)
            .set_item(Some(serde_dynamo::to_item(record)?))
            .send()
            .await
            .with_context(|| format!("cannot store a demo record in {name}"))?;
    }
    Ok(())
}
