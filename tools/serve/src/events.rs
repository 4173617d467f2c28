//! The events in `events/`: one HTTP API event per operation, for the demo organization.

use std::fs;

use anyhow::{Context as _, Result};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use workspace_management::operations::Operation;

/// The folder `events/` of the clone from which this package was built.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../events");

/// The event of an operation.
///
/// # Errors
/// If the event's file cannot be read.
pub fn get(operation: Operation) -> Result<String> {
    let file = format!("{FOLDER}/{}.json", operation.name());
    fs::read_to_string(&file).with_context(|| format!("cannot read {file}: add an event"))
}

/// The fields of an event that make up its HTTP request.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HttpEvent {
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

/// A `curl` command for a POSIX shell that sends an event's request to a service. The command sends
/// `default_key` if the event has no API key.
///
/// # Errors
/// If the event is not an HTTP API event with a Base64-encoded body.
pub fn curl(event: &str, base_url: &str, default_key: Option<&str>) -> Result<String> {
    let event: HttpEvent = serde_json::from_str(event)?;
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
