//! The metrics that the function writes to its log.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use aws_smithy_http_client::Connector;
use aws_smithy_runtime_api::client::http::SharedHttpConnector;
use axum::{
    Router,
    http::{HeaderMap, StatusCode},
    routing::post,
};
use serde_json::json;
use tokio::net::TcpListener;

use crate::{
    function::{Function, anonymous, create_papers},
    proxy::forward,
    support::{World, event},
};

#[tokio::test]
async fn each_request_writes_its_metrics_at_every_log_level() {
    let world = World::new().await;
    // How many of the next writes DynamoDB throttles.
    let throttles = Arc::new(AtomicU32::new(0));
    let connector = SharedHttpConnector::new(Connector::builder().build_http());
    let routes = Router::new().route(
        "/",
        post({
            let (engine, throttles) = (world.endpoint.clone(), throttles.clone());
            move |headers: HeaderMap, body: axum::body::Bytes| async move {
                let decrement = |left: u32| left.checked_sub(1);
                let order = Ordering::Relaxed;
                let is_write = headers["x-amz-target"]
                    .to_str()
                    .unwrap()
                    .contains("PutItem");
                if is_write && throttles.fetch_update(order, order, decrement).is_ok() {
                    let code = "com.amazonaws.dynamodb.v20120810#ThrottlingException";
                    let body = json!({ "__type": code }).to_string().into_bytes();
                    return (StatusCode::BAD_REQUEST, body);
                }
                forward(&connector, &engine, &headers, &body).await
            }
        }),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async { axum::serve(listener, routes).await.unwrap() });
    let mut function = Function::start(
        &world,
        &[
            ("AWS_ENDPOINT_URL_DYNAMODB", &endpoint),
            ("METRICS_NAMESPACE", "a-stack"),
            ("AWS_LAMBDA_LOG_LEVEL", "ERROR"),
        ],
    )
    .await;
    let anonymous = anonymous();
    let unknown = BTreeMap::from([("authorization".to_owned(), "nonsense".to_owned())]);

    function
        .invoke(create_papers(&anonymous))
        .await
        .is_success();
    function
        .invoke(create_papers(&unknown))
        .await
        .is(401, "unauthenticated");
    let no_such_path = event("POST", "/nowhere", &anonymous, None);
    function.invoke(no_such_path).await.is(404, "no_such_path");
    throttles.store(2, Ordering::Relaxed);
    function
        .invoke(create_papers(&anonymous))
        .await
        .is_success();
    function.runtime_api.set_time_limit(Duration::from_secs(1));
    throttles.store(u32::MAX, Ordering::Relaxed);
    function
        .invoke(create_papers(&anonymous))
        .await
        .is(503, "unavailable");

    let log = function.log().await;
    let (metrics, lines): (Vec<_>, Vec<_>) = log.iter().partition(|line| !line["_aws"].is_null());
    assert_eq!(lines.len(), 1, "{lines:?}");
    let expected = [
        json!({ "operation": "create_data_store", "Requests": 1, "ColdStarts": 1 }),
        json!({ "operation": "create_data_store", "Requests": 1, "ClientErrors": 1, "Unauthenticated": 1 }),
        json!({ "operation": "none", "Requests": 1, "ClientErrors": 1 }),
        json!({ "operation": "create_data_store", "Requests": 1, "Retries": 2, "Throttles": 2 }),
    ];
    for (line, expected) in metrics.iter().zip(&expected) {
        let mut members = (*line).clone();
        let members = members.as_object_mut().unwrap();
        let directives = members.remove("_aws").unwrap();
        assert!(members.remove("Latency").unwrap().as_f64().unwrap() > 0.0);
        assert_eq!(json!(members), *expected);
        let age = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_millis()
            - u128::from(directives["Timestamp"].as_u64().unwrap());
        assert!(age < 60_000, "{directives}");
        let directive = &directives["CloudWatchMetrics"][0];
        assert_eq!(directive["Namespace"], "a-stack");
        assert_eq!(directive["Dimensions"], json!([[], ["operation"]]));
        let mut named: Vec<_> = directive["Metrics"].as_array().unwrap().iter().collect();
        assert_eq!(
            *named.remove(0),
            json!({ "Name": "Latency", "Unit": "Milliseconds" })
        );
        for metric in &named {
            assert_eq!(metric["Unit"], "Count");
            assert!(members[metric["Name"].as_str().unwrap()].is_u64(), "{line}");
        }
        assert_eq!(named.len(), members.len() - 1, "{line}");
    }
    let last = metrics[4];
    assert_eq!(
        (&last["Requests"], &last["ServerErrors"]),
        (&json!(1), &json!(1))
    );
    let (retries, throttled) = (
        last["Retries"].as_u64().unwrap(),
        last["Throttles"].as_u64().unwrap(),
    );
    assert!(throttled > retries && retries > 0, "{last}");
    assert_eq!(metrics.len(), 5);
}
