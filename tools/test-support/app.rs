//! The service with its own DynamoDB, and the events that the tests send to the service.

use std::{
    collections::BTreeMap,
    env, mem,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use aws_sdk_dynamodb::{
    Client,
    client::Waiters as _,
    config::{Builder, Credentials, Region, retry::RetryPartition},
};
use lambda_http::{Context, LambdaEvent};
use serde_json::{Value, json, value::to_raw_value};
use workspace_local::{
    demo::{DEMO_KEY, DEMO_ORGANIZATION},
    dynamodb::{DynamoDb, http_client},
    gateway::http_event,
    server::Access,
    tables::create_missing,
};
use workspace_management::{
    api_key::ApiKey,
    auth::AnonymousAccess,
    operations::Operation,
    records::{ApiKeyRecord, Table},
    service::{FUNCTION_TIMEOUT, Service},
    store::{MAX_CACHE_TTL, Store, TableNames},
};
use workspace_records::{
    item::primary_key_values,
    kinds::{Kind, api_tables},
    local::sdk_config,
    schemas,
};

pub use workspace_local::events::event as operation_event;

use crate::{
    client::{TestClient, TestResponse},
    faults::network,
    fixtures::{self, key_record},
    hook::{Hook, Hooked, Request},
    log_guard::handle_checking_log,
};

/// The service, and a DynamoDB with tables that only this app uses.
pub struct TestApp {
    pub service: Service,
    dynamodb_client: Client,
    pub endpoint: String,
    pub table_names: TableNames,
    /// The requests that `service` sent to DynamoDB.
    dynamodb_requests: Arc<Mutex<Vec<Request>>>,
    /// How far the app's clock is ahead of the machine's.
    clock_offset: Mutex<Duration>,
}

impl TestApp {
    /// An app in which the organization `acme` is registered and has the demo key.
    pub async fn new() -> Self {
        Self::with_anonymous_operations(AnonymousAccess::Allowed).await
    }

    pub async fn with_anonymous_operations(anonymous_access: AnonymousAccess) -> Self {
        let endpoint = start_dynamodb().await;
        let table_names = unique_table_names();
        let dynamodb_client = Client::from_conf(sdk_config_for(&endpoint).build());
        let name_of = |table: &Table| (*table, table_names.get(*table).to_owned());
        let tables = Table::ALL.iter().map(name_of);
        create_missing(&dynamodb_client, tables)
            .await
            .expect("DynamoDB creates the tables");
        if endpoint.starts_with("https:") {
            // AWS creates tables in the background.
            for table in Table::ALL {
                dynamodb_client
                    .wait_until_table_exists()
                    .table_name(table_names.get(*table))
                    .wait(Duration::from_secs(120))
                    .await
                    .unwrap();
            }
        }
        let dynamodb_requests = Arc::new(Mutex::new(Vec::new()));
        let requests = dynamodb_requests.clone();
        let sdk_config = hooked_sdk_config(&endpoint, move |request| {
            // API keys, organizations and teams can be used as soon as they exist.
            let is_allowed = !request.is_read() || request.is_consistent();
            assert!(is_allowed, "a read is only eventually consistent");
            requests.lock().unwrap().push(request.clone());
            None
        });
        let app = Self {
            service: service(sdk_config, table_names.clone(), anonymous_access),
            dynamodb_client,
            endpoint,
            table_names,
            dynamodb_requests,
            clock_offset: Mutex::default(),
        };
        app.register(DEMO_ORGANIZATION).await;
        app.insert_key(DEMO_KEY, DEMO_ORGANIZATION, |_| {}).await;
        app
    }

    /// A second service on the same tables, with empty caches. `hook` sees its requests to DynamoDB.
    pub fn hooked_service(&self, hook: impl Hook) -> Service {
        let sdk_config = hooked_sdk_config(&self.endpoint, hook)
            // By default, all clients of a process share one budget for retries.
            .retry_partition(RetryPartition::new(unique_key()));
        let table_names = self.table_names.clone();
        service(sdk_config, table_names, AnonymousAccess::Allowed)
    }

    /// Returns the requests that `service` sent to DynamoDB since the last call.
    pub fn take_requests(&self) -> Vec<Request> {
        mem::take(&mut self.dynamodb_requests.lock().unwrap())
    }

    pub fn advance_clock(&self, by: Duration) {
        *self.clock_offset.lock().unwrap() += by;
    }

    fn now(&self) -> SystemTime {
        SystemTime::now() + *self.clock_offset.lock().unwrap()
    }

    /// Stores the record of an enabled organization.
    pub async fn register(&self, organization: &str) {
        let record = fixtures::organization(organization);
        self.insert(Table::ORGANIZATIONS, record).await;
    }

    /// Stores the team that the event of `add_team_users` names.
    pub async fn insert_demo_team(&self) {
        let team = fixtures::team("acme", "apollo", "research-team", "Research Team");
        self.insert(Table::TEAMS, team).await;
    }

    /// Stores a record, or replaces the record with the same primary key.
    pub async fn insert(&self, table: Table, record: Value) {
        self.dynamodb_client
            .put_item()
            .table_name(self.table_names.get(table))
            .set_item(Some(serde_dynamo::to_item(record).unwrap()))
            .send()
            .await
            .unwrap();
    }

    /// Removes the record with the primary key of `record`.
    pub async fn remove(&self, table: Table, record: &Value) {
        let attributes = table.primary_key_attributes.iter();
        let key: Value = attributes
            .map(|name| (*name, record[*name].clone()))
            .collect();
        self.dynamodb_client
            .delete_item()
            .table_name(self.table_names.get(table))
            .set_key(Some(serde_dynamo::to_item(key).unwrap()))
            .send()
            .await
            .unwrap();
    }

    pub fn anonymous_client(&self) -> TestClient<'_> {
        TestClient {
            app: self,
            headers: BTreeMap::new(),
        }
    }

    /// A client with a new API key that may call every operation.
    pub async fn client_with_new_key(&self, organization: &str) -> TestClient<'_> {
        self.client(&self.issue_key(organization, |_| {}).await)
    }

    pub fn client(&self, key: &str) -> TestClient<'_> {
        self.anonymous_client()
            .header("authorization", &format!("Bearer {key}"))
    }

    /// Issues an API key. `change` changes the record of the key before the record is stored.
    pub async fn issue_key(
        &self,
        organization: &str,
        change: impl FnOnce(&mut ApiKeyRecord),
    ) -> String {
        let key = unique_key();
        self.insert_key(&key, organization, change).await;
        key
    }

    /// Stores the record of an API key, as changed by `change`.
    pub async fn insert_key(
        &self,
        key: &str,
        organization: &str,
        change: impl FnOnce(&mut ApiKeyRecord),
    ) {
        let mut record = key_record(key, organization, "test");
        change(&mut record);
        self.insert(Table::API_KEYS, json!(record)).await;
    }

    /// Revokes an API key of `acme`.
    pub async fn revoke_key(&self, key: &str) {
        let revoke =
            |key: &mut ApiKeyRecord| key.revoked_at = Some(fixtures::CREATED_AT.to_owned());
        self.insert_key(key, "acme", revoke).await;
    }

    /// The records of a table, sorted by their primary keys.
    pub async fn records(&self, table: Table) -> Vec<Value> {
        let items = self
            .dynamodb_client
            .scan()
            .consistent_read(true)
            .table_name(self.table_names.get(table))
            .into_paginator()
            .items()
            .send()
            .collect::<Result<Vec<_>, _>>()
            .await
            .unwrap();
        let mut records: Vec<Value> = serde_dynamo::from_items(items).unwrap();
        records.sort_by_cached_key(|record| primary_key_values(table, record));
        records
    }

    pub async fn only_record(&self, table: Table) -> Value {
        let mut records = self.records(table).await;
        assert_eq!(records.len(), 1, "{}: {records:?}", Kind::of(table).plural);
        records.remove(0)
    }

    /// The records of every table that operations write to, by their kind. The records must match
    /// their schemas.
    pub async fn all_records(&self) -> BTreeMap<&'static str, Vec<Value>> {
        let mut all = BTreeMap::new();
        for table in api_tables() {
            let records = self.records(table).await;
            for record in &records {
                assert_eq!(schemas::errors(table, record), [""; 0]);
            }
            all.insert(Kind::of(table).plural, records);
        }
        all
    }

    pub async fn delete_table(&self, table: Table) {
        self.dynamodb_client
            .delete_table()
            .table_name(self.table_names.get(table))
            .send()
            .await
            .unwrap();
    }

    pub async fn send(&self, event: Value) -> TestResponse {
        TestResponse::read(self.send_raw(event).await)
    }

    /// Sends an event and returns the response that Lambda gets.
    pub async fn send_raw(&self, event: Value) -> Value {
        handle_checking_log(&self.service, &event, self.now(), FUNCTION_TIMEOUT).await
    }
}

