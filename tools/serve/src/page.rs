//! The local page of `cargo serve`. The program embeds the page's files, so the page works offline.
//! `docs/decisions.md` explains why the page is not a viewer of the contract.

mod stored;

use std::sync::Arc;

use anyhow::Result;
use axum::{
    Json, Router,
    extract::{Path, State},
    http::{HeaderValue, StatusCode, header},
    middleware::map_response,
    response::{IntoResponse, Response},
    routing::get,
};
use serde::Serialize;
use workspace_records::{
    contract::{OPENAPI, contract},
    local::API_URL,
};

use self::stored::Records;
use crate::{demo::DEMO_KEY, dynamodb::DynamoDb};

const INDEX_HTML: &str = include_str!("../page/index.html");
const PAGE_JS: &str = include_str!("../page/page.js");
const PAGE_CSS: &str = include_str!("../page/page.css");
const ICON_SVG: &str = include_str!("../page/icon.svg");

/// Allows only files from the page's own server, and no inline scripts or styles.
const CONTENT_SECURITY_POLICY: &str =
    "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// The routes of the page. `anonymous_allowed` says whether some operations need no API key.
pub(crate) fn routes(dynamodb: DynamoDb, anonymous_allowed: bool) -> Result<Router> {
    // The server that the contract names becomes the server of the page.
    let openapi = OPENAPI.replacen(API_URL, "/", 1);
    let openapi_json = serde_json::to_string(contract())?.replacen(API_URL, "/", 1);
    let html = INDEX_HTML
        .replace("DEMO_KEY", DEMO_KEY)
        .replace("ANONYMOUS_ALLOWED", &anonymous_allowed.to_string());
    let files = [
        ("/", "text/html; charset=utf-8", html),
        ("/page.js", "text/javascript; charset=utf-8", PAGE_JS.into()),
        ("/page.css", "text/css; charset=utf-8", PAGE_CSS.into()),
        ("/icon.svg", "image/svg+xml", ICON_SVG.into()),
        ("/openapi.json", "application/json", openapi_json),
        ("/openapi.yaml", "application/yaml; charset=utf-8", openapi),
    ];
    let mut router = Router::new()
        .route("/stored", get(newest))
        .route("/stored/{kind}", get(all_of_kind))
        .route("/stored/by/{request_id}", get(stored_by))
        .with_state(Arc::new(Records::new(dynamodb)));
    for (path, content_type, text) in files {
        let handler = move || async move { ([(header::CONTENT_TYPE, content_type)], text) };
        router = router.route(path, get(handler));
    }
    Ok(router.layer(map_response(with_headers)))
}

async fn with_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // A new version of the program can serve different files at the same address.
        (header::CACHE_CONTROL, "no-cache"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The newest records of every kind.
async fn newest(State(records): State<Arc<Records>>) -> Response {
    respond(records.newest().await)
}

/// The records of a kind, the newest first.
async fn all_of_kind(State(records): State<Arc<Records>>, Path(kind): Path<String>) -> Response {
    match records.of_kind(&kind).await {
        Ok(None) => (StatusCode::NOT_FOUND, "there is no such kind of records").into_response(),
        view => respond(view),
    }
}

/// The records that a request created or changed.
async fn stored_by(
    State(records): State<Arc<Records>>,
    Path(request_id): Path<String>,
) -> Response {
    respond(records.stored_by(&request_id).await)
}

/// Sends records as JSON, or says why the records cannot be read.
fn respond(records: Result<impl Serialize>) -> Response {
    match records {
        Ok(records) => Json(records).into_response(),
        Err(error) => (StatusCode::BAD_GATEWAY, format!("{error:#}")).into_response(),
    }
}
