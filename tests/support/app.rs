//! The service with a DynamoDB of its own, and the events that it handles.

use std::{
    collections::BTreeMap,
    env,
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    },
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
    events,
    gateway::http_event,
    server::Access,
    tables::create_missing,
};
use workspace_management::{
    api_key::{ApiKey, KeyRecord},
    auth::AnonymousOperations,
    operations::Operation,
    service::{Service, TIMEOUT},
    store::{MAX_CACHE_TIME, Store, Table, TableNames},
};
use workspace_records::{columns::kinds, item::primary_key, local::sdk_config, schemas};

use crate::{
    client::{TestClient, TestResponse},
    faults::{FaultInjector, Plan},
    fixtures::{self, key_record},
    log_guard::handle_checking_log,
    recorder::RequestRecorder,
};

/// The service, and a DynamoDB with tables of its own.
pub struct TestApp {
    pub service: Service,
    pub dynamodb: Client,
    pub endpoint: String,
    pub tables: TableNames,
    /// What `service` sends to DynamoDB.
    pub dynamodb_requests: RequestRecorder,
    /// How far the clock is ahead of the machine's.
    ahead: Mutex<Duration>,
    /// The DynamoDB, unless it is `TEST_DYNAMODB_ENDPOINT`.
    embedded: Option<DynamoDb>,
    /// The keys of records that need not validate.
    foreign: Mutex<Vec<(Table, Vec<String>)>>,
}

impl TestApp {
    /// An app in which the organization `acme` is registered.
    pub async fn new() -> Self {
        Self::with_anonymous_operations(AnonymousOperations::Allowed).await
    }

    pub async fn with_anonymous_operations(anonymous_operations: AnonymousOperations) -> Self {
        let (endpoint, embedded) = dynamodb().await;
        let tables = unique_table_names();
        let dynamodb = Client::from_conf(config(&endpoint).build());
        create_missing(&dynamodb, &tables)
            .await
            .expect("DynamoDB creates the tables");
        if endpoint.starts_with("https:") {
            // AWS creates tables in the background.
            for table in Table::ALL {
                let exists = dynamodb.wait_until_table_exists();
                let exists = exists.table_name(tables.name(*table));
                exists.wait(Duration::from_secs(120)).await.unwrap();
            }
        }
        let dynamodb_requests = RequestRecorder::default();
        let config = config(&endpoint).interceptor(dynamodb_requests.clone());
        let app = Self {
            service: service(config, tables.clone(), anonymous_operations),
            dynamodb,
            endpoint,
            tables,
            dynamodb_requests,
            ahead: Mutex::default(),
            embedded,
            foreign: Mutex::default(),
        };
        app.register(DEMO_ORGANIZATION).await;
        app
    }

    /// Another service on the same tables, with empty caches, whose requests fail as planned.
    pub fn faulty_service(&self, plan: impl Plan) -> Service {
        let config = config(&self.endpoint)
            .http_client(http_client(FaultInjector::new(plan)))
            // By default, all clients of a process share one budget for retries.
            .retry_partition(RetryPartition::new(unique_key()));
        service(config, self.tables.clone(), AnonymousOperations::Allowed)
    }

    /// Moves the clock of the app forward.
    pub fn advance_clock(&self, time: Duration) {
        *self.ahead.lock().unwrap() += time;
    }

    fn now(&self) -> SystemTime {
        SystemTime::now() + *self.ahead.lock().unwrap()
    }

    pub async fn register(&self, organization: &str) {
        let record = fixtures::organization(organization);
        self.insert(Table::ORGANIZATIONS, record).await;
    }

    /// Stores the record of the API key that the files in `events/` contain.
    pub async fn insert_demo_key(&self) {
        let record = key_record(DEMO_KEY, DEMO_ORGANIZATION, "demo");
        self.insert(Table::KEYS, json!(record)).await;
    }

    /// Stores the team that the event of `add_team_users` names.
    pub async fn insert_demo_team(&self) {
        let team = fixtures::team("acme", "apollo", "research-team", "Research Team");
        self.insert(Table::TEAMS, team).await;
    }

    /// Stores a record that another program has written. It need not validate.
    pub async fn insert_foreign(&self, table: Table, record: Value) {
        let key = (table, primary_key(table, &record));
        self.foreign.lock().unwrap().push(key);
        self.insert(table, record).await;
    }

    pub async fn insert(&self, table: Table, record: Value) {
        self.dynamodb
            .put_item()
            .table_name(self.tables.name(table))
            .set_item(Some(serde_dynamo::to_item(record).unwrap()))
            .send()
            .await
            .unwrap();
    }