/// A service that caches records for the maximum time.
pub fn service(
    sdk_config: Builder,
    table_names: TableNames,
    anonymous_access: AnonymousAccess,
) -> Service {
    let store = Store::new(sdk_config, table_names, MAX_CACHE_TTL);
    Service::new(store, anonymous_access)
}

/// Sends an event to a service, with a time limit.
pub async fn send(service: &Service, event: &Value, time_limit: Duration) -> TestResponse {
    let now = SystemTime::now();
    TestResponse::read(handle_checking_log(service, event, now, time_limit).await)
}

/// Wraps an event as the Lambda runtime does. The deadline is `now + time_limit`.
pub fn invocation(
    event: &Value,
    now: SystemTime,
    time_limit: Duration,
) -> LambdaEvent<Box<serde_json::value::RawValue>> {
    let mut context = Context::default();
    context.request_id = "lambda-request".to_owned();
    let deadline = (now + time_limit).duration_since(UNIX_EPOCH);
    context.deadline = deadline.unwrap().as_millis() as u64;
    LambdaEvent::new(to_raw_value(event).unwrap(), context)
}

/// An HTTP API event whose body is not encoded, even if the content type is not a text type.
pub fn event(
    method: &str,
    path: &str,
    headers: &BTreeMap<String, String>,
    body: Option<&str>,
) -> Value {
    let mut event = http_event(None, method, path, headers, None);
    event["body"] = json!(body);
    event
}

