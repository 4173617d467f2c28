//! What a caller sees when the service, or what it stands on, fails.

use std::time::{Duration, Instant};

use aws_sdk_dynamodb::{
    config::{
        ConfigBag, Intercept, RuntimeComponents, interceptors::BeforeTransmitInterceptorContextRef,
    },
    error::BoxError,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use workspace_management::{service::Service, store::Table, store::client};

use crate::support::{Answer, Setting, World, config, event, send, service, table_names};

const PATH: &str = "/api/v1/org/acme/dataStores/create";

fn request() -> Value {
    event(
        "POST",
        PATH,
        &Default::default(),
        Some(r#"{"dataStoreName": "Papers"}"#),
    )
}

/// A service whose DynamoDB is at that address.
fn service_at(endpoint: &str) -> Service {
    service(config(endpoint), table_names(), &Setting::default())
}

#[tokio::test]
async fn a_missing_table_is_a_failure_that_shows_nothing_of_the_inside() {
    let world = World::new().await;
    let table = world.tables.name(Table::DATA_STORES).to_owned();
    world.drop_table(Table::DATA_STORES).await;

    let answer = world.send(request()).await;

    answer.is(500, "internal");
    let problem = answer.body.unwrap().to_string();
    for inside in [
        table.as_str(),
        "DataStores",
        "DynamoDB",
        "dynamodb",
        "ResourceNotFound",
        "table",
        "Table",
        &world.endpoint,
    ] {
        assert!(!problem.contains(inside), "{inside} in {problem}");
    }
}

#[tokio::test]
async fn an_unreachable_dynamodb_is_an_outage_that_a_client_may_wait_for() {
    let closed = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let service = service_at(&format!("http://{closed}"));

    let answer = Answer::read(send(&service, request(), Duration::from_secs(2)).await);

    answer.is(503, "unavailable");
    assert_eq!(answer.headers["retry-after"], "1");
}

#[tokio::test]
async fn a_dynamodb_that_never_answers_is_given_up_before_lambda_gives_up() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let service = service_at(&format!("http://{}", silent.local_addr().unwrap()));
    let started = Instant::now();

    let answer = Answer::read(send(&service, request(), Duration::from_secs(2)).await);

    answer.is(503, "unavailable");
    assert_eq!(answer.headers["retry-after"], "1");
    let taken = started.elapsed();
    assert!(
        (Duration::from_millis(1400)..Duration::from_secs(2)).contains(&taken),
        "{taken:?}"
    );
}

#[tokio::test]
async fn a_connection_that_cannot_be_opened_does_not_hold_up_the_start() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    let started = Instant::now();

    let configured = client::connect(|name| match name {
        "AWS_REGION" => Some("us-east-1".to_owned()),
        "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" => Some("local".to_owned()),
        "AWS_ENDPOINT_URL_DYNAMODB" => Some(endpoint.clone()),
        _ => None,
    });

    assert!(configured.await.is_ok());
    assert!(started.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn a_request_without_time_left_is_not_begun() {
    let world = World::new().await;

    let answer = Answer::read(send(&world.service, request(), Duration::from_millis(400)).await);

    answer.is(503, "unavailable");
    assert!(world.sent.take().is_empty());
}

#[tokio::test]
async fn a_panic_is_a_failure_and_the_next_event_is_answered() {
    let world = World::new().await;
    let config = config(&world.endpoint).interceptor(PanicOnce::default());
    let service = service(config, world.tables.clone(), &Setting::default());

    let first = Answer::read(send(&service, request(), Duration::from_secs(10)).await);
    let second = Answer::read(send(&service, request(), Duration::from_secs(10)).await);

    first.is(500, "internal");
    assert!(!first.body.unwrap().to_string().contains("sabotage"));
    second.is_success();
}

/// Panics in the midst of the first request to DynamoDB.
#[derive(Debug, Default)]
struct PanicOnce(std::sync::atomic::AtomicBool);

impl Intercept for PanicOnce {
    fn name(&self) -> &'static str {
        "panic-once"
    }

    fn read_before_transmit(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let done = self.0.swap(true, std::sync::atomic::Ordering::Relaxed);
        assert!(done, "sabotage");
        Ok(())
    }
}

#[tokio::test]
async fn a_key_record_of_no_valid_organization_is_a_failure() {
    let world = World::new().await;
    let key = world.issue("not an organization", |_| {}).await;

    let path = "/api/v1/bot/playground/bot-7/voice";
    world
        .holder(&key)
        .post(path, json!({ "type": "alloy", "enabled": true }))
        .await
        .is(500, "internal");
}
