//! The events in `events/`: for each operation, an HTTP API event that succeeds with the demo
//! organization.

use anyhow::{Context as _, Result};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use workspace_management::operation::Operation;

/// Each operation and its event, in an order in which each event finds the records that it needs.
pub fn all() -> impl Iterator<Item = (Operation, &'static str)> {
    Operation::ALL
        .iter()
        .map(|operation| (*operation, get(*operation)))
}

/// The event of an operation.
pub fn get(operation: Operation) -> &'static str {
    match operation {
        Operation::AddModels => include_str!("../../events/add_models.json"),
        Operation::AddTeamUsers => include_str!("../../events/add_team_users.json"),
        Operation::CreateDataStore => include_str!("../../events/create_data_store.json"),
        Operation::CreateLoggingInstance => {
            include_str!("../../events/create_logging_instance.json")
        }
        Operation::CreateTeam => include_str!("../../events/create_team.json"),
        Operation::SetBotVoice => include_str!("../../events/set_bot_voice.json"),
    }
}

/// The members of an event that make up its HTTP request.
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

/// A `curl` command that sends an event's request to a service, for a POSIX shell. It sends the
/// default key if the event has none.
///
/// # Errors
/// If the event is not an HTTP API event with a Base64-encoded body.
pub fn curl(event: &str, base_url: &str, default_key: Option<&str>) -> Result<String> {
    let event: Event = serde_json::from_str(event)?;
    let body = STANDARD
        .decode(&event.body)
        .context("the event's body is not Base64")?;
    let body = String::from_utf8(body)?.replace('\'', r"'\''");
    let mut command = format!("curl -i {base_url}{}", event.raw_path);
    let default = default_key.map(|key| format!("Bearer {key}"));
    if let Some(authorization) = event.headers.authorization.or(default) {
        command += &format!(" -H 'Authorization: {authorization}'");
    }
    command += &format!(" -H 'Content-Type: {}'", event.headers.content_type);
    Ok(format!("{command} -d '{body}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curl_quotes_the_body() {
        let event = serde_json::json!({
            "rawPath": "/path",
            "headers": { "content-type": "*/*" },
            "body": STANDARD.encode("it's"),
        });
        assert_eq!(
            curl(&event.to_string(), "http://localhost", None).expect("a command"),
            r"curl -i http://localhost/path -H 'Content-Type: */*' -d 'it'\''s'"
        );
    }
}
