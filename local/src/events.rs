//! The events of `events/`, one per operation, in an order in which each finds what it needs.

use anyhow::{Context as _, Result};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;

/// The name and the text of every event, the one that creates the team before the one that adds users to it.
pub const ALL: [(&str, &str); 6] = [
    ("add_models", include_str!("../../events/add_models.json")),
    ("create_team", include_str!("../../events/create_team.json")),
    (
        "add_team_users",
        include_str!("../../events/add_team_users.json"),
    ),
    (
        "set_bot_voice",
        include_str!("../../events/set_bot_voice.json"),
    ),
    (
        "create_data_store",
        include_str!("../../events/create_data_store.json"),
    ),
    (
        "create_logging_instance",
        include_str!("../../events/create_logging_instance.json"),
    ),
];

/// The part of an HTTP API's event (payload 2.0) that makes a request.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    raw_path: String,
    headers: Headers,
    body: String,
}

#[derive(Deserialize)]
struct Headers {
    #[serde(rename = "content-type")]
    content_type: String,
    authorization: Option<String>,
}

/// A command that sends an event's request to a service, to be pasted into a shell.
///
/// # Errors
/// If the event is not as expected.
pub fn curl(event: &str, base_url: &str) -> Result<String> {
    let event: Event = serde_json::from_str(event)?;
    let body = STANDARD
        .decode(&event.body)
        .context("the event's body is not base64")?;
    let body = String::from_utf8(body)?.replace('\'', r"'\''");
    let mut command = format!("curl -i {base_url}{}", event.raw_path);
    if let Some(authorization) = event.headers.authorization {
        command += &format!(" -H 'Authorization: {authorization}'");
    }
    Ok(command
        + &format!(
            " -H 'Content-Type: {}' -d '{body}'",
            event.headers.content_type
        ))
}
