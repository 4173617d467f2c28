//! The network between a process and DynamoDB.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use aws_sdk_dynamodb::config::http::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::{
    http::{HttpConnector, HttpConnectorFuture},
    result::ConnectorError,
};
use aws_smithy_types::body::SdkBody;
use fastrand::Rng;
use serde_json::{Value, json};
use tokio::{sync::oneshot, time::sleep};
use workspace_local::dynamodb::{DynamoDb, action, is_read};

use super::weakness::Weakness;

/// Who sends a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sender {
    Function,
    Operator,
}

/// The network between a process and DynamoDB. Requests take a while, and a write can arrive up to
/// 20 seconds late, even if its sender has given up or was killed.
#[derive(Clone)]
pub(super) struct Network {
    pub(super) dynamodb: DynamoDb,
    pub(super) rng: Arc<Mutex<Rng>>,
    pub(super) sender: Sender,
    pub(super) weakness: Option<Weakness>,
}

impl Network {
    fn random(&self, limit: u64) -> u64 {
        self.rng.lock().expect("a lock").u64(0..limit)
    }

    fn milliseconds(&self, limit: u64) -> Duration {
        Duration::from_millis(self.random(limit))
    }

    /// The request as DynamoDB receives it.
    fn weaken(&self, request: &HttpRequest) -> HttpRequest {
        let bytes = request.body().bytes().expect("a body in memory");
        let mut body: Value = serde_json::from_slice(bytes).expect("JSON");
        let action = action(request);
        if let (Some(weakness), Sender::Operator) = (self.weakness, self.sender) {
            weakness.apply(action, &mut body);
        }
        let mut copy = HttpRequest::new(SdkBody::from(body.to_string()));
        let target = format!("DynamoDB_20120810.{action}");
        copy.headers_mut().insert("x-amz-target", target);
        copy
    }

    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let weakened = self.weaken(&request);
        if is_read(&request) {
            sleep(self.milliseconds(300)).await;
            let response = self.dynamodb.handle(&weakened);
            sleep(self.milliseconds(300)).await;
            if is_consistent(&weakened) || self.random(2) == 0 {
                return Ok(response);
            }
            // An eventually consistent read can lack records.
            let empty = json!({ "Items": [], "Count": 0, "ScannedCount": 0 });
            let body = SdkBody::from(empty.to_string());
            return Ok(HttpResponse::new(response.status(), body));
        }
        let is_late = self.random(100) < 40;
        let delay = self.milliseconds(if is_late { 20_001 } else { 200 });
        let (sender, response) = oneshot::channel();
        let dynamodb = self.dynamodb.clone();
        tokio::spawn(async move {
            sleep(delay).await;
            drop(sender.send(dynamodb.handle(&weakened)));
        });
        let response = response.await;
        response.map_err(|error| ConnectorError::io(error.into()))
    }
}

/// Whether a read is strongly consistent.
fn is_consistent(request: &HttpRequest) -> bool {
    let bytes = request.body().bytes().expect("a body in memory");
    let body: Value = serde_json::from_slice(bytes).expect("JSON");
    match body["RequestItems"].as_object() {
        Some(tables) => tables.values().all(|keys| keys["ConsistentRead"] == true),
        None => body["ConsistentRead"] == true,
    }
}

impl HttpConnector for Network {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let network = self.clone();
        HttpConnectorFuture::new(async move { network.send(request).await })
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Network")
    }
}
