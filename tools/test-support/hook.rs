//! The hook between a program and DynamoDB, or a different service of AWS. It sees each request
//! first, and chooses its fault.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use aws_sdk_dynamodb::config::http::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::{
    http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector},
    result::ConnectorError,
};
use aws_smithy_types::body::SdkBody;
use axum::{
    Router,
    body::{Body, Bytes},
    http::{self, HeaderMap},
};
use serde_json::Value;
use workspace_local::dynamodb::{DynamoDb, is_read};

use crate::faults::{Fault, Phase};

/// A request to a service of AWS.
#[derive(Debug, Clone)]
pub struct Request {
    /// Such as `dynamodb`.
    pub service: String,
    /// Such as `GetItem`.
    pub action: String,
    /// Null if the body is not JSON.
    pub body: Value,
    /// How many requests the hook saw before.
    pub number: usize,
}

impl Request {
    /// A request to DynamoDB.
    pub fn new(action: impl Into<String>, body: Value) -> Self {
        Self {
            service: "dynamodb".to_owned(),
            action: action.into(),
            body,
            number: 0,
        }
    }

    /// Reads a signed request.
    pub fn read(request: &HttpRequest) -> Self {
        let header = |name| request.headers().get(name);
        // `AWS4-HMAC-SHA256 Credential=KEY/DATE/REGION/SERVICE/aws4_request, ...`
        let service = header("authorization").unwrap().split('/').nth(3).unwrap();
        let body = str::from_utf8(request.body().bytes().unwrap()).unwrap();
        let action = match header("x-amz-target") {
            Some(target) => target.split('.').nth(1),
            None if service == "lambda" => Some("GetFunctionConfiguration"),
            None => body.split(['=', '&']).nth(1), // the first parameter of a form
        };
        Self {
            service: service.to_owned(),
            ..Self::new(
                action.unwrap(),
                serde_json::from_str(body).unwrap_or_default(),
            )
        }
    }

    /// Sends the request to a DynamoDB in this process.
    pub fn send_to(&self, dynamodb: &DynamoDb) -> HttpResponse {
        dynamodb.handle(&self.action, self.body.to_string().as_bytes())
    }

    pub fn is_read(&self) -> bool {
        is_read(&self.action)
    }

    /// Whether the request is a transaction with a write of this kind, such as `Delete`.
    pub fn writes(&self, kind: &str) -> bool {
        let actions = self.body["TransactItems"].as_array().into_iter().flatten();
        actions.into_iter().any(|action| !action[kind].is_null())
    }

    /// Whether the whole request is a strongly consistent read.
    pub fn is_consistent(&self) -> bool {
        match self.body["RequestItems"].as_object() {
            Some(reads) => reads.values().all(|read| read["ConsistentRead"] == true),
            None => self.body["ConsistentRead"] == true,
        }
    }
}

/// Sees a request, and chooses its fault. `None` means that the request has no fault.
pub trait Hook: Fn(&Request) -> Option<(Fault, Phase)> + Send + Sync + 'static {}

impl<F: Fn(&Request) -> Option<(Fault, Phase)> + Send + Sync + 'static> Hook for F {}

/// Sends requests through a connector, unless the hook chooses a fault.
#[derive(Clone)]
pub struct Hooked {
    connector: SharedHttpConnector,
    hook: Arc<dyn Hook>,
    count: Arc<AtomicUsize>,
}

impl Hooked {
    pub fn new(connector: impl HttpConnector + 'static, hook: impl Hook) -> Self {
        Self {
            connector: SharedHttpConnector::new(connector),
            hook: Arc::new(hook),
            count: Arc::default(),
        }
    }

    async fn send(self, http_request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let mut request = Request::read(&http_request);
        request.number = self.count.fetch_add(1, Ordering::SeqCst);
        match (self.hook)(&request) {
            None => self.connector.call(http_request).await,
            Some((fault, phase)) => {
                fault
                    .inject(phase, &request, http_request, &self.connector)
                    .await
            }
        }
    }
}

impl HttpConnector for Hooked {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        HttpConnectorFuture::new(self.clone().send(request))
    }
}

impl fmt::Debug for Hooked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Hooked")
    }
}

/// Routes that pass the requests of processes to a connector.
pub fn routes(connector: impl HttpConnector + 'static) -> Router {
    let connector = SharedHttpConnector::new(connector);
    Router::new().fallback(async move |headers: HeaderMap, body: Bytes| {
        let mut request = http::Request::new(SdkBody::from(body));
        *request.headers_mut() = headers;
        let response = connector.call(request.try_into().unwrap()).await;
        // A panic closes the connection.
        let response = response.unwrap().try_into_http1x().unwrap();
        response.map(|body| Body::from(body.bytes().unwrap().to_vec()))
    })
}
