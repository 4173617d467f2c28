//! An embedded DynamoDB, based on the `dynoxide` engine, that listens on a port or serves the SDK
//! in the same process.

use std::{
    collections::HashMap,
    fmt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::{Context as _, Result, anyhow};
use aws_sdk_dynamodb::{
    Client,
    config::{
        http::{HttpRequest, HttpResponse},
        retry::RetryConfig,
    },
};
use aws_smithy_runtime_api::{
    client::http::{
        HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
    },
    http::StatusCode,
};
use aws_smithy_types::body::SdkBody;
use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State, rejection::BytesRejection},
    http::HeaderMap,
    response::{IntoResponse as _, Response},
    routing::post,
};
use dynoxide::Database;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use workspace_management::records::Table;
use workspace_records::local::{sdk_config, tables};

use crate::{
    log, random_request_id,
    server::{self, Access},
    tables::create_missing,
};

/// DynamoDB's maximum size of a request.
const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// An embedded DynamoDB. Clones share the data.
///
/// As the SDK's HTTP connector, handles each request in the same process. Without a network,
/// tokio's paused clock can skip every wait.
#[derive(Clone)]
pub struct DynamoDb {
    database: Database,
    /// The number of requests so far that may have written.
    writes: Arc<AtomicU64>,
}

impl DynamoDb {
    /// An empty DynamoDB in memory.
    ///
    /// # Errors
    /// If the engine does not start.
    pub fn in_memory() -> Result<Self> {
        let database =
            Database::memory().map_err(|error| anyhow!("cannot start DynamoDB: {error}"))?;
        Ok(Self::new(database))
    }

    fn new(database: Database) -> Self {
        let writes = Arc::default();
        Self { database, writes }
    }

    /// A DynamoDB with its data in an SQLite file. Creates the file if it does not exist.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn open(file: &Path) -> Result<Self> {
        let name = file.to_str().context("the data file's name is not UTF-8")?;
        let database = Database::new(name).map_err(|error| anyhow!("{error}"))?;
        Ok(Self::new(database))
    }

    /// A DynamoDB in memory with all tables, as on any local DynamoDB.
    ///
    /// # Errors
    /// If a table cannot be created.
    pub async fn with_tables() -> Result<Self> {
        let dynamodb = Self::in_memory()?;
        create_missing(&dynamodb.client(), tables()).await?;
        Ok(dynamodb)
    }

    /// A client that sends its requests without a network, and each only once.
    pub fn client(&self) -> Client {
        let config = sdk_config("http://dynamodb")
            .http_client(http_client(self.clone()))
            .retry_config(RetryConfig::disabled());
        Client::from_conf(config.build())
    }

    /// Serves HTTP requests until the future is dropped. Also serves the [`log`].
    ///
    /// Unlike the engine's server, sends no CORS headers, so that web pages cannot read responses.
    pub async fn serve(self, listener: TcpListener, access: Access) {
        let routes = Router::new()
            .route("/", post(respond))
            .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
            .with_state(self)
            .merge(log::routes());
        server::serve(listener, routes, access).await;
    }

    /// A number that increases after each request that may have written a record.
    pub(crate) fn version(&self) -> u64 {
        self.writes.load(Ordering::SeqCst)
    }

    /// Runs an action. The body is the action's request in JSON.
    pub fn handle(&self, action: &str, body: &[u8]) -> HttpResponse {
        let (status, body) = self.dispatch(action, body);
        let status = StatusCode::try_from(status).expect("a valid status");
        HttpResponse::new(status, SdkBody::from(body))
    }

    /// As [`Self::handle`], but returns a status and JSON.
    fn dispatch(&self, action: &str, body: &[u8]) -> (u16, String) {
        let database = &self.database;
        let response = match action {
            "BatchExecuteStatement" => call(body, |body| database.batch_execute_statement(body)),
            "BatchGetItem" => call(body, |body| database.batch_get_item(body)),
            "BatchWriteItem" => call(body, |body| database.batch_write_item(body)),
            "CreateTable" => call(body, |body| database.create_table(body)),
            "DeleteItem" => call(body, |body| database.delete_item(body)),
            "DeleteTable" => call(body, |body| database.delete_table(body)),
            "DescribeStream" => call(body, |body| database.describe_stream(body)),
            "DescribeTable" => call(body, |body| database.describe_table(body)),
            "DescribeTimeToLive" => call(body, |body| database.describe_time_to_live(body)),
            "ExecuteStatement" => call(body, |body| database.execute_statement(body)),
            "ExecuteTransaction" => call(body, |body| database.execute_transaction(body)),
            "GetItem" => call(body, |body| database.get_item(body)),
            "GetRecords" => call(body, |body| database.get_records(body)),
            "GetShardIterator" => call(body, |body| database.get_shard_iterator(body)),
            "ListStreams" => call(body, |body| database.list_streams(body)),
            "ListTables" => call(body, |body| database.list_tables(body)),
            "ListTagsOfResource" => call(body, |body| database.list_tags_of_resource(body)),
            "PutItem" => call(body, |body| database.put_item(body)),
            "Query" => call(body, |body| database.query(body)),
            "Scan" => call(body, |body| database.scan(body)),
            "TagResource" => call(body, |body| database.tag_resource(body)),
            "TransactGetItems" => call(body, |body| database.transact_get_items(body)),
            "TransactWriteItems" => call(body, |body| database.transact_write_items(body)),
            "UntagResource" => call(body, |body| database.untag_resource(body)),
            "UpdateItem" => call(body, |body| database.update_item(body)),
            "UpdateTable" => call(body, |body| database.update_table(body)),
            "UpdateTimeToLive" => call(body, |body| database.update_time_to_live(body)),
            _ => return error("UnknownOperationException", "The operation is unknown."),
        };
        if !is_read(action) {
            // After the write: a reader of the version and then of the records misses no write.
            self.writes.fetch_add(1, Ordering::SeqCst);
        }
        response
    }

    /// Stores a record, or replaces the record with the same primary key. The table must have its
    /// logical id as its name.
    ///
    /// # Panics
    /// If the record does not fit the table.
    pub fn put(&self, table: Table, record: impl Serialize) {
        let item: serde_dynamo::Item = serde_dynamo::to_item(record).expect("a record");
        let request = json!({ "TableName": table.logical_id, "Item": item });
        self.expect_success("PutItem", &request);
    }

    /// Removes the record with the primary key of `record`.
    ///
    /// # Panics
    /// If `record` lacks an attribute of the table's primary key.
    pub fn delete(&self, table: Table, record: &Value) {
        let mut key = json!({});
        for name in table.primary_key_attributes {
            key[*name] = json!({ "S": record[*name] });
        }
        let request = json!({ "TableName": table.logical_id, "Key": key });
        self.expect_success("DeleteItem", &request);
    }

    /// The records of a table: the first megabyte, in no particular order.
    ///
    /// # Panics
    /// If the table does not exist, or if an item cannot be represented in JSON.
    pub fn records(&self, table: Table) -> Vec<Value> {
        let request = json!({ "TableName": table.logical_id });
        let response = self.expect_success("Scan", &request);
        let response: Value = serde_json::from_str(&response).expect("JSON");
        let items: Vec<HashMap<String, serde_dynamo::AttributeValue>> =
            serde_json::from_value(response["Items"].clone()).expect("items");
        serde_dynamo::from_items(items).expect("records")
    }

    /// As [`Self::dispatch`], but panics if the action fails.
    fn expect_success(&self, action: &str, request: &Value) -> String {
        let (status, response) = self.dispatch(action, request.to_string().as_bytes());
        assert_eq!(status, 200, "{request}: {response}");
        response
    }
}

