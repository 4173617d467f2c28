//! The page that `serve` shows a browser: the contract as a reference in which each operation can be tried, and beside it what
//! is stored. All of it is in this program, so that it works offline.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderValue, StatusCode, header},
    middleware::map_response,
    response::{IntoResponse, Response},
    routing::get,
};
use serde_json::Value;
use swagger_ui_dist::{ApiDefinition, OpenApiSource};

use workspace_local::demo::DEMO_KEY;

use crate::{commands::list, deployment::Deployment};

/// The contract.
const CONTRACT: &str = include_str!("../../openapi.yaml");

/// The server that the contract names; the page's own is wherever the page came from.
const CONTRACT_SERVER: &str = "- url: http://127.0.0.1:3000";

/// What the page may load and run: nothing from elsewhere. The viewer styles its elements in place.
const POLICY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                      frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// The page's routes, over what is served.
pub(crate) fn routes(deployment: Arc<Deployment>) -> Router {
    let html = include_str!("../page/index.html").replace("DEMO_KEY", DEMO_KEY);
    let contract = CONTRACT.replacen(CONTRACT_SERVER, "- url: /", 1);
    let own = [
        ("/", "text/html; charset=utf-8", html),
        (
            "/page.js",
            "text/javascript",
            include_str!("../page/page.js").to_owned(),
        ),
        (
            "/page.css",
            "text/css",
            include_str!("../page/page.css").to_owned(),
        ),
        ("/openapi.yaml", "application/yaml", contract),
    ];
    let mut routes = Router::new()
        .route("/stored", get(stored))
        .with_state(deployment);
    for (path, kind, text) in own {
        let answer = move || async move { ([(header::CONTENT_TYPE, kind)], text) };
        routes = routes.route(path, get(answer));
    }
    let viewer = swagger_ui_dist::generate_routes(ApiDefinition {
        uri_prefix: "/viewer",
        api_definition: OpenApiSource::Uri("/openapi.yaml"),
        title: None,
    });
    routes.merge(viewer).layer(map_response(guarded))
}

async fn guarded(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(POLICY),
    );
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    response
}

/// All that is stored, as `list` shows it.
async fn stored(State(deployment): State<Arc<Deployment>>) -> Result<Json<Vec<Value>>, Response> {
    list::everything(&deployment)
        .await
        .map(Json)
        .map_err(|error| (StatusCode::BAD_GATEWAY, format!("{error:#}")).into_response())
}
