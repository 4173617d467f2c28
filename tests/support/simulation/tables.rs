//! The tables of a simulation, with their past: what eventually consistent reads return, and what
//! rules are about.

use std::sync::{Arc, Mutex, MutexGuard};

use aws_sdk_dynamodb::config::http::{HttpRequest, HttpResponse};
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};
use tokio::{sync::Mutex as AsyncMutex, time::Instant};
use workspace_local::dynamodb::{DynamoDb, action};
use workspace_management::{api_key::ApiKey, store::Table};
use workspace_records::schemas;

use crate::fixtures::{self, key_record};

/// A DynamoDB that keeps its writes. Clones share the data.
#[derive(Debug, Clone)]
pub struct Tables {
    dynamodb: DynamoDb,
    writes: Arc<Mutex<Vec<Write>>>,
    /// For eventually consistent reads. It is replaced if a read needs an earlier state.
    replica: Arc<AsyncMutex<Option<Replica>>>,
}

/// A request that writes.
#[derive(Debug)]
struct Write {
    at: Instant,
    action: String,
    body: String,
}

/// A copy of the tables, to which some of the writes were applied.
#[derive(Debug)]
struct Replica {
    dynamodb: DynamoDb,
    applied: usize,
}

impl Tables {
    pub async fn new() -> Self {
        Self {
            dynamodb: DynamoDb::with_tables().await.unwrap(),
            writes: Arc::default(),
            replica: Arc::default(),
        }
    }

    /// Registers an organization with an API key, and returns the key. Keys with other numbers differ.
    pub fn register(&self, org: &str, number: u64) -> String {
        self.put(Table::ORGANIZATIONS, fixtures::organization(org));
        self.issue_key(org, number)
    }

    /// Stores an API key of an organization, and returns the key.
    pub fn issue_key(&self, org: &str, number: u64) -> String {
        let key = ApiKey::generate(number.to_be_bytes(), [[7; 16]; 2]);
        self.put(Table::KEYS, json!(key_record(&key, org, "test")));
        key
    }

    /// What is wrong with the records.
    pub fn errors(&self) -> Vec<String> {
        let errors = schemas::tables().flat_map(|table| {
            let records = self.records(table).into_iter();
            records.flat_map(move |record| schemas::errors(table, &record))
        });
        errors.collect()
    }

    /// Stores a record.
    pub fn put(&self, table: Table, record: Value) {
        let item: serde_dynamo::Item = serde_dynamo::to_item(record).unwrap();
        let body = json!({ "TableName": table.logical_id, "Item": item });
        let response = self.write(&new_request("PutItem", body.to_string()));
        assert_eq!(response.status().as_u16(), 200, "{body}");
    }

    /// The records of a table.
    pub fn records(&self, table: Table) -> Vec<Value> {
        self.dynamodb.records(table)
    }

    fn writes(&self) -> MutexGuard<'_, Vec<Write>> {
        self.writes.lock().unwrap()
    }

    /// Handles a request that writes.
    pub(super) fn write(&self, request: &HttpRequest) -> HttpResponse {
        let body = request.body().bytes().unwrap();
        let write = Write {
            at: Instant::now(),
            action: action(request).to_owned(),
            body: String::from_utf8(body.to_vec()).unwrap(),
        };
        self.writes().push(write);
        self.dynamodb.handle(request)
    }

    /// Handles a strongly consistent read.
    pub(super) fn handle(&self, request: &HttpRequest) -> HttpResponse {
        self.dynamodb.handle(request)
    }

    /// Handles an eventually consistent read, with the state at a moment. `None` is before the
    /// start.
    pub(super) async fn read_at(
        &self,
        request: &HttpRequest,
        moment: Option<Instant>,
    ) -> HttpResponse {
        let mut replica = self.replica.lock().await;
        let due = self
            .writes()
            .partition_point(|write| Some(write.at) <= moment);
        if replica.as_ref().is_none_or(|replica| replica.applied > due) {
            *replica = Some(Replica::new().await);
        }
        let replica = replica.as_mut().unwrap();
        for write in &self.writes()[replica.applied..due] {
            replica.apply(write);
        }
        replica.dynamodb.handle(request)
    }

    /// The records of a table after each write to it, with the time of the write.
    pub async fn history(&self, table: Table) -> Vec<(Instant, Vec<Value>)> {
        let mut replica = Replica::new().await;
        let mut history = Vec::new();
        for write in self.writes().iter() {
            replica.apply(write);
            if write.body.contains(table.logical_id) {
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
        let request = new_request(&write.action, write.body.clone());
        self.dynamodb.handle(&request);
        self.applied += 1;
    }
}

/// A request as the SDK sends it.
pub fn new_request(action: &str, body: String) -> HttpRequest {
    let mut request = HttpRequest::new(SdkBody::from(body));
    let target = format!("DynamoDB_20120810.{action}");
    request.headers_mut().insert("x-amz-target", target);
    request
}
