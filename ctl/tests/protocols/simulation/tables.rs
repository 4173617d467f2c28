//! The tables of a simulation, with their past: what eventually consistent reads return, and what
//! rules are about.

use std::sync::{Arc, Mutex, MutexGuard};

use aws_sdk_dynamodb::config::http::{HttpRequest, HttpResponse};
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};
use tokio::{sync::Mutex as AsyncMutex, time::Instant};
use workspace_local::dynamodb::{DynamoDb, action};
use workspace_management::store::Table;

/// A DynamoDB that keeps its writes. Clones share the data.
#[derive(Debug, Clone)]
pub(super) struct Tables {
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
    pub(super) async fn new() -> Self {
        Self {
            dynamodb: DynamoDb::with_tables().await.expect("a DynamoDB"),
            writes: Arc::default(),
            replica: Arc::default(),
        }
    }

    /// Stores a record.
    pub(super) fn put(&self, table: Table, record: Value) {
        let item: serde_dynamo::Item = serde_dynamo::to_item(record).expect("a record");
        let body = json!({ "TableName": table.logical_id, "Item": item });
        let response = self.write(&new_request("PutItem", body.to_string()));
        assert_eq!(response.status().as_u16(), 200, "{body}");
    }

    /// The records of a table.
    pub(super) fn records(&self, table: Table) -> Vec<Value> {
        self.dynamodb.records(table)
    }

    fn writes(&self) -> MutexGuard<'_, Vec<Write>> {
        self.writes.lock().expect("a lock")
    }

    /// Handles a request that writes.
    pub(super) fn write(&self, request: &HttpRequest) -> HttpResponse {
        let body = request.body().bytes().expect("a body in memory");
        let write = Write {
            at: Instant::now(),
            action: action(request).to_owned(),
            body: String::from_utf8(body.to_vec()).expect("JSON"),
        };
        self.writes().push(write);
        self.dynamodb.handle(request)
    }

    /// Handles a strongly consistent read.
    pub(super) fn read(&self, request: &HttpRequest) -> HttpResponse {
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
        let replica = replica.as_mut().expect("a replica");
        for write in &self.writes()[replica.applied..due] {
            replica.apply(write);
        }
        replica.dynamodb.handle(request)
    }

    /// The records of a table after each write to it, with the time of the write.
    pub(super) async fn history(&self, table: Table) -> Vec<(Instant, Vec<Value>)> {
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
            dynamodb: DynamoDb::with_tables().await.expect("a DynamoDB"),
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
pub(super) fn new_request(action: &str, body: String) -> HttpRequest {
    let mut request = HttpRequest::new(SdkBody::from(body));
    let target = format!("DynamoDB_20120810.{action}");
    request.headers_mut().insert("x-amz-target", target);
    request
}
