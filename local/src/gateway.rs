//! An emulator of API Gateway: turns an HTTP request into an event, and the function's response
//! into an HTTP response.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use anyhow::Result;
use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, Request, State, rejection::BytesRejection},
    http::{HeaderName, HeaderValue, Method, StatusCode, request::Parts},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse as _, Response},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use lambda_runtime::{Context, LambdaEvent};
use serde::Deserialize;
use serde_json::{Value, json, value::to_raw_value};
use tower_http::cors::CorsLayer;
use workspace_management::service::{Service, TIMEOUT};
use workspace_records::tables::template;

use crate::server::random_id;

/// API Gateway's limit on the size of a body.
const MAX_BODY_BYTES: usize = 10 * 1024 * 1024;

/// API Gateway's limit on the size of the request line and the values of headers.
const MAX_HEADER_BYTES: usize = 10_240;

/// The request id of an event that [`http_event`] builds.
pub const REQUEST_ID: &str = "gateway-request";

/// The event of an HTTP API (payload format 2.0) for a request without a query string. The names of
/// headers are in lower case. A body is Base64-encoded unless its content type is that of a text. A
/// body that is not UTF-8 is always encoded, because a string in JSON cannot contain it.
pub fn http_event(
    method: &str,
    path: &str,
    headers: &BTreeMap<String, String>,
    body: Option<&[u8]>,
) -> Value {
    let content_type = headers.get("content-type").map_or("", String::as_str);
    let text = body
        .filter(|_| is_text(content_type))
        .and_then(|body| String::from_utf8(body.to_vec()).ok());
    let is_base64_encoded = body.is_some() && text.is_none();
    let body = text.or_else(|| body.map(|body| STANDARD.encode(body)));
    json!({
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": "",
        "headers": headers,
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "abcdefghij",
            "domainName": "abcdefghij.execute-api.us-east-1.amazonaws.com",
            "http": { "method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1" },
            "requestId": REQUEST_ID,
            "routeKey": "$default",
            "stage": "$default",
        },
        "body": body,
        "isBase64Encoded": is_base64_encoded,
    })
}

/// Whether a content type is one of those whose bodies an HTTP API passes as text. AWS does not
/// document them. They were observed on AWS: <https://github.com/ministackorg/ministack/pull/766>.
fn is_text(content_type: &str) -> bool {
    let (media_type, _) = content_type.split_once(';').unwrap_or((content_type, ""));
    let media_type = media_type.trim().to_ascii_lowercase();
    let names = [
        "application/json",
        "application/javascript",
        "application/xml",
    ];
    media_type.starts_with("text/") || names.contains(&&*media_type)
}

/// Routes that send every request to the service, as the event of an HTTP API. The pages of an origin
/// may call them. With a rate limit, at most so many requests per second are accepted.
///
/// # Errors
/// If the origin is not the value of a header, or `template.yaml` does not declare CORS.
pub fn routes(
    service: Arc<Service>,
    cors_origin: Option<&str>,
    rate_limit: Option<u32>,
) -> Result<Router> {
    let mut routes = Router::new()
        .fallback(forward)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(service);
    if let Some(limit) = rate_limit {
        let rate = f64::from(limit);
        let tokens = Mutex::new((rate, Instant::now()));
        let bucket = Arc::new(TokenBucket { rate, tokens });
        routes = routes.layer(from_fn_with_state(bucket, throttle));
    }
    Ok(match cors_origin {
        None => routes,
        Some(origin) => routes.layer(cors(origin)?),
    })
}

/// The CORS configuration of the template, for one origin.
fn cors(origin: &str) -> Result<CorsLayer> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Configuration {
        allow_headers: Vec<String>,
        expose_headers: Vec<String>,
        max_age: u64,
    }
    let configuration = &template()?["Resources"]["Api"]["Properties"]["CorsConfiguration"];
    let configuration: Configuration = yaml_serde::from_value(configuration["Fn::If"][1].clone())?;
    let names = |names: Vec<String>| -> Result<Vec<HeaderName>> {
        let names = names.iter().map(|name| HeaderName::try_from(name.as_str()));
        Ok(names.collect::<Result<_, _>>()?)
    };
    Ok(CorsLayer::new()
        .allow_origin(HeaderValue::from_str(origin)?)
        .allow_methods([Method::POST])
        .allow_headers(names(configuration.allow_headers)?)
        .expose_headers(names(configuration.expose_headers)?)
        .max_age(Duration::from_secs(configuration.max_age)))
}

/// A token for each request that is accepted. A second adds `rate` tokens, which is also the most
/// that the bucket can have.
struct TokenBucket {
    rate: f64,
    /// The number of tokens, and when it was computed.
    tokens: Mutex<(f64, Instant)>,
}

impl TokenBucket {
    fn take(&self) -> bool {
        let mut state = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let (tokens, at) = *state;
        let tokens = (tokens + at.elapsed().as_secs_f64() * self.rate).min(self.rate);
        let is_taken = tokens >= 1.0;
        *state = (if is_taken { tokens - 1.0 } else { tokens }, Instant::now());
        is_taken
    }
}

async fn throttle(
    State(bucket): State<Arc<TokenBucket>>,
    request: Request,
    next: Next,
) -> Response {
    if bucket.take() {
        next.run(request).await
    } else {
        error(StatusCode::TOO_MANY_REQUESTS, "Too Many Requests")
    }
}

async fn forward(
    State(service): State<Arc<Service>>,
    parts: Parts,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    if size(&parts) > MAX_HEADER_BYTES {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return error(status, "Request Header Fields Too Large");
    }
    let body = match body {
        Ok(body) => body,
        Err(rejection) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            return error(StatusCode::PAYLOAD_TOO_LARGE, "Request Too Long");
        }
        Err(_) => return error(StatusCode::BAD_REQUEST, "Bad Request"),
    };
    let mut headers = BTreeMap::<String, String>::new();
    for (name, value) in &parts.headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        headers
            .entry(name.to_string())
            .and_modify(|values| *values += &format!(",{value}"))
            .or_insert_with(|| value.into_owned());
    }
    let body = Some(&*body).filter(|body| !body.is_empty());
    let mut event = http_event(parts.method.as_str(), parts.uri.path(), &headers, body);
    event["rawQueryString"] = json!(parts.uri.query().unwrap_or_default());
    let request_id = random_id();
    event["requestContext"]["requestId"] = json!(request_id);

    let mut context = Context::default();
    context.request_id = request_id;
    context.deadline = (SystemTime::now() + TIMEOUT)
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |time| time.as_millis() as u64);
    let payload = to_raw_value(&event).expect("JSON");
    let event = LambdaEvent { payload, context };
    let response = service.handle(event, SystemTime::now()).await;
    let status = StatusCode::from_u16(response.status_code as u16);
    let status = status.unwrap_or(StatusCode::BAD_GATEWAY);
    let body = response.body.as_deref().unwrap_or_default().to_vec();
    (status, response.headers, Body::from(body)).into_response()
}

/// The size of a request line and the values of headers.
fn size(request: &Parts) -> usize {
    let line = format!("{} {} HTTP/1.1", request.method, request.uri);
    line.len()
        + request
            .headers
            .values()
            .map(HeaderValue::len)
            .sum::<usize>()
}

/// An error of API Gateway itself.
fn error(status: StatusCode, message: &str) -> Response {
    (status, Json(json!({ "message": message }))).into_response()
}
