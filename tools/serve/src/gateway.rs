//! An emulator of API Gateway: turns an HTTP request into an event, and the service's response into
//! an HTTP response.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context as _, Result};
use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, MatchedPath, Request, State, rejection::BytesRejection},
    http::{HeaderName, HeaderValue, Method, StatusCode, request::Parts},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse as _, Response},
    routing::any,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use lambda_runtime::{Context, LambdaEvent};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::{Value, json, value::to_raw_value};
use tower_http::cors::CorsLayer;
use workspace_management::service::{FUNCTION_TIMEOUT, Service};
use workspace_records::tables::template;

use crate::{log, random_request_id};

/// API Gateway's maximum size of a body.
const MAX_BODY_BYTES: usize = 10 * 1024 * 1024;

/// API Gateway's maximum size of the request line and the values of all headers.
const MAX_HEADER_BYTES: usize = 10_240;

/// The event of an HTTP API (payload format 2.0) for a request without a query string. `route` is the
/// path of the route that the request matches, such as `/api/v1/org/{org_id}/dataStores/create`. The
/// names in `headers` must be in lower case. The event contains the body as text if the body is UTF-8
/// and `is_text` accepts its content type. Otherwise the body is Base64-encoded.
pub fn http_event(
    route: Option<&str>,
    method: &str,
    path: &str,
    headers: &BTreeMap<String, String>,
    body: Option<&[u8]>,
) -> Value {
    let content_type = headers.get("content-type").map_or("", String::as_str);
    let (body, is_base64_encoded) = match body {
        None => (None, false),
        Some(body) => match str::from_utf8(body) {
            Ok(text) if is_text(content_type) => (Some(text.to_owned()), false),
            _ => (Some(STANDARD.encode(body)), true),
        },
    };
    let mut event = json!({
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
            "requestId": "gateway-request",
            "routeKey": "$default",
            "stage": "$default",
        },
        "body": body,
        "isBase64Encoded": is_base64_encoded,
    });
    if let Some(route) = route {
        let route_key = format!("{method} {route}");
        event["routeKey"] = json!(route_key);
        event["requestContext"]["routeKey"] = json!(route_key);
        event["rawPath"] = json!(delivered_path(path));
        event["requestContext"]["http"]["path"] = event["rawPath"].clone();
    }
    event
}

/// Whether an HTTP API passes a body of this content type as text. AWS does not document these
/// types. They were observed on AWS: <https://github.com/ministackorg/ministack/pull/766>.
fn is_text(content_type: &str) -> bool {
    let (media_type, _) = content_type.split_once(';').unwrap_or((content_type, ""));
    let media_type = media_type.trim().to_ascii_lowercase();
    match media_type.as_str() {
        "application/json" | "application/javascript" | "application/xml" => true,
        _ => media_type.starts_with("text/"),
    }
}

/// Routes that send every request to the service as the event of an HTTP API. Pages of
/// `cors_origin` may call them. `rate_limit` is the maximum number of requests per second.
///
/// # Errors
/// If the origin is not a valid header value, or `template.yaml` does not declare routes or CORS.
pub fn routes(
    service: Arc<Service>,
    cors_origin: Option<&str>,
    rate_limit: Option<u32>,
) -> Result<Router> {
    let mut routes = Router::new().fallback(forward);
    for path in route_paths()? {
        routes = routes.route(path, any(forward));
    }
    let mut routes = routes
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(service);
    if let Some(limit) = rate_limit {
        let bucket = Arc::new(TokenBucket::new(f64::from(limit)));
        routes = routes.layer(from_fn_with_state(bucket, throttle));
    }
    if let Some(origin) = cors_origin {
        routes = routes.layer(cors_layer(origin)?);
    }
    Ok(routes)
}

/// The CORS configuration of the template, which allows only `origin`.
fn cors_layer(origin: &str) -> Result<CorsLayer> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Configuration {
        allow_headers: Vec<String>,
        expose_headers: Vec<String>,
        max_age: u64,
    }
    let declared = &template()?["Resources"]["Api"]["Properties"]["CorsConfiguration"];
    let configuration: Configuration = yaml_serde::from_value(declared["Fn::If"][1].clone())?;
    Ok(CorsLayer::new()
        .allow_origin(HeaderValue::from_str(origin)?)
        .allow_methods([Method::POST])
        .allow_headers(header_names(&configuration.allow_headers)?)
        .expose_headers(header_names(&configuration.expose_headers)?)
        .max_age(Duration::from_secs(configuration.max_age)))
}