    /// Deletes the record with a key.
    pub async fn delete(&self, table: Table, key: Value) {
        self.dynamodb
            .delete_item()
            .table_name(self.tables.name(table))
            .set_key(Some(serde_dynamo::to_item(key).unwrap()))
            .send()
            .await
            .unwrap();
    }

    /// A caller without a credential.
    pub fn anonymous(&self) -> TestClient<'_> {
        TestClient::new(self)
    }

    /// A caller with a new API key that may call every operation.
    pub async fn client_with_new_key(&self, organization: &str) -> TestClient<'_> {
        self.with_key(&self.issue_key(organization, |_| {}).await)
    }

    /// A caller with an API key.
    pub fn with_key(&self, key: &str) -> TestClient<'_> {
        self.anonymous()
            .header("authorization", &format!("Bearer {key}"))
    }

    /// Issues an API key. `change` changes its record before it is stored.
    pub async fn issue_key(
        &self,
        organization: &str,
        change: impl FnOnce(&mut KeyRecord),
    ) -> String {
        let key = unique_key();
        self.insert_key(&key, organization, change).await;
        key
    }

    /// Stores the record of an API key. `change` changes it before.
    pub async fn insert_key(
        &self,
        key: &str,
        organization: &str,
        change: impl FnOnce(&mut KeyRecord),
    ) {
        let mut record = key_record(key, organization, "test");
        change(&mut record);
        self.insert(Table::KEYS, json!(record)).await;
    }

    /// Revokes an API key of `acme`.
    pub async fn revoke_key(&self, key: &str) {
        let revoke = |key: &mut KeyRecord| key.revoked_at = Some(fixtures::CREATED_AT.to_owned());
        self.insert_key(key, "acme", revoke).await;
    }

    /// The records of a table, sorted by their key.
    pub async fn records(&self, table: Table) -> Vec<Value> {
        let items = self
            .dynamodb
            .scan()
            .consistent_read(true)
            .table_name(self.tables.name(table))
            .into_paginator()
            .items()
            .send();
        let items: Vec<_> = items.collect::<Result<_, _>>().await.unwrap();
        let mut records: Vec<Value> = serde_dynamo::from_items(items).unwrap();
        records.sort_by_cached_key(|record| primary_key(table, record));
        self.assert_valid(table, &records);
        records
    }

    /// Checks records against their schema.
    fn assert_valid(&self, table: Table, records: &[Value]) {
        let foreign = self.foreign.lock().unwrap();
        for record in records {
            if !foreign.contains(&(table, primary_key(table, record))) {
                assert_eq!(schemas::errors(table, record), [""; 0]);
            }
        }
    }

    /// The only record of a table.
    pub async fn only_record(&self, table: Table) -> Value {
        let mut records = self.records(table).await;
        assert_eq!(records.len(), 1, "{}: {records:?}", table.noun);
        records.remove(0)
    }

    /// The records of every table that operations write to, by the table's name.
    pub async fn all_records(&self) -> BTreeMap<&'static str, Vec<Value>> {
        let mut all = BTreeMap::new();
        for table in kinds() {
            all.insert(table.noun, self.records(table).await);
        }
        all
    }

    /// Sends the events of the operations that precede one, whose records it may need.
    pub async fn prepare(&self, operation: Operation) {
        for preceding in Operation::ALL {
            if *preceding == operation {
                return;
            }
            self.send(operation_event(*preceding))
                .await
                .assert_success();
        }
    }

    pub async fn delete_table(&self, table: Table) {
        self.dynamodb
            .delete_table()
            .table_name(self.tables.name(table))
            .send()
            .await
            .unwrap();
    }

    pub async fn send(&self, event: Value) -> TestResponse {
        TestResponse::read(self.send_raw(event).await)
    }

    /// Sends an event and returns the response as Lambda gets it.
    pub async fn send_raw(&self, event: Value) -> Value {
        handle_checking_log(&self.service, &event, self.now(), TIMEOUT).await
    }
}

impl Drop for TestApp {
    fn drop(&mut self) {
        let Some(dynamodb) = &self.embedded else {
            return;
        };
        if std::thread::panicking() {
            return;
        }
        for table in schemas::tables() {
            // A test may have deleted the table.
            let records = dynamodb.records_of_table(self.tables.name(table));
            self.assert_valid(table, &records.unwrap_or_default());
        }
    }
}

