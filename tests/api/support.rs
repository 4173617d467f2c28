//! A world of its own for each test: the service, a DynamoDB with the template's tables, and those who send requests.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    env, io,
    sync::{
        Arc, Mutex, Once,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use aws_sdk_dynamodb::{
    Client,
    client::Waiters as _,
    config::{
        Builder, ConfigBag, Credentials, Intercept, Region, RuntimeComponents,
        interceptors::BeforeTransmitInterceptorContextRef,
    },
    error::BoxError,
    types::AttributeValue,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use lambda_http::{Context, LambdaEvent};
use serde_json::{Value, json, value::to_raw_value};
use tracing_subscriber::{
    filter::{LevelFilter, Targets},
    layer::{Layer as _, SubscriberExt as _},
};
use workspace_local::{
    demo::DEMO_KEY,
    dynamodb::DynamoDb,
    gateway::http_event,
    tables::{create_missing, sdk_config},
};
use workspace_management::{
    api_key::{ApiKey, KeyRecord, mint},
    auth::{AnonymousOperations, Auth},
    service::Service,
    store::{Store, Table, Tables},
};

use crate::injector::{action, tables};

/// What makes one world differ from the usual one.
pub struct Setting {
    pub anonymous_operations: AnonymousOperations,
    pub key_cache: Duration,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            anonymous_operations: AnonymousOperations::Allowed,
            key_cache: Duration::from_secs(60),
        }
    }
}

pub struct World {
    pub service: Service,
    pub dynamodb: Client,
    pub endpoint: String,
    pub tables: Tables,
    pub sent: Sent,
}

impl World {
    /// A world with the organization `acme`.
    pub async fn new() -> Self {
        Self::with(Setting::default()).await
    }

    pub async fn with(setting: Setting) -> Self {
        let endpoint = engine().await;
        let tables = table_names();
        let dynamodb = Client::from_conf(config(&endpoint).build());
        create_missing(&dynamodb, &tables)
            .await
            .expect("the engine makes the tables");
        let sent = Sent::default();
        if endpoint.starts_with("https:") {
            // AWS takes a while.
            for table in Table::ALL {
                let ready = dynamodb.wait_until_table_exists();
                let ready = ready.table_name(tables.name(table));
                ready.wait(Duration::from_secs(120)).await.unwrap();
            }
        }
        let config = config(&endpoint).interceptor(sent.clone());
        let service = service(config, tables.clone(), &setting);
        let world = Self {
            service,
            dynamodb,
            endpoint,
            tables,
            sent,
        };
        world.register("acme").await;
        world
    }

    pub async fn register(&self, org: &str) {
        self.put(Table::ORGANIZATIONS, json!({ "org_id": org }))
            .await;
    }

    /// Stores the record of the key that the files in `events/` hold.
    pub async fn know_the_demo_key(&self) {
        let key = ApiKey::parse(DEMO_KEY).expect("the demo key is well-formed");
        let record = json!({
            "key_id": key.id(),
            "org_id": "acme",
            "secret_sha256": key.digest(),
            "created_at": "2026-01-01T00:00:00Z",
        });
        self.put(Table::KEYS, record).await;
    }

    pub async fn put(&self, table: Table, record: Value) {
        self.dynamodb
            .put_item()
            .table_name(self.tables.name(table))
            .set_item(Some(serde_dynamo::to_item(record).unwrap()))
            .send()
            .await
            .unwrap();
    }

