//! Tests of `set_bot_voice`, which sets the voice of a bot.

use std::time::Duration;

use serde_json::json;
use workspace_management::{operation::Operation, store::Table};

use super::{Sample, Samples, Stored, Values, Write};
use crate::support::{TestApp, assert_created_by, assert_rejected, key_id};

const PATH: &str = "/api/v1/bot/playground/bot-7/voice";

inventory::submit!(Samples(Operation::SetBotVoice, sample, Vec::new));

/// A sample for the tests that cover every operation.
fn sample(values: &Values) -> Sample {
    let (voice, enabled) = (&values.entries[0].0, values.flag);
    let key = json!({ "org_id": "acme", "bot_id": "bot-7" });
    let content = json!({ "type": voice, "enabled": enabled });
    Sample {
        path: PATH.to_owned(),
        body: content.clone(),
        records: vec![Stored::new(Table::BOT_VOICES, key, content)],
        write: Write::Replace,
        requires: None,
    }
}

#[tokio::test]
async fn stores_the_voice_in_the_organization_of_the_api_key() {
    let app = TestApp::new().await;
    let key = app.issue_key("acme", |_| {}).await;
    let acme = app.with_key(&key);

    let body = json!({ "type": "alloy", "enabled": true });
    acme.post(PATH, body).await.assert_success();

    let voice = app.only_record(Table::BOT_VOICES).await;
    assert_eq!(voice["org_id"], "acme");
    assert_eq!(voice["bot_id"], "bot-7");
    assert_eq!(voice["type"], "alloy");
    assert_eq!(voice["enabled"], true);
    assert_created_by(&voice, &key_id(&key));
    assert_eq!(voice["updated_at"], voice["created_at"]);
    assert_eq!(voice["updated_by"], voice["created_by"]);
}

#[tokio::test]
async fn replaces_the_voice_and_keeps_created_at_and_created_by() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let other_key = app.issue_key("acme", |_| {}).await;
    let other_client = app.with_key(&other_key);
    let body = json!({ "type": "alloy", "enabled": true });
    acme.post(PATH, body).await.assert_success();
    let first = app.only_record(Table::BOT_VOICES).await;
    app.advance_clock(Duration::from_secs(1));

    let body = json!({ "type": "echo", "enabled": false });
    other_client.post(PATH, body).await.assert_success();

    let second = app.only_record(Table::BOT_VOICES).await;
    assert_eq!(second["type"], "echo");
    assert_eq!(second["enabled"], false);
    assert_eq!(second["created_at"], first["created_at"]);
    assert_eq!(second["created_by"], first["created_by"]);
    assert_ne!(second["updated_at"], first["updated_at"]);
    assert_eq!(second["updated_by"], key_id(&other_key));
}

/// Without its condition, the update would change `updated_at`.
#[tokio::test]
async fn a_repeated_request_does_not_change_updated_at() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let body = json!({ "type": "alloy", "enabled": true });
    acme.post(PATH, body.clone()).await.assert_success();
    let first = app.only_record(Table::BOT_VOICES).await;
    app.advance_clock(Duration::from_secs(1));

    acme.post(PATH, body).await.assert_success();

    assert_eq!(app.only_record(Table::BOT_VOICES).await, first);
}

#[tokio::test]
async fn stores_the_voices_of_different_organizations_separately() {
    let app = TestApp::new().await;
    app.register("globex").await;
    let acme = app.client_with_new_key("acme").await;
    let globex = app.client_with_new_key("globex").await;

    for (client, voice_type) in [(&acme, "alloy"), (&globex, "echo")] {
        let body = json!({ "type": voice_type, "enabled": true });
        client.post(PATH, body).await.assert_success();
    }

    let voices = app.records(Table::BOT_VOICES).await;
    let found: Vec<_> = voices
        .iter()
        .map(|voice| [&voice["org_id"], &voice["type"]])
        .collect();
    assert_eq!(found, [["acme", "alloy"], ["globex", "echo"]]);
}

#[tokio::test]
async fn returns_422_for_an_invalid_body() {
    assert_rejected(
        PATH,
        Table::BOT_VOICES,
        &[
            (
                "an empty object",
                json!({}),
                &["#/type is required", "#/enabled is required"],
            ),
            (
                "no type",
                json!({ "enabled": true }),
                &["#/type is required"],
            ),
            (
                "an empty type",
                json!({ "type": "", "enabled": true }),
                &["#/type must not be empty"],
            ),
            (
                "a type of 65 characters",
                json!({ "type": "x".repeat(65), "enabled": true }),
                &["#/type must have at most 64 characters, but has 65"],
            ),
            (
                "a string instead of a boolean",
                json!({ "type": "alloy", "enabled": "true" }),
                &["#/enabled must be a boolean, but is a string"],
            ),
            (
                "null instead of a boolean",
                json!({ "type": "alloy", "enabled": null }),
                &["#/enabled must be a boolean, but is null"],
            ),
        ],
    )
    .await;
}
