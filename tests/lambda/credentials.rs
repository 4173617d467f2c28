//! AWS credentials that expire while the function runs.

use std::{
    sync::{Arc, Mutex},
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
    support::World,
};

/// Issues credentials as a container or SnapStart does, valid for 1.5 seconds each, and forwards
/// requests with valid ones to DynamoDB.
struct CredentialServer {
    dynamodb: String,
    connector: SharedHttpConnector,
    /// When each set of credentials expires.
    issued: Mutex<Vec<SystemTime>>,
}

async fn issue(State(server): State<Arc<CredentialServer>>) -> axum::Json<Value> {
    let expires = SystemTime::now() + Duration::from_millis(1500);
    let mut issued = server.issued.lock().unwrap();
    issued.push(expires);
    axum::Json(json!({
        "AccessKeyId": format!("set{}", issued.len()),
        "SecretAccessKey": "secret",
        "Token": "token",
        "Expiration": humantime::format_rfc3339_millis(expires).to_string(),
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
    let expires = server.issued.lock().unwrap()[set - 1];
    if expires < SystemTime::now() {
        let expired = json!({ "__type": "com.amazon.coral.service#ExpiredTokenException" });
        return (StatusCode::BAD_REQUEST, expired.to_string().into_bytes());
    }
    forward(&server.connector, &server.dynamodb, &headers, &body).await
}

#[tokio::test]
async fn the_function_refreshes_credentials_before_they_expire() {
    let world = World::new().await;
    let server = Arc::new(CredentialServer {
        dynamodb: world.endpoint.clone(),
        connector: SharedHttpConnector::new(Connector::builder().build_http()),
        issued: Default::default(),
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
        &world,
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
            .is_success();
        tokio::time::sleep(Duration::from_millis(1600)).await;
    }

    assert!(server.issued.lock().unwrap().len() >= 3);
    assert_eq!(world.records(Table::DATA_STORES).await.len(), 1);
}