    /// Someone who sends no credential.
    pub fn anonymous(&self) -> Sender<'_> {
        Sender {
            world: self,
            headers: BTreeMap::new(),
        }
    }

    /// The holder of a key of `acme` that may do everything.
    pub async fn acme(&self) -> Sender<'_> {
        self.holder(&self.issue("acme", |_| {}).await)
    }

    pub fn holder(&self, key: &str) -> Sender<'_> {
        self.anonymous()
            .with("authorization", &format!("Bearer {key}"))
    }

    /// A key of an organization, whose record `change` may change before it is stored.
    pub async fn issue(&self, org: &str, change: impl FnOnce(&mut KeyRecord)) -> String {
        let text = mint(rand8(), [7; 32]);
        let key = ApiKey::parse(&text).unwrap();
        let mut record = KeyRecord {
            key_id: key.id().to_owned(),
            org_id: org.to_owned(),
            label: "test".to_owned(),
            secret_sha256: key.digest(),
            operations: None,
            created_at: "2026-01-01T00:00:00Z".to_owned(),
            expires_at: None,
            revoked_at: None,
        };
        change(&mut record);
        self.put(Table::KEYS, serde_json::to_value(&record).unwrap())
            .await;
        text
    }

    pub async fn revoke(&self, key: &str) {
        self.dynamodb
            .update_item()
            .table_name(self.tables.name(Table::KEYS))
            .key("key_id", AttributeValue::S(key_id(key)))
            .update_expression("SET revoked_at = :now")
            .expression_attribute_values(
                ":now",
                AttributeValue::S("2026-01-02T00:00:00Z".to_owned()),
            )
            .send()
            .await
            .unwrap();
    }

    /// Everything a table holds, in the order of its key.
    pub async fn records(&self, table: Table) -> Vec<Value> {
        let name = self.tables.name(table);
        let items = self
            .dynamodb
            .scan()
            .table_name(name)
            .into_paginator()
            .items()
            .send();
        let items: Vec<_> = items.collect::<Result<_, _>>().await.unwrap();
        let mut records: Vec<Value> = serde_dynamo::from_items(items).unwrap();
        records.sort_by_key(|record| {
            table
                .key
                .iter()
                .map(|key| record[*key].to_string())
                .collect::<Vec<_>>()
        });
        records
    }

    /// The one record of a table.
    pub async fn record(&self, table: Table) -> Value {
        let records = self.records(table).await;
        assert_eq!(records.len(), 1, "{records:?}");
        records.into_iter().next().unwrap()
    }

    pub async fn drop_table(&self, table: Table) {
        self.dynamodb
            .delete_table()
            .table_name(self.tables.name(table))
            .send()
            .await
            .unwrap();
    }

    pub async fn send(&self, event: Value) -> Answer {
        Answer::read(self.send_raw(event).await)
    }

    /// The answer as Lambda gets it.
    pub async fn send_raw(&self, event: Value) -> Value {
        send(&self.service, event, Duration::from_secs(10)).await
    }
}

pub fn service(config: Builder, tables: Tables, setting: &Setting) -> Service {
    let auth = Auth::new(setting.anonymous_operations, setting.key_cache);
    Service::new(auth, Store::new(config, tables))
}

/// The engine that `TEST_DYNAMODB_ENDPOINT` names, or one in this process, of this test alone.
async fn engine() -> String {
    if let Ok(endpoint) = env::var("TEST_DYNAMODB_ENDPOINT") {
        return endpoint;
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let dynamodb = DynamoDb::in_memory().unwrap();
    tokio::spawn(dynamodb.serve(listener, std::future::pending()));
    format!("http://{address}")
}

/// Region and credentials for an engine: those of the environment for one that `TEST_DYNAMODB_ENDPOINT` names.
pub fn aws_variables() -> BTreeMap<&'static str, String> {
    let names = [
        "AWS_REGION",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
    ];
    let local = ["us-east-1", "local", "local"];
    if env::var("TEST_DYNAMODB_ENDPOINT").is_ok() && env::var(names[1]).is_ok() {
        let given = |name| Some((name, env::var(name).ok()?));
        names.into_iter().filter_map(given).collect()
    } else {
        names.into_iter().zip(local.map(str::to_owned)).collect()
    }
}

/// The SDK's configuration for an engine.
pub fn config(endpoint: &str) -> Builder {
    let mut given = aws_variables();
    let mut take = |name| given.remove(name);
    let region = take("AWS_REGION").expect("AWS_REGION");
    let id = take("AWS_ACCESS_KEY_ID").expect("AWS_ACCESS_KEY_ID");
    let secret = take("AWS_SECRET_ACCESS_KEY").expect("AWS_SECRET_ACCESS_KEY");
    let token = take("AWS_SESSION_TOKEN");
    sdk_config(endpoint)
        .region(Region::new(region))
        .credentials_provider(Credentials::new(id, secret, token, None, "test"))
}

/// Names of this test alone, so that tests can share an engine.
pub fn table_names() -> Tables {
    let prefix = u64::from_be_bytes(rand8());
    Tables::named(|table| Some(format!("test-{prefix:x}-{}", table.logical_id))).unwrap()
}

