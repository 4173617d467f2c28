//! The engine in the process of the test: an HTTP client for the SDK, without a network.

use std::{
    fmt,
    ops::Deref,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use aws_sdk_dynamodb::config::{
    HttpClient, RuntimeComponents,
    http::{HttpRequest, HttpResponse},
};
use aws_smithy_runtime_api::client::{
    http::{HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector},
    result::ConnectorError,
};
use fastrand::Rng;
use serde_json::json;
use workspace_local::dynamodb::{DynamoDb, action};
use workspace_management::{
    api_key::{ApiKey, mint},
    store::Table,
};

use crate::injector::answer;

/// The engine in this process, without a network that a jumping clock could not wait for.
#[derive(Clone)]
pub struct Engine {
    pub dynamodb: DynamoDb,
    pub chance: Option<Chance>,
    /// How long it took for all requests.
    pub taken: Arc<Mutex<Duration>>,
}

/// How often, out of a hundred, a request to DynamoDB goes wrong, and how often it seems to succeed but is lost.
#[derive(Clone)]
pub struct Chance {
    pub rng: Arc<Mutex<Rng>>,
    pub faults: u8,
    pub lies: u8,
}

impl fmt::Debug for Engine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Engine")
    }
}

impl Deref for Engine {
    type Target = DynamoDb;

    fn deref(&self) -> &DynamoDb {
        &self.dynamodb
    }
}

impl Engine {
    /// An engine with the template's tables.
    pub async fn new() -> Self {
        Self {
            dynamodb: DynamoDb::with_tables().await.unwrap(),
            chance: None,
            taken: Arc::default(),
        }
    }

    /// A key of an organization.
    pub fn issue(&self, org: &str, number: u64) -> String {
        let text = mint(number.to_be_bytes(), [7; 32]);
        let key = ApiKey::parse(&text).unwrap();
        let record = json!({
            "key_id": key.id(),
            "org_id": org,
            "secret_sha256": key.digest(),
            "label": "",
            "created_at": "2026-01-01T00:00:00Z",
        });
        self.put(Table::KEYS, record);
        text
    }

    fn carry_out(&self, request: &HttpRequest) -> HttpResponse {
        let began = Instant::now();
        let response = self.dynamodb.handle(request);
        *self.taken.lock().unwrap() += began.elapsed();
        response
    }
}

impl HttpClient for Engine {
    fn http_connector(
        &self,
        _: &HttpConnectorSettings,
        _: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for Engine {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let engine = self.clone();
        HttpConnectorFuture::new(async move {
            let Some(Chance { rng, faults, lies }) = &engine.chance else {
                return Ok(engine.carry_out(&request));
            };
            let roll = |below: u64| rng.lock().unwrap().u64(0..below);
            tokio::time::sleep(Duration::from_millis(roll(30))).await;
            if roll(100) < u64::from(*lies) && !action(&request).contains("Get") {
                return Ok(answer(200, "{}".to_owned()));
            }
            if roll(100) >= u64::from(*faults) {
                let answer = engine.carry_out(&request);
                tokio::time::sleep(Duration::from_millis(roll(30))).await;
                return Ok(answer);
            }
            if roll(2) == 0 {
                engine.carry_out(&request);
            }
            let says = |code: &str| Ok(answer(400, json!({ "__type": code }).to_string()));
            match roll(6) {
                0 => Ok(answer(
                    500,
                    json!({ "__type": "InternalServerError" }).to_string(),
                )),
                1 => says("ThrottlingException"),
                2 => says("ProvisionedThroughputExceededException"),
                3 => Err(ConnectorError::io("the connection was reset".into())),
                4 => Err(ConnectorError::timeout("too slow".into())),
                _ => std::future::pending().await,
            }
        })
    }
}