/// The event of an operation, with these headers instead of its own.
pub fn event_with_headers(operation: Operation, headers: Value) -> Value {
    let mut event = operation_event(operation);
    event["headers"] = headers;
    event
}

/// The URL of a new embedded DynamoDB, or `TEST_DYNAMODB_ENDPOINT` if it is set.
async fn start_dynamodb() -> String {
    if let Ok(endpoint) = env::var("TEST_DYNAMODB_ENDPOINT") {
        return endpoint;
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let dynamodb = DynamoDb::in_memory().unwrap();
    tokio::spawn(dynamodb.serve(listener, Access::default()));
    format!("http://{address}")
}

/// The environment variables with the region and the credentials for DynamoDB.
pub fn aws_variables() -> BTreeMap<&'static str, String> {
    let mut variables = BTreeMap::from([
        ("AWS_REGION", "us-east-1".to_owned()),
        ("AWS_ACCESS_KEY_ID", "local".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "local".to_owned()),
    ]);
    if env::var("TEST_DYNAMODB_ENDPOINT").is_ok() && env::var("AWS_ACCESS_KEY_ID").is_ok() {
        for (name, value) in &mut variables {
            *value = env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
        }
        if let Ok(token) = env::var("AWS_SESSION_TOKEN") {
            variables.insert("AWS_SESSION_TOKEN", token);
        }
    }
    variables
}

fn sdk_config_for(endpoint: &str) -> Builder {
    let mut variables = aws_variables();
    let token = variables.remove("AWS_SESSION_TOKEN");
    let id = &variables["AWS_ACCESS_KEY_ID"];
    let secret = &variables["AWS_SECRET_ACCESS_KEY"];
    sdk_config(endpoint)
        .region(Region::new(variables["AWS_REGION"].clone()))
        .credentials_provider(Credentials::new(id, secret, token, None, "test"))
}

/// As [`sdk_config_for`], but a hook sees each request.
fn hooked_sdk_config(endpoint: &str, hook: impl Hook) -> Builder {
    let connector = Hooked::new(network(endpoint), hook);
    sdk_config_for(endpoint).http_client(http_client(connector))
}

/// Table names that no other app uses, so that tests can share a DynamoDB.
fn unique_table_names() -> TableNames {
    let prefix = env::var("TEST_TABLE_PREFIX").unwrap_or_else(|_| "test".to_owned());
    let app = fastrand::u64(..);
    let name = |table: Table| format!("{prefix}-{app:x}-{}", table.logical_id);
    TableNames::new(|table| Ok::<_, ()>(name(table))).unwrap()
}

/// A well-formed API key that has no record.
pub fn unique_key() -> String {
    ApiKey::encode(fastrand::u64(..).to_be_bytes(), [[7; 16]; 2])
}

/// Two well-formed API keys with the same id and different secrets.
pub fn keys_with_same_id() -> [String; 2] {
    let id = fastrand::u64(..).to_be_bytes();
    [7, 8].map(|byte| ApiKey::encode(id, [[byte; 16]; 2]))
}

pub fn key_id(key: &str) -> String {
    ApiKey::parse(key).unwrap().id.to_owned()
}

/// The number of iterations of a test: `default`, or `full` with `STRESS=full`.
pub fn iterations(default: u32, full: u32) -> u32 {
    match env::var("STRESS").as_deref() {
        Err(_) => default,
        Ok("full") => full,
        Ok(value) => panic!("STRESS must be `full` or not set, not {value:?}"),
    }
}
