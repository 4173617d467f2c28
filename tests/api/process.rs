//! The compiled binary, driven by a Lambda Runtime API as Lambda drives it.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use aws_sdk_dynamodb::config::http::HttpRequest;
use aws_smithy_http_client::Connector;
use aws_smithy_runtime_api::client::http::{HttpConnector as _, SharedHttpConnector};
use aws_smithy_types::{body::SdkBody, byte_stream::ByteStream};
use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::{get, post},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    process::{Child, Command},
    task::{AbortHandle, JoinHandle},
    time::timeout,
};
use workspace_local::runtime_api::{RuntimeApi, TRACE_ID, environment};
use workspace_management::store::Table;

use crate::support::{Answer, World, aws_variables, event, secrets};

const PATH: &str = "/api/v1/org/acme/dataStores/create";

/// Lambda's side: events wait for the function to fetch them, results for the test.
struct Lambda {
    function: Child,
    runtime_api: RuntimeApi,
    /// What it writes, read all the time, so that it never waits for a reader.
    output: JoinHandle<String>,
    errors: JoinHandle<String>,
    /// What its log may not hold.
    secrets: std::sync::Mutex<Vec<String>>,
}

async fn read(mut stream: impl AsyncRead + Unpin) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

/// The binary to drive: that of `WORKSPACE_MANAGEMENT_BINARY`, or the one that this test was built with.
fn binary() -> String {
    env::var("WORKSPACE_MANAGEMENT_BINARY")
        .unwrap_or_else(|_| env!("CARGO_BIN_EXE_workspace-management").to_owned())
}