/// Eight bytes that no other call of any run gives.
pub fn rand8() -> [u8; 8] {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let nanoseconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_nanos() as u64;
    let unique = nanoseconds << 16
        ^ u64::from(std::process::id()) << 32
        ^ u64::from(COUNT.fetch_add(1, Ordering::Relaxed));
    unique.to_be_bytes()
}

/// How much to try: what passes in seconds, or with `TRIALS=full` in the environment all that the README speaks of.
pub fn trials(quick: u32, full: u32) -> u32 {
    match env::var("TRIALS").as_deref() {
        Err(_) => quick,
        Ok("full") => full,
        Ok(other) => panic!("TRIALS is full or not set, not {other:?}"),
    }
}

pub fn key_id(key: &str) -> String {
    ApiKey::parse(key).unwrap().id().to_owned()
}

/// Sends an event to a service, with that much time left for it; the answer as Lambda gets it. What it logs meanwhile, at the
/// finest level, must hold nothing that a log may not.
pub async fn send(service: &Service, event: Value, time: Duration) -> Value {
    static LOGGING: Once = Once::new();
    LOGGING.call_once(|| {
        let levels = Targets::new()
            .with_default(LevelFilter::WARN)
            .with_target("workspace_management", LevelFilter::TRACE);
        let lines = tracing_subscriber::fmt::layer()
            .json()
            .with_writer(|| Watch);
        let log = tracing_subscriber::registry().with(lines.with_filter(levels));
        tracing::subscriber::set_global_default(log).unwrap();
    });
    let mut context = Context::default();
    context.request_id = "lambda-request".to_owned();
    context.deadline = (SystemTime::now() + time)
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_millis() as u64;
    let payload = to_raw_value(&event).unwrap();
    let secrets = secrets(&event);
    let answered = SECRETS.scope(Default::default(), async {
        SECRETS.with(|kept| kept.borrow_mut().0 = secrets);
        let response = service.answer(LambdaEvent::new(payload, context)).await;
        SECRETS.with(|kept| assert_eq!(kept.borrow().1, [] as [String; 0], "the log tells"));
        serde_json::to_value(response).unwrap()
    });
    answered.await
}

tokio::task_local! {
    /// What the request that is answered may not leave in the log, and the lines that it did.
    static SECRETS: RefCell<(Vec<String>, Vec<String>)>;
}

/// A key, a body, a name or a description of an event. What is shorter than five characters is in a line by chance.
pub fn secrets(event: &Value) -> Vec<String> {
    let text = event["body"].as_str().unwrap_or_default();
    let decoded = STANDARD.decode(text).unwrap_or_default();
    let mut secrets = vec!["wsk_".to_owned(), text.to_owned()];
    for text in [text.as_bytes(), &decoded] {
        let body: Value = serde_json::from_slice(text).unwrap_or_default();
        for (name, value) in body.as_object().into_iter().flatten() {
            let value = value.as_str().unwrap_or_default();
            if name != "type" {
                secrets.push(value.trim().to_owned());
            }
        }
    }
    secrets.retain(|secret| secret.len() > 4 || secret == "wsk_");
    secrets
}

/// Looks at each line of the log as it is written.
struct Watch;

impl io::Write for Watch {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        // Outside of a request, the log is that of the tests.
        let _ = SECRETS.try_with(|kept| {
            let (secrets, found) = &mut *kept.borrow_mut();
            if secrets.iter().any(|secret| text.contains(secret)) {
                found.push(text.into_owned());
            }
        });
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An HTTP API's event (payload 2.0) as a gateway makes it of a request.
pub fn event(
    method: &str,
    path: &str,
    headers: &BTreeMap<String, String>,
    body: Option<&str>,
) -> Value {
    http_event(method, path, headers, body.map(str::as_bytes))
}

/// Someone who sends requests.
#[derive(Clone)]
pub struct Sender<'a> {
    pub world: &'a World,
    pub headers: BTreeMap<String, String>,
}

impl Sender<'_> {
    pub fn with(mut self, header: &str, value: &str) -> Self {
        self.headers.insert(header.to_owned(), value.to_owned());
        self
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.post_text(path, &body.to_string()).await
    }

    /// Sends a request again as long as it is answered 503, which is safe.
    pub async fn post_until_answered(&self, path: &str, body: Value) -> Answer {
        loop {
            let answer = self.post(path, body.clone()).await;
            if answer.status != 503 {
                return answer;
            }
        }
    }

    pub async fn post_text(&self, path: &str, body: &str) -> Answer {
        self.world
            .send(event("POST", path, &self.headers, Some(body)))
            .await
    }
}