/// An HTTP client for the SDK that passes every request to `connector`.
pub fn http_client(connector: impl HttpConnector + 'static) -> SharedHttpClient {
    let connector = SharedHttpConnector::new(connector);
    http_client_fn(move |_, _| connector.clone())
}

/// The action in a header such as `DynamoDB_20120810.GetItem`, or an empty string.
fn action_of(target: Option<&str>) -> &str {
    match target.and_then(|target| target.split_once('.')) {
        Some((_, action)) => action,
        None => "",
    }
}

/// Whether an action only reads records.
pub fn is_read(action: &str) -> bool {
    matches!(action, "GetItem" | "BatchGetItem" | "Query" | "Scan")
}

/// Runs an action of the engine with a request in JSON. Returns a status and JSON.
fn call<Q: DeserializeOwned, R: Serialize>(
    request: &[u8],
    action: impl FnOnce(Q) -> dynoxide::Result<R>,
) -> (u16, String) {
    let request = match serde_json::from_slice(request) {
        Ok(request) => request,
        Err(invalid) => return error("SerializationException", &invalid.to_string()),
    };
    match action(request) {
        Ok(response) => (200, serde_json::to_string(&response).expect("JSON")),
        Err(error) => (error.status_code(), error.to_json()),
    }
}

/// An error from this server, not from the engine.
fn error(code: &str, message: &str) -> (u16, String) {
    let body = json!({ "__type": format!("com.amazon.coral.service#{code}"), "message": message });
    (400, body.to_string())
}

/// Handles a request that came over HTTP.
async fn respond(
    State(dynamodb): State<DynamoDb>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let target = headers.get("x-amz-target");
    let action = action_of(target.and_then(|target| target.to_str().ok()));
    let (status, body) = match body {
        Ok(body) => dynamodb.dispatch(action, &body),
        Err(rejection) => error("SerializationException", &rejection.body_text()),
    };
    let headers = [
        ("content-type", "application/x-amz-json-1.0".to_owned()),
        ("x-amzn-requestid", random_request_id()),
    ];
    let status = axum::http::StatusCode::from_u16(status).expect("a valid status");
    (status, headers, body).into_response()
}

impl fmt::Debug for DynamoDb {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("DynamoDb").finish_non_exhaustive()
    }
}

impl HttpConnector for DynamoDb {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let dynamodb = self.clone();
        HttpConnectorFuture::new(async move {
            let action = action_of(request.headers().get("x-amz-target"));
            let body = request.body().bytes().unwrap_or_default();
            Ok(dynamodb.handle(action, body))
        })
    }
}
