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
    function::{Function, create_papers},
    proxy::forward,
    support::TestApp,
};

/// The credentials endpoint of a container or of SnapStart, and a proxy to DynamoDB that rejects
/// expired credentials.
struct CredentialServer {
    dynamodb: String,
    connector: SharedHttpConnector,
    /// The number of credentials that were issued. Their ids are numbered from 1.
    issued: AtomicUsize,
    /// Credentials up to this number have expired.
    expired: AtomicUsize,
}

impl CredentialServer {
    /// Starts a server in front of `dynamodb`. Returns it and its endpoint.
    async fn start(dynamodb: &str) -> (Arc<Self>, String) {
        let server = Arc::new(Self {
            dynamodb: dynamodb.to_owned(),
            connector: SharedHttpConnector::new(Connector::builder().build_http()),
            issued: AtomicUsize::new(0),
            expired: AtomicUsize::new(0),
        });
        let routes = Router::new()
            .route("/credentials", get(issue))
            .route("/", post(verify_and_forward))
            .with_state(server.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async { axum::serve(listener, routes).await.unwrap() });
        (server, endpoint)
    }

    fn expire_all(&self) {
        let issued = self.issued.load(Ordering::Relaxed);
        self.expired.store(issued, Ordering::Relaxed);
    }
}

async fn issue(State(server): State<Arc<CredentialServer>>) -> axum::Json<Value> {
    // The SDK must not use credentials that expire this soon for another request.
    let expiration = SystemTime::now() + Duration::from_secs(1);
    let number = server.issued.fetch_add(1, Ordering::Relaxed) + 1;
    axum::Json(json!({
        "AccessKeyId": format!("number{number}"),
        "SecretAccessKey": "secret",
        "Token": "token",
        "Expiration": humantime::format_rfc3339_millis(expiration).to_string(),
    }))
}

async fn verify_and_forward(
    State(server): State<Arc<CredentialServer>>,
    headers: HeaderMap,
    body: axum::body::Bytes,
) -> (StatusCode, Vec<u8>) {
    let signature = headers["authorization"].to_str().unwrap();
    let (_, number) = signature.split_once("Credential=number").unwrap();
    let (number, _) = number.split_once('/').unwrap();
    let number: usize = number.parse().unwrap();
    if number <= server.expired.load(Ordering::Relaxed) {
        let expired = json!({ "__type": "com.amazon.coral.service#ExpiredTokenException" });
        return (StatusCode::BAD_REQUEST, expired.to_string().into_bytes());
    }
    forward(&server.connector, &server.dynamodb, &headers, &body).await
}

#[tokio::test]
async fn the_function_refreshes_credentials_before_they_expire() {
    let app = TestApp::new().await;
    let anonymous = app.anonymous();
    let (server, endpoint) = CredentialServer::start(&app.endpoint).await;
    let credentials = format!("{endpoint}/credentials");
    let variables = [
        ("AWS_ACCESS_KEY_ID", ""),
        ("AWS_SECRET_ACCESS_KEY", ""),
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &credentials),
        ("AWS_ENDPOINT_URL_DYNAMODB", &endpoint),
    ];
    let mut function = Function::start(&app, &variables).await;

    for _ in 0..3 {
        let response = function.invoke(create_papers(&anonymous)).await;
        response.assert_success();
        server.expire_all();
    }

    assert!(server.issued.load(Ordering::Relaxed) >= 3);
    assert_eq!(app.records(Table::DATA_STORES).await.len(), 1);
}