fn function(world: &World, runtime_api: &str, variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(binary());
    command
        .env_clear()
        .envs(environment(runtime_api))
        .env("AWS_LAMBDA_LOG_LEVEL", "TRACE")
        .envs(aws_variables())
        .env("AWS_ENDPOINT_URL_DYNAMODB", &world.endpoint)
        .envs(Table::ALL.map(|table| (table.variable, world.tables.name(table))))
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

impl Lambda {
    async fn start(world: &World, variables: &[(&str, &str)]) -> Self {
        let runtime_api = RuntimeApi::start().await.unwrap();
        let mut function = function(world, runtime_api.address(), variables)
            .spawn()
            .unwrap();
        Self {
            output: tokio::spawn(read(function.stdout.take().unwrap())),
            errors: tokio::spawn(read(function.stderr.take().unwrap())),
            secrets: Default::default(),
            function,
            runtime_api,
        }
    }

    fn send(&self, request_id: &str, event: impl ToString) {
        let event = event.to_string();
        let json = serde_json::from_str(&event).unwrap_or_default();
        self.secrets.lock().unwrap().extend(secrets(&json));
        self.runtime_api.send(request_id, event);
    }

    /// The function's next response, and the request id of its event.
    async fn response(&mut self) -> (String, Value) {
        let result = self.runtime_api.result().await.unwrap();
        assert!(!result.is_error, "{result:?}");
        (
            result.request_id,
            serde_json::from_slice(&result.body).unwrap(),
        )
    }

    async fn invoke(&mut self, event: impl ToString) -> Answer {
        self.send("invocation", event);
        let (request_id, response) = self.response().await;
        assert_eq!(request_id, "invocation");
        Answer::read(response)
    }

    /// Stops the function; what it wrote to its log.
    async fn log(mut self) -> Vec<Value> {
        self.function.kill().await.unwrap();
        assert_eq!(self.errors.await.unwrap(), "");
        let log = self.output.await.unwrap();
        for secret in self.secrets.lock().unwrap().iter() {
            assert!(!log.contains(secret), "{secret} in {log}");
        }
        log.lines()
            .map(|line| serde_json::from_str(line).expect(line))
            .collect()
    }
}

fn request(headers: &BTreeMap<String, String>) -> Value {
    event(
        "POST",
        PATH,
        headers,
        Some(r#"{"dataStoreName": "Papers"}"#),
    )
}

#[tokio::test]
async fn the_binary_answers_is_poisoned_and_answers_again() {
    let world = World::new().await;
    let mut lambda = Lambda::start(&world, &[]).await;
    let mut not_base64 = request(&BTreeMap::new());
    not_base64["isBase64Encoded"] = json!(true);

    lambda.invoke(request(&BTreeMap::new())).await.is_success();
    for poison in [json!(null), json!({ "Records": [] }), not_base64] {
        lambda.invoke(poison).await.is(400, "malformed_event");
    }
    lambda.send("no-json", "{");
    assert!(lambda.runtime_api.result().await.unwrap().is_error);
    lambda.invoke(request(&BTreeMap::new())).await.is_success();

    assert_eq!(
        world.record(Table::DATA_STORES).await["data_store_id"],
        "papers"
    );
    let log = lambda.log().await;
    let refused = log.iter().filter(|line| line["code"] == "malformed_event");
    assert_eq!(refused.count(), 3, "{log:?}");
}

#[tokio::test]
async fn the_log_has_one_line_for_each_request_that_says_all() {
    let world = World::new().await;
    let key = world.issue("acme", |_| {}).await;
    let holder = world.holder(&key);
    let mut lambda = Lambda::start(&world, &[]).await;
    let traced = holder
        .clone()
        .with(
            "X-Amzn-Trace-Id",
            "Self=1-1; Root=1-67891233-abcdef012345678912345678;Sampled=1",
        )
        .with(
            "TraceParent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        );
    lambda.invoke(request(&traced.headers)).await.is_success();
    let untraced = holder
        .clone()
        .with("x-amzn-trace-id", "Root=1-67891233-Papers")
        .with(
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0x",
        );
    lambda
        .invoke(event("POST", PATH, &untraced.headers, Some("{}")))
        .await
        .is(422, "invalid_body");
    world.drop_table(Table::DATA_STORES).await;
    lambda
        .invoke(request(&holder.headers))
        .await
        .is(500, "internal");
    let other = event(
        "POST",
        &PATH.replace("acme", "globex"),
        &holder.headers,
        Some("{}"),
    );
    lambda.invoke(other).await.is(403, "other_organization");

    let log = lambda.log().await;

    assert_eq!(log.len(), 4, "{log:?}");
    let expected = [
        json!({ "level": "INFO", "status": 204, "code": null, "cold_start": true }),
        json!({ "level": "INFO", "status": 422, "code": "invalid_body", "cold_start": false }),
        json!({ "level": "ERROR", "status": 500, "code": "internal", "cold_start": false }),
        json!({ "level": "INFO", "status": 403, "code": "other_organization", "cold_start": false }),
    ];
    for (line, expected) in log.iter().zip(&expected) {
        for (member, value) in expected.as_object().unwrap() {
            assert_eq!(line[member], *value, "{member} of {line}");
        }
        assert_eq!(line["operation"], "create_data_store");
        assert_eq!(line["organization"], "acme");
        assert_eq!(line["key_id"], crate::support::key_id(&key));
        assert_eq!(line["request_id"], "gateway-request");
        assert_eq!(line["trace_id"], TRACE_ID);
        assert!(line["duration_ms"].as_f64().unwrap() > 0.0);
        assert!(line["timestamp"].is_string());
        let text = line.to_string();
        assert!(!text.contains(&key) && !text.contains("Papers"), "{text}");
    }
    assert_eq!(
        log[0]["amzn_trace_id"],
        "1-67891233-abcdef012345678912345678"
    );
    assert_eq!(
        log[0]["traceparent"],
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    );
    for name in ["amzn_trace_id", "traceparent"] {
        assert!(log[1..].iter().all(|line| line[name].is_null()), "{log:?}");
    }
    let members: BTreeSet<&str> = log
        .iter()
        .flat_map(|line| line.as_object().unwrap().keys())
        .map(String::as_str)
        .collect();
    for field in queried() {
        assert!(
            members.contains(field),
            "docs/operations.md asks the log for {field}"
        );
    }
    let cause = log[2]["cause"].as_str().unwrap();
    assert!(cause.contains("ResourceNotFoundException"), "{cause}");
}

/// The fields of the function's log that the queries of `docs/operations.md` ask for.
fn queried() -> BTreeSet<&'static str> {
    const LANGUAGE: [&str; 18] = [
        "filter",
        "stats",
        "sort",
        "limit",
        "display",
        "as",
        "by",
        "and",
        "or",
        "like",
        "desc",
        "count",
        "latest",
        "max",
        "pct",
        "ispresent",
        // names that a query gives itself
        "requests",
        "why",
    ];
    let (_, queries) = include_str!("../../docs/operations.md")
        .split_once("# A request, by the")
        .unwrap();
    let (queries, of_the_api) = queries
        .split_once("```")
        .unwrap()
        .0
        .split_once("in the API's log:")
        .unwrap();
    assert!(of_the_api.contains("by ip"));
    let mut fields = BTreeSet::new();
    for query in queries.lines().filter(|line| line.starts_with("filter ")) {
        let bare = query.split('"').step_by(2);
        let words = bare.flat_map(|part| {
            part.split(|character: char| {
                !character.is_ascii_alphabetic() && !"_@".contains(character)
            })
        });
        fields.extend(
            words.filter(|word| {
                !word.is_empty() && !word.starts_with('@') && !LANGUAGE.contains(word)
            }),
        );
    }
    assert!(fields.len() > 8, "{fields:?}");
    fields
}

/// Metrics do not hang on the log's level, and stand for the whole service and for each operation.
#[tokio::test]
async fn a_line_of_metrics_stands_beside_each_request() {
    let world = World::new().await;
    // An engine that throttles writes as often as this says.
    let throttles = Arc::new(AtomicU32::new(0));
    let connector = SharedHttpConnector::new(Connector::builder().build_http());
    let routes = Router::new().route(
        "/",
        post({
            let (engine, throttles) = (world.endpoint.clone(), throttles.clone());
            move |headers: HeaderMap, body: axum::body::Bytes| async move {
                let takes_one = |left: u32| left.checked_sub(1);
                let order = Ordering::Relaxed;
                let is_write = headers["x-amz-target"]
                    .to_str()
                    .unwrap()
                    .contains("PutItem");
                if is_write && throttles.fetch_update(order, order, takes_one).is_ok() {
                    let code = "com.amazonaws.dynamodb.v20120810#ThrottlingException";
                    let body = json!({ "__type": code }).to_string().into_bytes();
                    return (StatusCode::BAD_REQUEST, body);
                }
                forward(&connector, &engine, &headers, &body).await
            }
        }),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let front = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async { axum::serve(listener, routes).await.unwrap() });
    let mut lambda = Lambda::start(
        &world,
        &[
            ("AWS_ENDPOINT_URL_DYNAMODB", &front),
            ("METRICS_NAMESPACE", "a-stack"),
            ("AWS_LAMBDA_LOG_LEVEL", "ERROR"),
        ],
    )
    .await;
    let anyone = BTreeMap::new();
    let stranger = BTreeMap::from([("authorization".to_owned(), "nonsense".to_owned())]);

    lambda.invoke(request(&anyone)).await.is_success();
    lambda
        .invoke(request(&stranger))
        .await
        .is(401, "unauthenticated");
    let nowhere = event("POST", "/nowhere", &anyone, None);
    lambda.invoke(nowhere).await.is(404, "no_such_path");
    throttles.store(2, Ordering::Relaxed);
    lambda.invoke(request(&anyone)).await.is_success();
    lambda.runtime_api.set_time_limit(Duration::from_secs(1));
    throttles.store(u32::MAX, Ordering::Relaxed);
    lambda.invoke(request(&anyone)).await.is(503, "unavailable");

    let log = lambda.log().await;
    let (metrics, lines): (Vec<_>, Vec<_>) = log.iter().partition(|line| !line["_aws"].is_null());
    assert_eq!(lines.len(), 1, "{lines:?}");
    let expected = [
        json!({ "operation": "create_data_store", "Requests": 1, "ColdStarts": 1 }),
        json!({ "operation": "create_data_store", "Requests": 1, "ClientErrors": 1, "Unauthenticated": 1 }),
        json!({ "operation": "none", "Requests": 1, "ClientErrors": 1 }),
        json!({ "operation": "create_data_store", "Requests": 1, "Retries": 2, "Throttles": 2 }),
    ];
    for (line, expected) in metrics.iter().zip(&expected) {
        let mut told = (*line).clone();
        let told = told.as_object_mut().unwrap();
        let directives = told.remove("_aws").unwrap();
        assert!(told.remove("Latency").unwrap().as_f64().unwrap() > 0.0);
        assert_eq!(json!(told), *expected);
        let age = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_millis()
            - u128::from(directives["Timestamp"].as_u64().unwrap());
        assert!(age < 60_000, "{directives}");
        let directive = &directives["CloudWatchMetrics"][0];
        assert_eq!(directive["Namespace"], "a-stack");
        assert_eq!(directive["Dimensions"], json!([[], ["operation"]]));
        let mut named: Vec<_> = directive["Metrics"].as_array().unwrap().iter().collect();
        assert_eq!(
            *named.remove(0),
            json!({ "Name": "Latency", "Unit": "Milliseconds" })
        );
        for metric in &named {
            assert_eq!(metric["Unit"], "Count");
            assert!(told[metric["Name"].as_str().unwrap()].is_u64(), "{line}");
        }
        assert_eq!(named.len(), told.len() - 1, "{line}");
    }
    let last = metrics[4];
    assert_eq!(
        (&last["Requests"], &last["ServerErrors"]),
        (&json!(1), &json!(1))
    );
    let (retries, throttled) = (
        last["Retries"].as_u64().unwrap(),
        last["Throttles"].as_u64().unwrap(),
    );
    assert!(throttled > retries && retries > 0, "{last}");
    assert_eq!(metrics.len(), 5);
}

#[tokio::test]
async fn the_binary_answers_many_at_once_where_lambda_sends_many() {
    const REQUESTS: u16 = 640;
    let world = World::new().await;
    let mut lambda = Lambda::start(&world, &[("AWS_LAMBDA_MAX_CONCURRENCY", "64")]).await;

    for number in 0..REQUESTS {
        let body = json!({ "dataStoreName": format!("Papers {number}") }).to_string();
        lambda.send(
            &number.to_string(),
            event("POST", PATH, &BTreeMap::new(), Some(&body)),
        );
    }
    let mut answered = Vec::new();
    for _ in 0..REQUESTS {
        let (request_id, response) = lambda.response().await;
        assert_eq!(response["statusCode"], 204, "{response}");
        answered.push(request_id.parse::<u16>().unwrap());
    }

    answered.sort_unstable();
    assert_eq!(answered, (0..REQUESTS).collect::<Vec<_>>());
    assert_eq!(
        world.records(Table::DATA_STORES).await.len(),
        usize::from(REQUESTS)
    );
}

#[tokio::test]
async fn the_binary_obeys_the_deployment() {
    let world = World::new().await;
    let mut lambda = Lambda::start(
        &world,
        &[
            ("ANONYMOUS_OPERATIONS", "denied"),
            ("KEY_CACHE_SECONDS", "0"),
        ],
    )
    .await;
    let key = world.issue("acme", |_| {}).await;
    let holder = world.holder(&key);

    lambda
        .invoke(request(&BTreeMap::new()))
        .await
        .is(401, "unauthenticated");
    lambda.invoke(request(&holder.headers)).await.is_success();
    world.revoke(&key).await;
    lambda
        .invoke(request(&holder.headers))
        .await
        .is(401, "unauthenticated");
}

/// Credentials as a container or SnapStart gives them, each set good for a second and a half, in front of an engine that
/// refuses those that are over.
struct Issuer {
    engine: String,
    connector: SharedHttpConnector,
    /// The end of each set.
    issued: std::sync::Mutex<Vec<SystemTime>>,
}

async fn issue(State(issuer): State<Arc<Issuer>>) -> axum::Json<Value> {
    let ends = SystemTime::now() + Duration::from_millis(1500);
    let mut issued = issuer.issued.lock().unwrap();
    issued.push(ends);
    axum::Json(json!({
        "AccessKeyId": format!("set{}", issued.len()),
        "SecretAccessKey": "secret",
        "Token": "token",
        "Expiration": humantime::format_rfc3339_millis(ends).to_string(),
    }))
}

async fn admit(
    State(issuer): State<Arc<Issuer>>,
    headers: HeaderMap,
    body: axum::body::Bytes,
) -> (StatusCode, Vec<u8>) {
    let signature = headers["authorization"].to_str().unwrap();
    let (_, set) = signature.split_once("Credential=set").unwrap();
    let set: usize = set.split('/').next().unwrap().parse().unwrap();
    let ends = issuer.issued.lock().unwrap()[set - 1];
    if ends < SystemTime::now() {
        let expired = json!({ "__type": "com.amazon.coral.service#ExpiredTokenException" });
        return (StatusCode::BAD_REQUEST, expired.to_string().into_bytes());
    }
    forward(&issuer.connector, &issuer.engine, &headers, &body).await
}

/// Hands a request for DynamoDB on to an engine.
async fn forward(
    connector: &SharedHttpConnector,
    engine: &str,
    headers: &HeaderMap,
    body: &[u8],
) -> (StatusCode, Vec<u8>) {
    let mut request = HttpRequest::new(SdkBody::from(body.to_vec()));
    request.set_method("POST").unwrap();
    request.set_uri(engine).unwrap();
    for name in [
        "authorization",
        "content-type",
        "x-amz-date",
        "x-amz-target",
    ] {
        let value = headers[name].to_str().unwrap().to_owned();
        request.headers_mut().insert(name, value);
    }
    let response = connector.call(request).await.unwrap();
    let status = StatusCode::from_u16(response.status().as_u16()).unwrap();
    let body = ByteStream::new(response.into_body()).collect().await;
    (status, body.unwrap().to_vec())
}

#[tokio::test]
async fn credentials_that_expire_are_refreshed() {
    let world = World::new().await;
    let issuer = Arc::new(Issuer {
        engine: world.endpoint.clone(),
        connector: SharedHttpConnector::new(Connector::builder().build_http()),
        issued: Default::default(),
    });
    let routes = Router::new()
        .route("/credentials", get(issue))
        .route("/", post(admit))
        .with_state(issuer.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let front = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async { axum::serve(listener, routes).await.unwrap() });
    let credentials = format!("{front}/credentials");
    let mut lambda = Lambda::start(
        &world,
        &[
            ("AWS_ACCESS_KEY_ID", ""),
            ("AWS_SECRET_ACCESS_KEY", ""),
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &credentials),
            ("AWS_ENDPOINT_URL_DYNAMODB", &front),
        ],
    )
    .await;

    for _ in 0..3 {
        lambda.invoke(request(&BTreeMap::new())).await.is_success();
        tokio::time::sleep(Duration::from_millis(1600)).await;
    }

    assert!(issuer.issued.lock().unwrap().len() >= 3);
    assert_eq!(world.records(Table::DATA_STORES).await.len(), 1);
}

/// A way to the engine whose connections can be cut, or left open and forgotten, as networks do meanwhile a function is frozen.
struct Way {
    endpoint: String,
    open: Arc<std::sync::Mutex<Vec<Connection>>>,
    /// Whether it forgets every connection from its first byte.
    hangs: Arc<AtomicBool>,
}

/// What cuts a connection, and what makes the network forget it.
type Connection = (AbortHandle, Arc<AtomicBool>);

impl Way {
    async fn to(engine: &str) -> Self {
        let engine = engine.strip_prefix("http://").unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let open = Arc::<std::sync::Mutex<Vec<_>>>::default();
        let hangs = Arc::<AtomicBool>::default();
        let (opened, hanging) = (open.clone(), hangs.clone());
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let engine = TcpStream::connect(&engine).await.unwrap();
                let forgotten = Arc::new(AtomicBool::new(hanging.load(Ordering::Relaxed)));
                let relay = tokio::spawn(relay(client, engine, forgotten.clone()));
                opened
                    .lock()
                    .unwrap()
                    .push((relay.abort_handle(), forgotten));
            }
        });
        Self {
            endpoint,
            open,
            hangs,
        }
    }
}

