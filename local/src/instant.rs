//! A service whose DynamoDB responds at once, to count the service's instructions.

use std::time::Duration;

use aws_sdk_dynamodb::config::http::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::{
    client::http::{HttpConnector, HttpConnectorFuture},
    http::StatusCode,
};
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};
use workspace_management::{auth::AnonymousOperations, service::Service, store::Store};

use crate::{
    demo::{DEMO_KEY, DEMO_ORGANIZATION, key_record},
    dynamodb::{action, http_client},
    tables::{sdk_config, table_names},
};

/// A service that caches API keys for an hour.
pub fn service() -> Service {
    let config = sdk_config("http://dynamodb").http_client(http_client(Instant::new()));
    let store = Store::new(config, table_names(), Duration::from_secs(3600));
    Service::new(store, AnonymousOperations::Allowed)
}

/// A DynamoDB that finds the record of the demo key under every key, and accepts every write.
#[derive(Debug)]
struct Instant {
    item: Value,
}

impl Instant {
    fn new() -> Self {
        let record = key_record(DEMO_KEY, DEMO_ORGANIZATION, "demo");
        let item: serde_dynamo::Item = serde_dynamo::to_item(record).expect("a record");
        Self { item: json!(item) }
    }
}

impl HttpConnector for Instant {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let item = &self.item;
        let body = match action(&request) {
            "BatchGetItem" => json!({
                "Responses": { "KeysTable": [item], "OrganizationsTable": [item], "TeamsTable": [item] }
            }),
            _ => json!({}),
        };
        let status = StatusCode::try_from(200).expect("a valid status");
        HttpConnectorFuture::ready(Ok(HttpResponse::new(
            status,
            SdkBody::from(body.to_string()),
        )))
    }
}