fn header_names(names: &[String]) -> Result<Vec<HeaderName>> {
    names.iter().map(|name| Ok(name.parse()?)).collect()
}

/// A rate limiter. It gains `rate` tokens per second, and has at most that many.
#[derive(Debug)]
pub struct TokenBucket {
    rate: f64,
    /// The tokens, and when they were computed. Negative if more were taken than there were.
    state: Mutex<(f64, Instant)>,
}

impl TokenBucket {
    /// A full bucket.
    pub fn new(rate: f64) -> Self {
        let state = Mutex::new((rate, Instant::now()));
        Self { rate, state }
    }

    /// Takes tokens. Returns false, and takes none, if there are fewer than `needed`.
    pub fn take(&self, taken: f64, needed: f64) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (tokens, updated) = &mut *state;
        let gained = updated.elapsed().as_secs_f64() * self.rate;
        *tokens = (*tokens + gained).min(self.rate);
        *updated = Instant::now();
        let is_accepted = *tokens >= needed;
        if is_accepted {
            *tokens -= taken;
        }
        is_accepted
    }
}

async fn throttle(
    State(bucket): State<Arc<TokenBucket>>,
    request: Request,
    next: Next,
) -> Response {
    if bucket.take(1.0, 1.0) {
        next.run(request).await
    } else {
        error(StatusCode::TOO_MANY_REQUESTS, "Too Many Requests")
    }
}

/// Sends a request to the service as an event, and returns the service's response.
async fn forward(
    State(service): State<Arc<Service>>,
    parts: Parts,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    if header_size(&parts) > MAX_HEADER_BYTES {
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
    let body = if body.is_empty() { None } else { Some(&*body) };
    let route = parts.extensions.get::<MatchedPath>();
    // Every route of the template is for POST.
    let route = route.filter(|_| parts.method == Method::POST);
    let route = route.map(MatchedPath::as_str);
    let method = parts.method.as_str();
    let mut event = http_event(route, method, parts.uri.path(), &headers, body);
    event["rawQueryString"] = json!(parts.uri.query().unwrap_or_default());
    let request_id = random_request_id();
    event["requestContext"]["requestId"] = json!(request_id);

    let mut context = Context::default();
    context.request_id = request_id;
    context.deadline = (SystemTime::now() + FUNCTION_TIMEOUT)
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |time| time.as_millis() as u64);
    let event = LambdaEvent::new(to_raw_value(&event).expect("JSON"), context);
    let client = parts.extensions.get::<SocketAddr>();
    let ip = client.map_or_else(String::new, |client| client.ip().to_string());
    let handled = service.handle(event, SystemTime::now());
    let response = log::CLIENT.scope(ip, handled).await;
    let mut http_response = Response::builder().status(response.status_code);
    for (name, value) in response.headers {
        http_response = http_response.header(name, &*value);
    }
    let body = Body::from(response.body.unwrap_or_default());
    http_response
        .body(body)
        .unwrap_or_else(|_| error(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error"))
}

/// The paths of the template's routes, such as `/api/v1/org/{org_id}/dataStores/create`.
fn route_paths() -> Result<Vec<&'static str>> {
    let events = &template()?["Resources"]["Function"]["Properties"]["Events"];
    let events = events.as_mapping().context("the template has no routes")?;
    let path = |event: &'static yaml_serde::Value| event["Properties"]["Path"].as_str();
    events
        .values()
        .map(|event| path(event).context("a route has no path"))
        .collect()
}

/// The path that an HTTP API delivers for a path that matches a route. AWS does not document it. It
/// was observed on AWS that the path is decoded twice, and cut off at a decoded question mark:
/// <https://github.com/hotsock/voker/pull/8>.
fn delivered_path(path: &str) -> String {
    let decode = |path: &str| percent_decode_str(path).decode_utf8_lossy().into_owned();
    let decoded = decode(&decode(path));
    decoded.split('?').next().unwrap_or_default().to_owned()
}

/// The size of the request line and the values of all headers.
fn header_size(request: &Parts) -> usize {
    let mut size = format!("{} {} HTTP/1.1", request.method, request.uri).len();
    for value in request.headers.values() {
        size += value.len();
    }
    size
}

/// An error from API Gateway itself, not from the service.
fn error(status: StatusCode, message: &str) -> Response {
    (status, Json(json!({ "message": message }))).into_response()
}
