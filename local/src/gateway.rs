//! What API Gateway does in front of the function: an HTTP request to an event, the function's answer to a response.

use std::{collections::BTreeMap, sync::Arc, time::SystemTime};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{HeaderName, HeaderValue, Response, StatusCode},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use lambda_runtime::{Context, LambdaEvent};
use serde::Deserialize;
use serde_json::{json, value::to_raw_value};
use workspace_management::event::{Service, TIMEOUT};

/// API Gateway's own limit on a payload.
const LARGEST_PAYLOAD: usize = 10 * 1024 * 1024;

/// An HTTP server's routes: every request goes to the service, as an event of an HTTP API.
pub fn routes(service: Arc<Service>) -> Router {
    Router::new().fallback(forward).with_state(service)
}

async fn forward(State(service): State<Arc<Service>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, LARGEST_PAYLOAD).await else {
        return gateway_error(StatusCode::PAYLOAD_TOO_LARGE, "Request Too Long");
    };
    let request_id = request_id();
    let mut headers = BTreeMap::<&str, String>::new();
    for (name, value) in &parts.headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        headers
            .entry(name.as_str())
            .and_modify(|values| *values += &format!(",{value}"))
            .or_insert_with(|| value.into_owned());
    }
    let path = parts.uri.path();
    let event = json!({
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": parts.uri.query().unwrap_or_default(),
        "headers": headers,
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "local",
            "domainName": "localhost",
            "http": {
                "method": parts.method.as_str(),
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "127.0.0.1",
                "userAgent": headers.get("user-agent"),
            },
            "requestId": request_id,
            "routeKey": "$default",
            "stage": "$default",
        },
        "body": STANDARD.encode(&body),
        "isBase64Encoded": true,
    });
    let mut context = Context::default();
    context.request_id = request_id;
    context.deadline = (SystemTime::now() + TIMEOUT)
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |time| time.as_millis() as u64);
    let answer = match to_raw_value(&event) {
        Ok(payload) => serde_json::to_value(service.answer(LambdaEvent { payload, context }).await),
        Err(error) => Err(error),
    };
    match answer.and_then(serde_json::from_value::<Answer>) {
        Ok(answer) => answer.into_response(),
        Err(_) => gateway_error(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error"),
    }
}

/// The function's answer, as far as API Gateway reads it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    status_code: u16,
    headers: BTreeMap<String, String>,
    body: Option<String>,
}

impl Answer {
    fn into_response(self) -> Response<Body> {
        let mut response = Response::new(Body::from(self.body.unwrap_or_default()));
        *response.status_mut() =
            StatusCode::from_u16(self.status_code).unwrap_or(StatusCode::BAD_GATEWAY);
        for (name, value) in self.headers {
            if let (Ok(name), Ok(value)) =
                (HeaderName::try_from(name), HeaderValue::try_from(value))
            {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }
}

fn gateway_error(status: StatusCode, message: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(json!({ "message": message }).to_string()));
    *response.status_mut() = status;
    response
}

fn request_id() -> String {
    getrandom::u64().map_or_else(|_| "local".to_owned(), |random| format!("{random:016x}"))
}
