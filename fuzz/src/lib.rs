//! The service's front door for a fuzzer.

use std::sync::LazyLock;

use lambda_runtime::{Context, LambdaEvent};
use serde_json::{Value, value::RawValue};
use tokio::runtime::{Builder, Runtime};
use workspace_management::event::Service;

#[path = "../../benches/instant.rs"]
mod instant;

/// The key that the seeds hold.
pub const KEY: &str = instant::KEY;

static DOOR: LazyLock<(Runtime, Service)> = LazyLock::new(|| {
    let runtime = Builder::new_current_thread().enable_all().build();
    (runtime.expect("a runtime"), instant::service())
});

/// Sends an event. A panic inside the service is a 500.
///
/// # Panics
/// If the answer is none that a client may see, whatever was sent.
pub fn send(event: Box<RawValue>) {
    let (runtime, service) = &*DOOR;
    let answer = runtime.block_on(service.answer(LambdaEvent::new(event, Context::default())));
    let answer = serde_json::to_value(answer).expect("JSON");
    let status = answer["statusCode"].as_u64().expect("a status");
    if status == 204 {
        assert!(answer["body"].is_null(), "{answer}");
        return;
    }
    assert!((400..500).contains(&status), "{answer}");
    let problem: Value =
        serde_json::from_str(answer["body"].as_str().expect("a body")).expect("a problem");
    assert_eq!(problem["status"], status, "{answer}");
    for member in ["type", "title", "detail", "code", "request_id"] {
        assert!(problem[member].is_string(), "{answer}");
    }
}
