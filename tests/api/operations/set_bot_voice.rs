//! Tests of `set_bot_voice`, which sets the voice of a bot.

use std::time::Duration;

use serde_json::json;
use test_support::{TestApp, key_id};
use workspace_management::store::Table;

use super::{Sample, Stored, Values, Write};

const PATH: &str = "/api/v1/bot/playground/bot-7/voice";

/// A sample for the tests that cover every operation.
pub(super) fn sample(values: &Values) -> Sample {
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
async fn replaces_the_voice_and_keeps_created_at_and_created_by() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let other_key = app.issue_key("acme", |_| {}).await;
    let other_client = app.with_key(&other_key);
    let body = json!({ "type": "alloy", "enabled": true });
    acme.post(PATH, body).await.assert_success();
    let first = app.only_record(Table::BOT_VOICES).await;
    assert_eq!(first["updated_at"], first["created_at"]);
    assert_eq!(first["updated_by"], first["created_by"]);
    let mut before = first.clone();

    // Each differs from the one before in one field.
    for (voice, enabled) in [("echo", true), ("echo", false)] {
        app.advance_clock(Duration::from_secs(1));
        let body = json!({ "type": voice, "enabled": enabled });
        other_client.post(PATH, body).await.assert_success();

        let after = app.only_record(Table::BOT_VOICES).await;
        assert_eq!(after["type"], voice);
        assert_eq!(after["enabled"], enabled);
        assert_eq!(after["created_at"], first["created_at"]);
        assert_eq!(after["created_by"], first["created_by"]);
        assert_ne!(after["updated_at"], before["updated_at"]);
        assert_eq!(after["updated_by"], key_id(&other_key));
        before = after;
    }
}
