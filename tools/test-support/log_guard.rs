//! Checks that the log contains no part of an event that must stay secret.

use std::{
    cell::RefCell,
    io,
    sync::Once,
    time::{Duration, SystemTime},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tracing_subscriber::{
    filter::{LevelFilter, Targets},
    layer::{Layer as _, SubscriberExt as _},
};
use workspace_management::service::Service;

use crate::app::invocation;

tokio::task_local! {
    /// The log of the current request.
    static LOG: RefCell<Vec<u8>>;
}

/// Handles an event as if it were received at `now`, with a time limit. Returns the response that
/// Lambda gets.
///
/// # Panics If the log of the request, at its most detailed level, contains one of the [`secrets`]
/// of the event.
pub async fn handle_checking_log(
    service: &Service,
    event: &Value,
    now: SystemTime,
    time_limit: Duration,
) -> Value {
    static SUBSCRIBER: Once = Once::new();
    SUBSCRIBER.call_once(install_subscriber);
    let request = async {
        let response = service
            .handle(invocation(event, now, time_limit), now)
            .await;
        let log = LOG.with(|log| String::from_utf8_lossy(&log.borrow()).into_owned());
        for secret in secrets(event) {
            assert!(!log.contains(&secret), "the log contains {secret}: {log}");
        }
        json!(response)
    };
    LOG.scope(RefCell::default(), request).await
}

/// Sends the log of the test process to [`LogWriter`].
fn install_subscriber() {
    let levels = Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target("workspace_management", LevelFilter::TRACE);
    let lines = tracing_subscriber::fmt::layer()
        .json()
        .with_writer(|| LogWriter);
    let log = tracing_subscriber::registry().with(lines.with_filter(levels));
    tracing::subscriber::set_global_default(log).unwrap();
}

/// The prefix of API keys, and the body, the names and the descriptions in an event. Strings of up
/// to four bytes are left out, because a log line can contain them by chance.
pub fn secrets(event: &Value) -> Vec<String> {
    let body = event["body"].as_str().unwrap_or_default();
    let decoded = STANDARD.decode(body).unwrap_or_default();
    let mut secrets = vec!["wsk_".to_owned(), body.to_owned()];
    for bytes in [body.as_bytes(), &decoded] {
        let body: Value = serde_json::from_slice(bytes).unwrap_or_default();
        for (name, value) in body.as_object().into_iter().flatten() {
            let value = value.as_str().unwrap_or_default();
            if name != "type" {
                secrets.push(value.trim().to_owned());
            }
        }
    }
    secrets.retain(|secret| secret.len() > 4 || secret == "wsk_");
    secrets
}

struct LogWriter;

impl io::Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Ignores what is logged outside a request.
        let _ = LOG.try_with(|log| log.borrow_mut().extend(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Without this test, nobody would notice a guard that finds nothing.
#[tokio::test]
#[should_panic(expected = "the log contains gateway-request")]
async fn the_guard_finds_a_secret_in_the_log() {
    let app = crate::TestApp::new().await;
    // The log contains the request id, which the body repeats here.
    let body = json!({ "dataStoreName": "gateway-request" });
    let path = "/api/v1/org/acme/dataStores/create";
    app.anonymous_client().post(path, body).await;
}
