//! The service over a DynamoDB that answers at once, so that the service and the SDK are all there is: to count its
//! instructions, and for a fuzzer.

use std::time::Duration;

use aws_sdk_dynamodb::config::{BehaviorVersion, Builder, Credentials, Region, SharedHttpClient};
use aws_smithy_http_client::test_util::infallible_client_fn;
use aws_smithy_types::body::SdkBody;
use serde_json::json;
use workspace_management::{
    auth::{AnonymousOperations, Auth},
    event::Service,
    key::ApiKey,
    store::{Store, Tables},
};

/// The key that the events hold, acme's.
pub(crate) const KEY: &str = "wsk_acmeDemoKey1_PublicDemoKeyOfAcmeOnOneMachineNotASecret0002hGfAJ";

/// A service that knows the key once it has read it.
pub(crate) fn service() -> Service {
    let config = Builder::new()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "local"))
        .http_client(dynamodb());
    let tables = Tables::named(|table| Some(table.logical_id.to_owned())).expect("names");
    let auth = Auth::new(AnonymousOperations::Allowed, Duration::from_secs(3600));
    Service::new(auth, Store::new(config, tables))
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
