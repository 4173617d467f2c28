//! The tables of a simulation, and their past states. Eventually consistent reads return a past
//! state, and rules check the history.

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, SystemTime},
};

use aws_sdk_dynamodb::config::http::HttpResponse;
use serde_json::{Value, json};
use tokio::{sync::Mutex as AsyncMutex, time::Instant};
use workspace_local::dynamodb::DynamoDb;
use workspace_management::{api_key::ApiKey, records::Table};
use workspace_records::{kinds::HISTORY, schemas};

use crate::{
    fixtures::{self, key_record},
    hook::Request,
};

/// A DynamoDB that records its writes. Clones share the data.
#[derive(Debug, Clone)]
pub struct Tables {
    pub started: Instant,
    pub(super) dynamodb: DynamoDb,
    writes: Arc<Mutex<Vec<Write>>>,
    /// The state for eventually consistent reads. Replaced when a read needs an earlier state.
    replica: Arc<AsyncMutex<Option<Replica>>>,
}

#[derive(Debug)]
struct Write {
    at: Instant,
    request: Request,
}

/// A copy of the tables after the first writes.
#[derive(Debug)]
struct Replica {
    dynamodb: DynamoDb,
    /// The number of writes that were applied to the copy.
    applied: usize,
}

impl Tables {
    pub async fn new() -> Self {
        Self {
            started: Instant::now(),
            dynamodb: DynamoDb::with_tables().await.unwrap(),
            writes: Arc::default(),
            replica: Arc::default(),
        }
    }

    /// The simulated clock as a time.
    pub fn time(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600) + self.started.elapsed()
    }

    /// Registers an organization and issues an API key, as [`Self::issue_key`] does.
    pub fn register(&self, org: &str, number: u64) -> String {
        self.put(Table::ORGANIZATIONS, fixtures::organization(org));
        self.issue_key(org, number)
    }

    /// Issues an API key of an organization, and returns it. Each `number` gives a different key.
    pub fn issue_key(&self, org: &str, number: u64) -> String {
        let key = ApiKey::encode(number.to_be_bytes(), [[7; 16]; 2]);
        self.put(Table::API_KEYS, json!(key_record(&key, org, "test")));
        key
    }

    /// The errors of the records against their schemas.
    pub fn errors(&self) -> Vec<String> {
        let mut errors = Vec::new();
        for table in schemas::tables().chain([HISTORY]) {
            for record in self.records(table) {
                errors.extend(schemas::errors(table, &record));
            }
        }
        errors
    }

    pub fn put(&self, table: Table, record: Value) {
        let item: serde_dynamo::Item = serde_dynamo::to_item(record).unwrap();
        let body = json!({ "TableName": table.logical_id, "Item": item });
        let request = Request::new("PutItem", body);
        let response = self.write(&request);
        assert_eq!(response.status().as_u16(), 200, "{request:?}");
    }

    pub fn records(&self, table: Table) -> Vec<Value> {
        self.dynamodb.records(table)
    }

    fn writes(&self) -> MutexGuard<'_, Vec<Write>> {
        self.writes.lock().unwrap()
    }

    pub(super) fn write(&self, request: &Request) -> HttpResponse {
        let write = Write {
            at: Instant::now(),
            request: request.clone(),
        };
        self.writes().push(write);
        request.send_to(&self.dynamodb)
    }

    /// Handles an eventually consistent read of the state at `moment`. `None` is a moment before
    /// the first write.
    pub(super) async fn read_at(&self, request: &Request, moment: Option<Instant>) -> HttpResponse {
        let mut replica = self.replica.lock().await;
        let due = self
            .writes()
            .partition_point(|write| Some(write.at) <= moment);
        let mut state = match replica.take() {
            Some(state) if state.applied <= due => state,
            _ => Replica::new().await,
        };
        for write in &self.writes()[state.applied..due] {
            state.apply(write);
        }
        let response = request.send_to(&state.dynamodb);
        *replica = Some(state);
        response
    }

    /// The records of a table after each write to the table, with the time of the write.
    pub async fn history(&self, table: Table) -> Vec<(Instant, Vec<Value>)> {
        let mut replica = Replica::new().await;
        let mut history = Vec::new();
        for write in self.writes().iter() {
            replica.apply(write);
            if write.request.body.to_string().contains(table.logical_id) {
                history.push((write.at, replica.dynamodb.records(table)));
            }
        }
        history
    }
}

impl Replica {
    async fn new() -> Self {
        Self {
            dynamodb: DynamoDb::with_tables().await.unwrap(),
            applied: 0,
        }
    }

    fn apply(&mut self, write: &Write) {
        write.request.send_to(&self.dynamodb);
        self.applied += 1;
    }
}