/// What came back, as a client sees it.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: Option<Value>,
}

impl Answer {
    /// Reads an answer and holds it to what is true of every one.
    pub fn read(response: Value) -> Self {
        let answer = Self {
            status: response["statusCode"].as_u64().expect("a status") as u16,
            headers: serde_json::from_value(response["headers"].clone()).expect("headers"),
            body: response["body"]
                .as_str()
                .map(|body| serde_json::from_str(body).expect("a body of JSON")),
        };
        assert!(answer.headers.contains_key("x-request-id"), "{answer:?}");
        match &answer.body {
            None => {
                assert_eq!(answer.status, 204, "{answer:?}");
                assert_eq!(answer.headers.len(), 1, "{answer:?}");
            }
            Some(problem) => {
                assert_eq!(answer.headers["content-type"], "application/problem+json");
                assert_eq!(problem["status"], answer.status);
                assert_eq!(problem["request_id"], answer.headers["x-request-id"]);
                for member in ["type", "title", "detail", "code"] {
                    assert!(problem[member].is_string(), "{problem}");
                }
            }
        }
        answer
    }

    /// The answer's status; for a failure, with its code.
    #[track_caller]
    pub fn is(&self, status: u16, code: &str) -> &Self {
        assert_eq!((self.status, self.code()), (status, code), "{self:?}");
        self
    }

    #[track_caller]
    pub fn is_success(&self) {
        self.is(204, "");
    }

    pub fn code(&self) -> &str {
        self.body
            .as_ref()
            .map_or("", |problem| problem["code"].as_str().unwrap())
    }

    /// The violations, each as `pointer detail`.
    pub fn violations(&self) -> Vec<String> {
        let problem = self.body.as_ref().expect("a problem");
        let errors = problem["errors"]
            .as_array()
            .unwrap_or_else(|| panic!("no errors in {problem}"));
        let text = |member: &Value| member.as_str().unwrap().to_owned();
        errors
            .iter()
            .map(|error| format!("{} {}", text(&error["pointer"]), text(&error["detail"])))
            .collect()
    }
}

/// Sends each body, which must be refused for exactly the violations beside it, and writes nothing to the table.
pub async fn refuses(path: &str, table: Table, rows: &[(&str, Value, &[&str])]) {
    let world = World::new().await;
    let acme = world.acme().await;
    for (description, body, violations) in rows {
        let answer = acme.post(path, body.clone()).await;
        assert_eq!(
            (answer.status, answer.code()),
            (422, "invalid_body"),
            "{description}: {answer:?}"
        );
        assert_eq!(answer.violations(), *violations, "{description}");
    }
    assert_eq!(world.records(table).await, [] as [Value; 0]);
}

/// The attributes that tell of a record's making.
#[track_caller]
pub fn assert_made_by(record: &Value, maker: &str) {
    assert_eq!(record["created_by"], maker, "{record}");
    assert_eq!(record["request_id"], "gateway-request", "{record}");
    let created_at = record["created_at"]
        .as_str()
        .unwrap_or_else(|| panic!("{record}"));
    let age = SystemTime::now().duration_since(humantime::parse_rfc3339(created_at).unwrap());
    assert!(age.unwrap() < Duration::from_secs(60), "{record}");
}

/// Every request that a service sends to DynamoDB: the action, and the tables it names.
#[derive(Debug, Clone, Default)]
pub struct Sent(Arc<Mutex<Requests>>);

type Requests = Vec<(String, Vec<String>)>;

impl Sent {
    /// The requests since this was last asked.
    pub fn take(&self) -> Requests {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// The actions of those requests.
    pub fn take_actions(&self) -> Vec<String> {
        let sent = self.take().into_iter();
        sent.map(|(action, _)| action).collect()
    }
}

impl Intercept for Sent {
    fn name(&self) -> &'static str {
        "sent"
    }

    fn read_before_transmit(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let request = context.request();
        let (action, tables) = (action(request).to_owned(), tables(request));
        self.0.lock().unwrap().push((action, tables));
        Ok(())
    }
}
