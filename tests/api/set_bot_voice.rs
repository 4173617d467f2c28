//! `set_bot_voice`.

use serde_json::{Value, json};
use workspace_management::store::Table;

use crate::support::{World, assert_made_by, key_id, refuses};

const PATH: &str = "/api/v1/bot/playground/bot-7/voice";

#[tokio::test]
async fn set_bot_voice_writes_the_record_under_the_organization_of_the_key() {
    let world = World::new().await;
    let key = world.issue("acme", |_| {}).await;

    world
        .holder(&key)
        .post(PATH, json!({ "type": "alloy", "enabled": true }))
        .await
        .is_success();

    let voice = world.record(Table::BOT_VOICES).await;
    assert_eq!(voice["org_id"], "acme");
    assert_eq!(voice["bot_id"], "bot-7");
    assert_eq!(voice["type"], "alloy");
    assert_eq!(voice["enabled"], true);
    assert_made_by(&voice, &key_id(&key));
    assert_eq!(voice["updated_at"], voice["created_at"]);
    assert_eq!(voice["updated_by"], voice["created_by"]);
}

#[tokio::test]
async fn set_bot_voice_lets_the_last_write_win_and_keeps_the_creation() {
    let world = World::new().await;
    world
        .acme()
        .await
        .post(PATH, json!({ "type": "alloy", "enabled": true }))
        .await
        .is_success();
    let first = world.record(Table::BOT_VOICES).await;
    let other = world.issue("acme", |_| {}).await;

    world
        .holder(&other)
        .post(PATH, json!({ "type": "echo", "enabled": false }))
        .await
        .is_success();

    let voice = world.record(Table::BOT_VOICES).await;
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
    let world = World::new().await;
    let acme = world.acme().await;
    acme.post(PATH, json!({ "type": "alloy", "enabled": true }))
        .await
        .is_success();
    let first = world.record(Table::BOT_VOICES).await;

    acme.post(PATH, json!({ "type": "alloy", "enabled": true }))
        .await
        .is_success();

    assert_eq!(world.record(Table::BOT_VOICES).await, first);
}

#[tokio::test]
async fn set_bot_voice_keeps_bots_of_the_same_id_apart() {
    let world = World::new().await;
    world.register("globex").await;
    let acme = world.acme().await;
    let globex = world.holder(&world.issue("globex", |_| {}).await);

    acme.post(PATH, json!({ "type": "alloy", "enabled": true }))
        .await
        .is_success();
    globex
        .post(PATH, json!({ "type": "echo", "enabled": false }))
        .await
        .is_success();

    let voices = world.records(Table::BOT_VOICES).await;
    let of = |voice: &Value| (voice["org_id"].clone(), voice["type"].clone());
    let expected =
        [("acme", "alloy"), ("globex", "echo")].map(|(org, voice)| (json!(org), json!(voice)));
    assert_eq!(voices.iter().map(of).collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn set_bot_voice_refuses_every_bad_body() {
    refuses(
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
