//! An embedded DynamoDB without a network, which can make random requests fail.

use std::{
    fmt,
    ops::Deref,
    sync::{Arc, Mutex},
    time::Duration,
};

use aws_sdk_dynamodb::config::http::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::{
    http::{HttpConnector, HttpConnectorFuture},
    result::ConnectorError,
};
use fastrand::Rng;
use serde_json::json;
use tokio::time::sleep;
use workspace_local::{
    dynamodb::{DynamoDb, is_read},
    fixtures::key_record,
};
use workspace_management::{api_key::ApiKey, store::Table};

use crate::support::fault_injector::http_response;

/// A DynamoDB with all tables, as the SDK's HTTP client.
#[derive(Clone)]
pub struct UnreliableDynamoDb {
    dynamodb: DynamoDb,
    /// `None` is reliable.
    pub faults: Option<Faults>,
}

/// How often requests fail.
#[derive(Clone)]
pub struct Faults {
    pub rng: Arc<Mutex<Rng>>,
    /// The percentage of requests that fail with an error.
    pub errors: u8,
    /// The percentage of writes that report success but are lost. A real DynamoDB never does this:
    /// it proves that a simulation finds lost writes.
    pub lost_writes: u8,
}

impl UnreliableDynamoDb {
    /// A DynamoDB without faults.
    pub async fn new() -> Self {
        Self {
            dynamodb: DynamoDb::with_tables().await.unwrap(),
            faults: None,
        }
    }

    /// Stores the record of an API key, which is derived from a number, and returns the key.
    pub fn issue_key(&self, organization: &str, number: u64) -> String {
        let key = ApiKey::generate(number.to_be_bytes(), [[7; 16]; 2]);
        self.put(Table::KEYS, key_record(&key, organization, "test"));
        key
    }

    async fn handle_with_faults(
        &self,
        request: &HttpRequest,
        faults: &Faults,
    ) -> Result<HttpResponse, ConnectorError> {
        let random = |limit: u64| faults.rng.lock().unwrap().u64(0..limit);
        sleep(Duration::from_millis(random(30))).await;
        let is_write = !is_read(request);
        if is_write && random(100) < u64::from(faults.lost_writes) {
            return Ok(http_response(200, "{}".to_owned()));
        }
        if random(100) >= u64::from(faults.errors) {
            let response = self.dynamodb.handle(request);
            sleep(Duration::from_millis(random(30))).await;
            return Ok(response);
        }
        // A failed request may have been executed.
        if random(2) == 0 {
            self.dynamodb.handle(request);
        }
        let error = |status, code: &str| {
            let body = json!({ "__type": code }).to_string();
            Ok(http_response(status, body))
        };
        match random(6) {
            0 => error(500, "InternalServerError"),
            1 => error(400, "ThrottlingException"),
            2 => error(400, "ProvisionedThroughputExceededException"),
            3 => Err(ConnectorError::io("the connection was reset".into())),
            4 => Err(ConnectorError::timeout("too slow".into())),
            _ => std::future::pending().await,
        }
    }
}

impl Deref for UnreliableDynamoDb {
    type Target = DynamoDb;

    fn deref(&self) -> &DynamoDb {
        &self.dynamodb
    }
}

impl fmt::Debug for UnreliableDynamoDb {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("UnreliableDynamoDb")
    }
}

impl HttpConnector for UnreliableDynamoDb {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let dynamodb = self.clone();
        HttpConnectorFuture::new(async move {
            match &dynamodb.faults {
                None => Ok(dynamodb.handle(&request)),
                Some(faults) => dynamodb.handle_with_faults(&request, faults).await,
            }
        })
    }
}
