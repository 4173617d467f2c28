//! Tests of `set_bot_voice`, which sets the voice of a bot.

use std::time::Duration;

use serde_json::json;
use test_support::{TestApp, key_id};
use workspace_management::records::Table;

use super::{ExpectedRecord, Sample, SampleValues};
use crate::bodies::violations;

const PATH: &str = "/api/v1/bot/playground/bot-7/voice";

pub(super) fn sample(values: &SampleValues) -> Sample {
    let key = json!({ "org_id": "acme", "bot_id": "bot-7" });
    let content = json!({ "type": values.entries[0].0, "enabled": values.flag });
    let record = ExpectedRecord::new(Table::BOT_VOICES, key, content.clone());
    Sample {
        replaces: true,
        ..Sample::new(PATH, content, vec![record])
    }
}

#[tokio::test]
async fn replaces_the_voice_and_keeps_created_at_and_created_by() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let second_key = app.issue_key("acme", |_| {}).await;
    let second_client = app.client(&second_key);
    let body = json!({ "type": "alloy", "enabled": true });
    acme.post(PATH, body).await.assert_success();
    let first = app.only_record(Table::BOT_VOICES).await;
    assert_eq!(first["updated_at"], first["created_at"]);
    assert_eq!(first["updated_by"], first["created_by"]);
    let mut before = first.clone();

    // Each voice differs from the previous voice in one field.
    for (voice, enabled) in [("echo", true), ("echo", false)] {
        app.advance_clock(Duration::from_secs(1));
        let body = json!({ "type": voice, "enabled": enabled });
        second_client.post(PATH, body).await.assert_success();

        let after = app.only_record(Table::BOT_VOICES).await;
        assert_eq!(after["type"], voice);
        assert_eq!(after["enabled"], enabled);
        assert_eq!(after["created_at"], first["created_at"]);
        assert_eq!(after["created_by"], first["created_by"]);
        assert_ne!(after["updated_at"], before["updated_at"]);
        assert_eq!(after["updated_by"], key_id(&second_key));
        before = after;
    }
}

#[tokio::test]
async fn the_voice_belongs_to_the_organization_of_the_caller() {
    let app = TestApp::new().await;
    app.register("globex").await;
    let globex = app.client_with_new_key("globex").await;

    let body = json!({ "type": "alloy", "enabled": true });
    globex.post(PATH, body).await.assert_success();

    let voice = app.only_record(Table::BOT_VOICES).await;
    assert_eq!(voice["org_id"], "globex");
}

#[tokio::test]
async fn every_violation_of_the_type_is_reported() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let separators = "#/type must not contain control characters or line separators";
    let padding = "#/type must not start or end with white space";
    let too_long = "#/type must have at most 64 characters, but has 65";
    let long = format!("{}\n{}", "a".repeat(32), "b".repeat(32));
    for (voice, expected) in [
        (&*long, &[too_long, separators][..]),
        ("a\u{2028}b", &[separators]),
        ("a\u{2029}b", &[separators]),
        (" a", &[padding]),
        ("a\u{feff}", &[padding]),
        ("\u{a0}a", &[padding]),
        ("a\u{3000}", &[padding]),
    ] {
        let body = json!({ "type": voice, "enabled": true });
        let response = acme.post(PATH, body).await;
        assert_eq!(violations(&response), expected, "{voice:?}");
    }
}
