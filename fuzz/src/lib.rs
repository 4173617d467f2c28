//! The service's front door for a fuzzer, over a DynamoDB that answers at once.

use std::{sync::LazyLock, time::Duration};

use aws_sdk_dynamodb::config::{BehaviorVersion, Builder, Credentials, Region, SharedHttpClient};
use aws_smithy_http_client::test_util::infallible_client_fn;
use aws_smithy_types::body::SdkBody;
use lambda_runtime::{Context, LambdaEvent};
use serde_json::{Value, json, value::RawValue};
use tokio::runtime::Runtime;
use workspace_management::{
    auth::{AnonymousOperations, Auth},
    event::Service,
    key::ApiKey,
    store::{Store, Tables},
};

/// The key that the seeds hold.
pub const KEY: &str = "wsk_acmeDemoKey1_PublicDemoKeyOfAcmeOnOneMachineNotASecret0002hGfAJ";

static DOOR: LazyLock<(Runtime, Service)> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let config = Builder::new()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "local"))
        .http_client(dynamodb());
    let tables = Tables::named(|table| Some(table.logical_id.to_owned())).expect("names");
    let auth = Auth::new(AnonymousOperations::Allowed, Duration::from_secs(3600));
    (runtime, Service::new(auth, Store::new(config, tables)))
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

/// A DynamoDB that has the key and whatever else is asked for, and takes all that is written.
fn dynamodb() -> SharedHttpClient {
    infallible_client_fn(|request: http::Request<SdkBody>| {
        let key = ApiKey::parse(KEY).expect("a key");
        let item = json!({
            "key_id": { "S": key.id() },
            "org_id": { "S": "acme" },
            "secret_sha256": { "S": key.digest() },
            "created_at": { "S": "2026-01-01T00:00:00Z" },
        });
        let target = request.headers().get("x-amz-target");
        let action = target.and_then(|target| target.to_str().ok()?.rsplit('.').next());
        let body = match action {
            Some("GetItem") => json!({ "Item": item }),
            Some("BatchGetItem") => {
                json!({ "Responses": { "KeysTable": [item], "TeamsTable": [item] } })
            }
            _ => json!({}),
        };
        http::Response::new(SdkBody::from(body.to_string()))
    })
}