async fn relay(mut client: TcpStream, mut engine: TcpStream, forgotten: Arc<AtomicBool>) {
    let (mut from_client, mut from_engine) = ([0; 16 * 1024], [0; 16 * 1024]);
    loop {
        tokio::select! {
            read = client.read(&mut from_client) => match read {
                Ok(read @ 1..) if !forgotten.load(Ordering::Relaxed) => engine.write_all(&from_client[..read]).await.unwrap(),
                Ok(1..) => {}
                _ => return,
            },
            read = engine.read(&mut from_engine) => match read {
                Ok(read @ 1..) => client.write_all(&from_engine[..read]).await.unwrap(),
                _ => return,
            },
        }
    }
}

#[tokio::test]
async fn a_function_that_was_frozen_answers_though_its_connections_are_dead() {
    let world = World::new().await;
    let way = Way::to(&world.endpoint).await;
    let mut lambda = Lambda::start(&world, &[("AWS_ENDPOINT_URL_DYNAMODB", &way.endpoint)]).await;
    lambda.invoke(request(&BTreeMap::new())).await.is_success();
    let id = lambda.function.id().unwrap().to_string();
    let signal = |signal: &str| Command::new("kill").args([signal, &id]).status();

    for round in 0..6 {
        assert!(signal("-STOP").await.unwrap().success());
        for (connection, forgotten) in way.open.lock().unwrap().drain(..) {
            if round % 2 == 0 {
                connection.abort();
            } else {
                forgotten.store(true, Ordering::Relaxed);
            }
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(signal("-CONT").await.unwrap().success());
        let body = json!({ "dataStoreName": format!("Papers {round}") }).to_string();
        let event = event("POST", PATH, &BTreeMap::new(), Some(&body));
        lambda.invoke(event).await.is_success();
    }

    assert_eq!(world.records(Table::DATA_STORES).await.len(), 7);
}

#[tokio::test]
async fn the_event_after_one_that_dynamodb_left_hanging_is_answered() {
    let world = World::new().await;
    let way = Way::to(&world.endpoint).await;
    let mut lambda = Lambda::start(&world, &[("AWS_ENDPOINT_URL_DYNAMODB", &way.endpoint)]).await;
    lambda.invoke(request(&BTreeMap::new())).await.is_success();
    lambda.runtime_api.set_time_limit(Duration::from_secs(3));
    way.hangs.store(true, Ordering::Relaxed);
    for (_, forgotten) in way.open.lock().unwrap().iter() {
        forgotten.store(true, Ordering::Relaxed);
    }
    let began = Instant::now();

    let answer = lambda.invoke(request(&BTreeMap::new())).await;

    answer.is(503, "unavailable");
    assert_eq!(answer.headers["retry-after"], "1");
    assert!(began.elapsed() < Duration::from_secs(3));
    way.hangs.store(false, Ordering::Relaxed);
    lambda.runtime_api.set_time_limit(Duration::from_secs(10));
    lambda.invoke(request(&BTreeMap::new())).await.is_success();
}

#[tokio::test]
async fn an_empty_endpoint_is_no_endpoint() {
    let world = World::new().await;
    let variables = [
        ("AWS_ENDPOINT_URL_DYNAMODB", ""),
        ("AWS_ENDPOINT_URL", &*world.endpoint),
    ];
    let mut lambda = Lambda::start(&world, &variables).await;

    lambda.invoke(request(&BTreeMap::new())).await.is_success();
}

#[tokio::test]
async fn a_variable_that_is_missing_or_wrong_fails_the_start_with_a_sentence_that_names_it() {
    let world = World::new().await;
    let mut rows: Vec<_> = Table::ALL.map(|table| (table.variable, "")).into();
    rows.extend([
        ("ANONYMOUS_OPERATIONS", "perhaps"),
        ("KEY_CACHE_SECONDS", "a minute"),
        ("AWS_REGION", ""),
        ("AWS_ENDPOINT_URL_DYNAMODB", "127.0.0.1:8000"),
        ("SSL_CERT_FILE", "/no/such/file"),
    ]);

    for (variable, value) in rows {
        let mut function = function(&world, "127.0.0.1:9", &[(variable, value)]);
        let output = timeout(Duration::from_secs(10), function.output())
            .await
            .unwrap()
            .unwrap();

        assert!(!output.status.success(), "{variable}");
        let log = String::from_utf8(output.stdout).unwrap();
        let named = if variable == "SSL_CERT_FILE" {
            value
        } else {
            variable
        };
        assert!(log.contains(named), "{variable}: {log}");
        assert!(!log.contains("panicked"), "{log}");
    }
}
