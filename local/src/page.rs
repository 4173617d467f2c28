//! The page of `cargo serve`: what each operation needs, next to the stored records. The program embeds its
//! files, so the page works offline. `docs/decisions.md` explains why it is not a viewer of OpenAPI.

mod stored;

use std::sync::Arc;

use anyhow::{Context as _, Result};
use axum::{
    Json, Router,
    extract::{Path, State},
    http::{HeaderValue, StatusCode, header},
    middleware::map_response,
    response::{IntoResponse, Response},
    routing::get,
};

use self::stored::Records;
use crate::{demo::DEMO_KEY, dynamodb::DynamoDb};

const OPENAPI: &str = include_str!("../../openapi.yaml");

/// The server in `openapi.yaml`. The page replaces it with its own address.
const OPENAPI_SERVER: &str = "- url: http://127.0.0.1:3000";

/// Allows nothing from other servers, and neither inline scripts nor inline styles.
const CONTENT_SECURITY_POLICY: &str =
    "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// The routes of the page. `anonymous_allowed` says whether some operations need no key.
pub(crate) fn routes(dynamodb: DynamoDb, anonymous_allowed: bool) -> Result<Router> {
    let openapi = OPENAPI.replacen(OPENAPI_SERVER, "- url: /", 1);
    // Not `serde_json::Value`, which would sort the operations.
    let contract: yaml_serde::Value =
        yaml_serde::from_str(&openapi).context("cannot parse openapi.yaml")?;
    let files = [
        (
            "/",
            "text/html; charset=utf-8",
            include_str!("../page/index.html")
                .replace("DEMO_KEY", DEMO_KEY)
                .replace("ANONYMOUS_ALLOWED", &anonymous_allowed.to_string()),
        ),
        (
            "/page.js",
            "text/javascript; charset=utf-8",
            include_str!("../page/page.js").to_owned(),
        ),
        (
            "/page.css",
            "text/css; charset=utf-8",
            include_str!("../page/page.css").to_owned(),
        ),
        (
            "/icon.svg",
            "image/svg+xml",
            include_str!("../page/icon.svg").to_owned(),
        ),
        (
            "/openapi.json",
            "application/json",
            serde_json::to_string(&contract)?,
        ),
        ("/openapi.yaml", "application/yaml; charset=utf-8", openapi),
    ];
    let mut routes = Router::new()
        .route("/stored", get(newest))
        .route("/stored/{kind}", get(all_of_kind))
        .route("/stored/by/{request_id}", get(stored_by))
        .with_state(Arc::new(Records::new(dynamodb)));
    for (path, content_type, text) in files {
        let respond = move || async move { ([(header::CONTENT_TYPE, content_type)], text) };
        routes = routes.route(path, get(respond));
    }
    Ok(routes.layer(map_response(with_headers)))
}

async fn with_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // The next version of the program has other files at the same address.
        (header::CACHE_CONTROL, "no-cache"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The newest records of every kind.
async fn newest(State(records): State<Arc<Records>>) -> Response {
    match records.newest().await {
        Ok(views) => Json(views).into_response(),
        Err(error) => failure(&error),
    }
}

/// The records of a kind, the newest first.
async fn all_of_kind(State(records): State<Arc<Records>>, Path(kind): Path<String>) -> Response {
    match records.of_kind(&kind).await {
        Ok(Some(view)) => Json(view).into_response(),
        Ok(None) => (StatusCode::NOT_FOUND, "there is no such kind of records").into_response(),
        Err(error) => failure(&error),
    }
}

/// The records that a request has created or changed.
async fn stored_by(
    State(records): State<Arc<Records>>,
    Path(request_id): Path<String>,
) -> Response {
    match records.stored_by(&request_id).await {
        Ok(views) => Json(views).into_response(),
        Err(error) => failure(&error),
    }
}

fn failure(error: &anyhow::Error) -> Response {
    (StatusCode::BAD_GATEWAY, format!("{error:#}")).into_response()
}
