//! `set_bot_voice`.

use serde_json::{Value, json};
use workspace_management::store::Table;

use super::{Sample, Stored, Values, Write};
use crate::support::{TestApp, assert_created_by, assert_rejected, key_id};

const PATH: &str = "/api/v1/bot/playground/bot-7/voice";

/// A sample for the tests that cover every operation.
pub fn sample(values: &Values) -> Sample {
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
async fn set_bot_voice_writes_the_record_under_the_organization_of_the_key() {
    let app = TestApp::new().await;
    let key = app.issue_key("acme", |_| {}).await;

    app.with_key(&key)
        .post(PATH, json!({ "type": "alloy", "enabled": true }))
        .await
        .assert_success();

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
async fn set_bot_voice_lets_the_last_write_win_and_keeps_the_creation() {
    let app = TestApp::new().await;
    app.key_holder("acme")
        .await
        .post(PATH, json!({ "type": "alloy", "enabled": true }))
        .await
        .assert_success();
    let first = app.only_record(Table::BOT_VOICES).await;
    let other = app.issue_key("acme", |_| {}).await;

    app.with_key(&other)
        .post(PATH, json!({ "type": "echo", "enabled": false }))
        .await
        .assert_success();

    let voice = app.only_record(Table::BOT_VOICES).await;
    assert_eq!(
        (&voice["type"], &voice["enabled"]),
        (&json!("echo"), &json!(false))
    );
    assert_eq!(voice["created_at"], first["created_at"]);
    assert_eq!(voice["created_by"], first["created_by"]);
    assert_eq!(voice["updated_by"], key_id(&other));
}

#[tokio::test]
async fn set_bot_voice_changes_nothing_when_it_is_repeated() {
    let app = TestApp::new().await;
    let acme = app.key_holder("acme").await;
    acme.post(PATH, json!({ "type": "alloy", "enabled": true }))
        .await
        .assert_success();
    let first = app.only_record(Table::BOT_VOICES).await;

    acme.post(PATH, json!({ "type": "alloy", "enabled": true }))
        .await
        .assert_success();

    assert_eq!(app.only_record(Table::BOT_VOICES).await, first);
}

#[tokio::test]
async fn set_bot_voice_keeps_bots_of_the_same_id_apart() {
    let app = TestApp::new().await;
    app.register("globex").await;
    let acme = app.key_holder("acme").await;
    let globex = app.with_key(&app.issue_key("globex", |_| {}).await);

    acme.post(PATH, json!({ "type": "alloy", "enabled": true }))
        .await
        .assert_success();
    globex
        .post(PATH, json!({ "type": "echo", "enabled": false }))
        .await
        .assert_success();

    let voices = app.records(Table::BOT_VOICES).await;
    let of = |voice: &Value| (voice["org_id"].clone(), voice["type"].clone());
    let expected =
        [("acme", "alloy"), ("globex", "echo")].map(|(org, voice)| (json!(org), json!(voice)));
    assert_eq!(voices.iter().map(of).collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn set_bot_voice_refuses_every_bad_body() {
    assert_rejected(
        PATH,
        Table::BOT_VOICES,
        &[
            (
                "nothing",
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
                "a string as boolean",
                json!({ "type": "alloy", "enabled": "true" }),
                &["#/enabled must be a boolean, but is a string"],
            ),
            (
                "null as boolean",
                json!({ "type": "alloy", "enabled": null }),
                &["#/enabled must be a boolean, but is null"],
            ),
        ],
    )
    .await;
}
