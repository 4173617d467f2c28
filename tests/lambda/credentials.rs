//! AWS credentials that expire while the function runs.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use aws_smithy_http_client::Connector;
use aws_smithy_runtime_api::client::http::SharedHttpConnector;
use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::{get, post},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use workspace_management::store::Table;

use crate::{
    function::{Function, anonymous, create_papers},
    proxy::forward,
    support::TestApp,
};

/// Issues credentials as a container or SnapStart does, and forwards requests with valid ones to
/// DynamoDB.
struct CredentialServer {
    dynamodb: String,
    connector: SharedHttpConnector,
    /// The number of sets that were issued, and how many of them are no longer valid.
    issued: AtomicUsize,
    expired: AtomicUsize,
}

impl CredentialServer {
    fn expire_all(&self) {
        let issued = self.issued.load(Ordering::Relaxed);
        self.expired.store(issued, Ordering::Relaxed);
    }
}

async fn issue(State(server): State<Arc<CredentialServer>>) -> axum::Json<Value> {
    // So soon that the SDK must not use the set for another request.
    let expiration = SystemTime::now() + Duration::from_secs(1);
    let set = server.issued.fetch_add(1, Ordering::Relaxed) + 1;
    axum::Json(json!({
        "AccessKeyId": format!("set{set}"),
        "SecretAccessKey": "secret",
        "Token": "token",
        "Expiration": humantime::format_rfc3339_millis(expiration).to_string(),
    }))
}

async fn check(
    State(server): State<Arc<CredentialServer>>,
    headers: HeaderMap,
    body: axum::body::Bytes,
) -> (StatusCode, Vec<u8>) {
    let signature = headers["authorization"].to_str().unwrap();
    let (_, set) = signature.split_once("Credential=set").unwrap();
    let set: usize = set.split('/').next().unwrap().parse().unwrap();
    if set <= server.expired.load(Ordering::Relaxed) {
        let expired = json!({ "__type": "com.amazon.coral.service#ExpiredTokenException" });
        return (StatusCode::BAD_REQUEST, expired.to_string().into_bytes());
    }
    forward(&server.connector, &server.dynamodb, &headers, &body).await
}

#[tokio::test]
async fn the_function_refreshes_credentials_before_they_expire() {
    let app = TestApp::new().await;
    let server = Arc::new(CredentialServer {
        dynamodb: app.endpoint.clone(),
        connector: SharedHttpConnector::new(Connector::builder().build_http()),
        issued: AtomicUsize::new(0),
        expired: AtomicUsize::new(0),
    });
    let routes = Router::new()
        .route("/credentials", get(issue))
        .route("/", post(check))
        .with_state(server.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async { axum::serve(listener, routes).await.unwrap() });
    let credentials = format!("{endpoint}/credentials");
    let mut function = Function::start(
        &app,
        &[
            ("AWS_ACCESS_KEY_ID", ""),
            ("AWS_SECRET_ACCESS_KEY", ""),
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &credentials),
            ("AWS_ENDPOINT_URL_DYNAMODB", &endpoint),
        ],
    )
    .await;

    for _ in 0..3 {
        function
            .invoke(create_papers(&anonymous()))
            .await
            .assert_success();
        server.expire_all();
    }

    assert!(server.issued.load(Ordering::Relaxed) >= 3);
    assert_eq!(app.records(Table::DATA_STORES).await.len(), 1);
}