/// A service that caches for the longest time.
pub fn service(
    config: Builder,
    tables: TableNames,
    anonymous_operations: AnonymousOperations,
) -> Service {
    let store = Store::new(config, tables, MAX_CACHE_TIME);
    Service::new(store, anonymous_operations)
}

/// Sends an event to a service that has a limited time for it.
pub async fn send(service: &Service, event: &Value, time_limit: Duration) -> TestResponse {
    let now = SystemTime::now();
    TestResponse::read(handle_checking_log(service, event, now, time_limit).await)
}

/// What the Lambda runtime passes to the function.
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

/// An event of an HTTP API, with a body of text, whatever its content type.
pub fn event(
    method: &str,
    path: &str,
    headers: &BTreeMap<String, String>,
    body: Option<&str>,
) -> Value {
    let mut event = http_event(method, path, headers, None);
    event["body"] = json!(body);
    event
}

/// The event of an operation in `events/`.
pub fn operation_event(operation: Operation) -> Value {
    parse(&events::get(operation).unwrap())
}

/// The event of an operation with other headers.
pub fn event_with_headers(operation: Operation, headers: Value) -> Value {
    let mut event = operation_event(operation);
    event["headers"] = headers;
    event
}

pub fn parse(json: &str) -> Value {
    serde_json::from_str(json).unwrap()
}

/// The URL of `TEST_DYNAMODB_ENDPOINT`, or of an embedded DynamoDB for the calling test.
async fn dynamodb() -> (String, Option<DynamoDb>) {
    if let Ok(endpoint) = env::var("TEST_DYNAMODB_ENDPOINT") {
        return (endpoint, None);
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let dynamodb = DynamoDb::in_memory().unwrap();
    let server = dynamodb.clone();
    tokio::spawn(server.serve(listener, Access::default()));
    (format!("http://{address}"), Some(dynamodb))
}

/// The region and the credentials for the DynamoDB, as environment variables.
pub fn aws_variables() -> BTreeMap<&'static str, String> {
    let names = [
        "AWS_REGION",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
    ];
    let local = ["us-east-1", "local", "local"];
    if env::var("TEST_DYNAMODB_ENDPOINT").is_ok() && env::var(names[1]).is_ok() {
        let present = |name| Some((name, env::var(name).ok()?));
        names.into_iter().filter_map(present).collect()
    } else {
        names.into_iter().zip(local.map(str::to_owned)).collect()
    }
}

/// The SDK configuration for the DynamoDB.
pub fn config(endpoint: &str) -> Builder {
    let mut variables = aws_variables();
    let mut take = |name| variables.remove(name);
    let region = take("AWS_REGION").expect("AWS_REGION is set");
    let id = take("AWS_ACCESS_KEY_ID").expect("AWS_ACCESS_KEY_ID is set");
    let secret = take("AWS_SECRET_ACCESS_KEY").expect("AWS_SECRET_ACCESS_KEY is set");
    let token = take("AWS_SESSION_TOKEN");
    sdk_config(endpoint)
        .region(Region::new(region))
        .credentials_provider(Credentials::new(id, secret, token, None, "test"))
}

/// Table names that no other test uses, so that tests can share a DynamoDB.
pub fn unique_table_names() -> TableNames {
    let prefix = u64::from_be_bytes(unique_bytes());
    TableNames::new(|table| Ok::<_, ()>(format!("test-{prefix:x}-{}", table.logical_id))).unwrap()
}

/// Eight bytes that are different for each call, also in other processes.
pub fn unique_bytes() -> [u8; 8] {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let unique = (since_epoch.as_nanos() as u64) << 16
        ^ u64::from(std::process::id()) << 32
        ^ u64::from(COUNT.fetch_add(1, Ordering::Relaxed));
    unique.to_be_bytes()
}

/// A well-formed API key that has no record.
pub fn unique_key() -> String {
    ApiKey::generate(unique_bytes(), [[7; 16]; 2])
}

/// Two well-formed API keys with the same id and different secrets.
pub fn keys_with_same_id() -> [String; 2] {
    let id = unique_bytes();
    [7, 8].map(|byte| ApiKey::generate(id, [[byte; 16]; 2]))
}

pub fn key_id(key: &str) -> String {
    ApiKey::parse(key).unwrap().id.to_owned()
}

/// The number of iterations of a test: few by default, or all with `STRESS=full`.
pub fn iterations(default: u32, full: u32) -> u32 {
    match env::var("STRESS").as_deref() {
        Err(_) => default,
        Ok("full") => full,
        Ok(other) => panic!("STRESS must be `full` or not set, not {other:?}"),
    }
}
