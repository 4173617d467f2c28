//! Checks that the log contains no secrets.

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
    static GUARD: RefCell<Guard>;
}

/// What the log of the current request must not contain, and the lines that contain it.
struct Guard {
    secrets: Vec<String>,
    leaks: Vec<String>,
}

/// Handles an event at a time, and with a time limit. Returns the response as Lambda gets it. The
/// log of the request, at its most detailed level, must not contain a secret of the event.
///
/// # Panics
/// If it does.
pub async fn handle_checking_log(
    service: &Service,
    event: &Value,
    now: SystemTime,
    time_limit: Duration,
) -> Value {
    static LOG: Once = Once::new();
    LOG.call_once(|| {
        let levels = Targets::new()
            .with_default(LevelFilter::WARN)
            .with_target("workspace_management", LevelFilter::TRACE);
        let lines = tracing_subscriber::fmt::layer()
            .json()
            .with_writer(|| LogWriter);
        let log = tracing_subscriber::registry().with(lines.with_filter(levels));
        tracing::subscriber::set_global_default(log).unwrap();
    });
    let guard = Guard {
        secrets: secrets(event),
        leaks: vec![],
    };
    let request = async {
        let response = service
            .handle(invocation(event, now, time_limit), now)
            .await;
        GUARD.with(|guard| {
            let leaks = &guard.borrow().leaks;
            assert!(leaks.is_empty(), "the log contains secrets: {leaks:?}");
        });
        json!(response)
    };
    GUARD.scope(RefCell::new(guard), request).await
}

/// The API key, the body, and the names and descriptions of an event. Texts of up to four
/// characters are not included, because other parts of a line can contain them.
pub fn secrets(event: &Value) -> Vec<String> {
    let text = event["body"].as_str().unwrap_or_default();
    let decoded = STANDARD.decode(text).unwrap_or_default();
    let mut secrets = vec!["wsk_".to_owned(), text.to_owned()];
    for text in [text.as_bytes(), &decoded] {
        let body: Value = serde_json::from_slice(text).unwrap_or_default();
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
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        // Ignores lines that no request causes.
        let _ = GUARD.try_with(|guard| {
            let mut guard = guard.borrow_mut();
            if guard.secrets.iter().any(|secret| text.contains(secret)) {
                guard.leaks.push(text.into_owned());
            }
        });
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Without this test, a guard that finds nothing would go unnoticed.
#[tokio::test]
#[should_panic(expected = "the log contains secrets")]
async fn the_guard_finds_a_secret_in_the_log() {
    let app = crate::TestApp::new().await;
    // The log contains the request id, which the body repeats here.
    let body = json!({ "dataStoreName": "gateway-request" });
    let path = "/api/v1/org/acme/dataStores/create";
    app.anonymous().post(path, body).await;
}
