//! An embedded DynamoDB, based on the `dynoxide` engine. It listens on a port, or serves the SDK in
//! the same process.

use std::{fmt, path::Path};

use anyhow::{Context as _, Result, anyhow};
use aws_sdk_dynamodb::{
    Client,
    config::http::{HttpRequest, HttpResponse},
};
use aws_smithy_runtime_api::{
    client::http::{
        HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
    },
    http::StatusCode,
};
use aws_smithy_types::body::SdkBody;
use dynoxide::Database;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use workspace_management::store::Table;

use crate::tables::{create_missing, sdk_config, table_names};

/// An embedded DynamoDB. Clones share the data.
///
/// As the SDK's HTTP client, it handles each request in the same process. Without a network,
/// tokio's paused clock can skip every wait.
#[derive(Clone)]
pub struct DynamoDb(Database);

impl DynamoDb {
    /// An empty DynamoDB in memory.
    ///
    /// # Errors
    /// If the engine does not start.
    pub fn in_memory() -> Result<Self> {
        let database = Database::memory();
        database
            .map(Self)
            .map_err(|error| anyhow!("cannot start the embedded DynamoDB: {error}"))
    }

    /// A DynamoDB whose data is in an SQLite file, which is created if it does not exist.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn open(file: &Path) -> Result<Self> {
        let name = file
            .to_str()
            .context("the name of the data file is not UTF-8")?;
        let database = Database::new(name);
        database
            .map(Self)
            .map_err(|error| anyhow!("cannot open the data file {}: {error}", file.display()))
    }

    /// A DynamoDB in memory with all tables, under the names of [`table_names`].
    ///
    /// # Errors
    /// If a table cannot be created.
    pub async fn with_tables() -> Result<Self> {
        let dynamodb = Self::in_memory()?;
        let config = sdk_config("http://dynamodb").http_client(http_client(dynamodb.clone()));
        create_missing(&Client::from_conf(config.build()), &table_names()).await?;
        Ok(dynamodb)
    }

    /// Serves HTTP requests until `shutdown` completes and the requests in progress are finished.
    ///
    /// # Errors
    /// If the server fails.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<()> {
        dynoxide::server::serve_with_shutdown(listener, self.0, shutdown)
            .await
            .map_err(|error| anyhow!("the embedded DynamoDB failed: {error}"))
    }

    /// Handles a request of the SDK.
    ///
    /// # Panics
    /// If neither the function nor `workspacectl` sends such a request.
    pub fn handle(&self, request: &HttpRequest) -> HttpResponse {
        let body = request.body().bytes().unwrap_or_default();
        let database = &self.0;
        let result = match action(request) {
            "CreateTable" => call(body, |request| database.create_table(request)),
            "ListTables" => call(body, |request| database.list_tables(request)),
            "GetItem" => call(body, |request| database.get_item(request)),
            "PutItem" => call(body, |request| database.put_item(request)),
            "UpdateItem" => call(body, |request| database.update_item(request)),
            "DeleteItem" => call(body, |request| database.delete_item(request)),
            "BatchGetItem" => call(body, |request| database.batch_get_item(request)),
            "Query" => call(body, |request| database.query(request)),
            "Scan" => call(body, |request| database.scan(request)),
            "TransactWriteItems" => call(body, |request| database.transact_write_items(request)),
            other => panic!("the embedded DynamoDB does not support {other} without a network"),
        };
        let (status, body) = match result {
            Ok(body) => (200, body),
            Err(error) => (error.status_code(), error.to_json()),
        };
        let status = StatusCode::try_from(status).expect("a valid status");
        HttpResponse::new(status, SdkBody::from(body))
    }

    /// Stores a record and replaces one with the same key. The table must have the name of
    /// [`table_names`].
    ///
    /// # Panics
    /// If the record does not fit the table.
    pub fn put(&self, table: Table, record: impl Serialize) {
        let item: serde_dynamo::Item = serde_dynamo::to_item(record).expect("a record");
        let request = json!({ "TableName": table.logical_id, "Item": item });
        self.run(request, |request| self.0.put_item(request));
    }

    /// Deletes the record that has the key of the given one.
    ///
    /// # Panics
    /// If the record has no key of the table.
    pub fn delete(&self, table: Table, record: &Value) {
        let key: Value = table
            .key
            .iter()
            .map(|name| ((*name).to_owned(), json!({ "S": record[*name] })))
            .collect();
        let request = json!({ "TableName": table.logical_id, "Key": key });
        self.run(request, |request| self.0.delete_item(request));
    }

    /// The records of a table: the first megabyte, in no particular order.
    ///
    /// # Panics
    /// If the table does not exist.
    pub fn records(&self, table: Table) -> Vec<Value> {
        let records = self.records_of_table(table.logical_id);
        records.unwrap_or_else(|| panic!("{} does not exist", table.logical_id))
    }

    /// The records of a table with this name: the first megabyte, in no particular order. `None` if
    /// there is no such table.
    ///
    /// # Panics
    /// If an item is not a record.
    pub fn records_of_table(&self, name: &str) -> Option<Vec<Value>> {
        let request = json!({ "TableName": name }).to_string();
        let response = call(request.as_bytes(), |request| self.0.scan(request)).ok()?;
        let response: Value = serde_json::from_str(&response).expect("JSON");
        let items: Vec<serde_dynamo::Item> =
            serde_json::from_value(response["Items"].clone()).expect("items");
        let record = |item| serde_dynamo::from_item(item).expect("a record");
        Some(items.into_iter().map(record).collect())
    }

    fn run<Q: DeserializeOwned, R: Serialize>(
        &self,
        request: Value,
        action: impl FnOnce(Q) -> dynoxide::Result<R>,
    ) -> Value {
        let response = call(request.to_string().as_bytes(), action);
        let response = response.unwrap_or_else(|error| panic!("{request}: {error}"));
        serde_json::from_str(&response).expect("JSON")
    }
}

/// An HTTP client for the SDK that passes every request to a connector.
pub fn http_client(connector: impl HttpConnector + 'static) -> SharedHttpClient {
    let connector = SharedHttpConnector::new(connector);
    http_client_fn(move |_, _| connector.clone())
}

/// The DynamoDB action in a request of the SDK, such as `GetItem`.
pub fn action(request: &HttpRequest) -> &str {
    let target = request.headers().get("x-amz-target").unwrap_or_default();
    target.rsplit('.').next().unwrap_or_default()
}

/// Whether a request of the SDK only reads.
pub fn is_read(request: &HttpRequest) -> bool {
    ["GetItem", "BatchGetItem", "Query", "Scan"].contains(&action(request))
}

/// Runs an action whose request and response are JSON.
fn call<Q: DeserializeOwned, R: Serialize>(
    request: &[u8],
    action: impl FnOnce(Q) -> dynoxide::Result<R>,
) -> dynoxide::Result<String> {
    let request = serde_json::from_slice(request).expect("a request of the SDK");
    Ok(serde_json::to_string(&action(request)?).expect("JSON"))
}

impl fmt::Debug for DynamoDb {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("DynamoDb").finish_non_exhaustive()
    }
}

impl HttpConnector for DynamoDb {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let dynamodb = self.clone();
        HttpConnectorFuture::new(async move { Ok(dynamodb.handle(&request)) })
    }
}
