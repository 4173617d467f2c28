//! The page of `serve`: a form for each operation, next to the stored records. The program embeds
//! all files, so the page works offline.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderValue, StatusCode, header},
    middleware::map_response,
    response::{IntoResponse as _, Response},
    routing::get,
};
use serde_json::Value;
use swagger_ui_dist::{ApiDefinition, OpenApiSource};
use workspace_local::demo::DEMO_KEY;

use crate::{commands::list, deployment::Deployment, errors};

const OPENAPI: &str = include_str!("../../openapi.yaml");

/// The server in `openapi.yaml`. The page replaces it with its own address.
const OPENAPI_SERVER: &str = "- url: http://127.0.0.1:3000";

/// Allows nothing from other servers. Swagger UI sets inline styles.
const CONTENT_SECURITY_POLICY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; \
    img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// The routes of the page, which shows the records of the deployment.
pub(crate) fn routes(deployment: Arc<Deployment>) -> Router {
    let html = include_str!("../page/index.html").replace("DEMO_KEY", DEMO_KEY);
    let openapi = OPENAPI.replacen(OPENAPI_SERVER, "- url: /", 1);
    let files = [
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
        ("/openapi.yaml", "application/yaml", openapi),
    ];
    let mut routes = Router::new()
        .route("/stored", get(stored))
        .with_state(deployment);
    for (path, content_type, text) in files {
        let respond = move || async move { ([(header::CONTENT_TYPE, content_type)], text) };
        routes = routes.route(path, get(respond));
    }
    let swagger_ui = swagger_ui_dist::generate_routes(ApiDefinition {
        uri_prefix: "/viewer",
        api_definition: OpenApiSource::Uri("/openapi.yaml"),
        title: None,
    });
    routes
        .merge(swagger_ui)
        .layer(map_response(with_security_headers))
}

async fn with_security_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(CONTENT_SECURITY_POLICY),
    );
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    response
}

/// The records of every kind.
async fn stored(State(deployment): State<Arc<Deployment>>) -> Result<Json<Vec<Value>>, Response> {
    let kinds = list::all_kinds(&deployment).await;
    kinds
        .map(Json)
        .map_err(|error| (StatusCode::BAD_GATEWAY, errors::describe(&error)).into_response())
}
