//! The engine in the process of the test: an HTTP client for the SDK, without a network.

use std::{
    fmt,
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
use dynoxide::Database;
use fastrand::Rng;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use workspace_local::tables::{create_missing, sdk_config, table_names};
use workspace_management::{
    key::{ApiKey, mint},
    store::Table,
};

use crate::injector::{action, answer};

/// The engine in this process, without a network that a jumping clock could not wait for.
#[derive(Clone)]
pub struct Engine {
    pub database: Database,
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

impl Engine {
    /// An engine with the template's tables.
    pub async fn new() -> Self {
        let engine = Self {
            database: Database::memory().unwrap(),
            chance: None,
            taken: Arc::default(),
        };
        let config = sdk_config("http://engine").http_client(engine.clone());
        let client = aws_sdk_dynamodb::Client::from_conf(config.build());
        create_missing(&client, &table_names()).await.unwrap();
        engine
    }

    /// Stores an item, in DynamoDB's JSON.
    pub fn put(&self, table: Table, item: Value) {
        let request = json!({ "TableName": table.logical_id, "Item": item });
        let request = serde_json::from_value(request).unwrap();
        self.database.put_item(request).unwrap();
    }

    /// A key of an organization.
    pub fn issue(&self, org: &str, number: u64) -> String {
        let text = mint(number.to_be_bytes(), [7; 32]);
        let key = ApiKey::parse(&text).unwrap();
        let item = json!({
            "key_id": { "S": key.id() },
            "org_id": { "S": org },
            "secret_sha256": { "S": key.digest() },
            "label": { "S": "" },
            "created_at": { "S": "2026-01-01T00:00:00Z" },
        });
        self.put(Table::KEYS, item);
        text
    }

    /// Deletes a record.
    pub fn delete(&self, table: Table, record: &Value) {
        let key: Value = table
            .key
            .iter()
            .map(|name| ((*name).to_owned(), json!({ "S": record[*name] })))
            .collect();
        let request = json!({ "TableName": table.logical_id, "Key": key });
        self.database
            .delete_item(serde_json::from_value(request).unwrap())
            .unwrap();
    }

    fn carry_out(&self, request: &HttpRequest) -> HttpResponse {
        let began = Instant::now();
        let body = request.body().bytes().unwrap();
        let db = &self.database;
        let result = match action(request) {
            "CreateTable" => run(body, |request| db.create_table(request)),
            "DescribeTable" => run(body, |request| db.describe_table(request)),
            "ListTables" => run(body, |request| db.list_tables(request)),
            "GetItem" => run(body, |request| db.get_item(request)),
            "BatchGetItem" => run(body, |request| db.batch_get_item(request)),
            "PutItem" => run(body, |request| db.put_item(request)),
            "UpdateItem" => run(body, |request| db.update_item(request)),
            "TransactWriteItems" => run(body, |request| db.transact_write_items(request)),
            other => panic!("{other} is not expected"),
        };
        let response = match result {
            Ok(body) => answer(200, body),
            Err(error) => answer(error.status_code(), error.to_json()),
        };
        *self.taken.lock().unwrap() += began.elapsed();
        response
    }

    pub fn records(&self, table: Table) -> Vec<Value> {
        let request = json!({ "TableName": table.logical_id });
        let found = self.database.scan(serde_json::from_value(request).unwrap());
        let found = serde_json::to_value(found.unwrap()).unwrap();
        let plain = |item: &Value| -> Value {
            let attributes = item.as_object().unwrap().iter();
            attributes
                .map(|(name, value)| {
                    let value = match value.as_object().unwrap().iter().next().unwrap() {
                        (kind, value) if kind == "N" => value.as_str().unwrap().parse().unwrap(),
                        (_, value) => value.clone(),
                    };
                    (name.clone(), value)
                })
                .collect()
        };
        found["Items"]
            .as_array()
            .unwrap()
            .iter()
            .map(plain)
            .collect()
    }
}

fn run<Q: DeserializeOwned, A: Serialize>(
    body: &[u8],
    call: impl FnOnce(Q) -> dynoxide::Result<A>,
) -> dynoxide::Result<String> {
    Ok(serde_json::to_string(&call(serde_json::from_slice(body).unwrap())?).unwrap())
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
