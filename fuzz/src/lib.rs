//! The service that the fuzz targets call, and the checks of its responses.

use std::{sync::LazyLock, time::SystemTime};

use lambda_runtime::{Context, LambdaEvent};
use serde_json::{Value, value::RawValue};
use tokio::runtime::{Builder, Runtime};
use workspace_local::instant;
use workspace_management::service::Service;

static SERVICE: LazyLock<(Runtime, Service)> = LazyLock::new(|| {
    let runtime = Builder::new_current_thread().enable_all().build();
    (runtime.expect("a runtime"), instant::service())
});

/// Sends an event to the service and checks the response. The service turns a panic into a 500.
///
/// # Panics
/// If the response is neither a 204 nor a complete problem with a 4xx status.
pub fn send(event: Box<RawValue>) {
    let (runtime, service) = &*SERVICE;
    let response = runtime.block_on(service.handle(
        LambdaEvent::new(event, Context::default()),
        SystemTime::now(),
    ));
    let response = serde_json::to_value(response).expect("JSON");
    let status = response["statusCode"].as_u64().expect("a status");
    if status == 204 {
        assert!(response["body"].is_null(), "{response}");
        return;
    }
    assert!((400..500).contains(&status), "{response}");
    let problem: Value =
        serde_json::from_str(response["body"].as_str().expect("a body")).expect("a problem");
    assert_eq!(problem["status"], status, "{response}");
    for member in ["type", "title", "detail", "code", "request_id"] {
        assert!(problem[member].is_string(), "{response}");
    }
}
