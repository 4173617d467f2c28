//! A DynamoDB whose table of team members has a [maximum throughput], as template.yaml declares it.
//!
//! [maximum throughput]: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode-max-throughput.html

use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::Result;
use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse as _, Response},
    routing::post,
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::spawn_blocking, time::sleep};
use workspace_local::{
    dynamodb::DynamoDb,
    server::{self, Access},
};

/// How much later DynamoDB responds than the embedded one. On AWS, a response takes a few
/// milliseconds.
const LATENCY: Duration = Duration::from_millis(4);

/// Which writes DynamoDB accepts when it throttles. AWS documents only "best effort".
#[derive(Debug, Clone, Copy)]
pub(crate) enum Admission {
    /// A write needs all of its units.
    Strict,
    /// A write needs a part of a unit. The others are borrowed from later writes.
    Debt,
}

/// An embedded DynamoDB that throttles the writes of the function.
pub(crate) struct ThrottlingDynamoDb {
    pub(crate) url: String,
    dynamodb: DynamoDb,
    admission: Admission,
    state: Mutex<TableState>,
}

struct TableState {
    table: TokenBucket,
    /// The index `by_user`, which has the same maximum as the table.
    index: TokenBucket,
    /// How long each request took, without `LATENCY`.
    times: Vec<Duration>,
}

impl ThrottlingDynamoDb {
    /// Listens on a free port. The table of members accepts `max_units` write units per second.
    pub(crate) async fn start(
        dynamodb: DynamoDb,
        max_units: f64,
        admission: Admission,
    ) -> Result<Arc<Self>> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let started = Arc::new(Self {
            url: format!("http://{}", listener.local_addr()?),
            dynamodb,
            admission,
            state: Mutex::new(TableState {
                table: TokenBucket::new(max_units),
                index: TokenBucket::new(max_units),
                times: Vec::new(),
            }),
        });
        let routes = Router::new().route("/", post(respond));
        let routes = routes.with_state(started.clone());
        tokio::spawn(server::serve(listener, routes, Access::default()));
        Ok(started)
    }

    /// Returns how long each request took since the previous call, without the added latency.
    pub(crate) fn take_times(&self) -> Vec<Duration> {
        mem::take(&mut self.state().times)
    }

    /// Takes the units of a write. Returns false if the write is throttled.
    ///
    /// DynamoDB bills a unit per kilobyte, and the record of a member is smaller. In a transaction,
    /// each record costs the table twice as much, but not the index.
    fn admit(&self, records: usize, is_transaction: bool) -> bool {
        let index_units = records as f64;
        let table_units = if is_transaction { 2.0 } else { 1.0 } * index_units;
        let mut state = self.state();
        let is_admitted = state.table.has(table_units, self.admission)
            && state.index.has(index_units, self.admission);
        if is_admitted {
            state.table.tokens -= table_units;
            state.index.tokens -= index_units;
        }
        is_admitted
    }

    fn state(&self) -> MutexGuard<'_, TableState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The units of at most one second.
struct TokenBucket {
    rate: f64,
    /// Negative while there is a debt.
    tokens: f64,
    /// When `tokens` was computed.
    updated: Instant,
}

impl TokenBucket {
    fn new(rate: f64) -> Self {
        let updated = Instant::now();
        Self {
            rate,
            tokens: rate,
            updated,
        }
    }

    fn has(&mut self, units: f64, admission: Admission) -> bool {
        let gained = self.updated.elapsed().as_secs_f64() * self.rate;
        self.updated = Instant::now();
        self.tokens = (self.tokens + gained).min(self.rate);
        match admission {
            Admission::Strict => self.tokens >= units,
            Admission::Debt => self.tokens > 0.0,
        }
    }
}

async fn respond(
    State(throttling): State<Arc<ThrottlingDynamoDb>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let started = Instant::now();
    let target = headers.get("x-amz-target");
    let target = target.and_then(|it| it.to_str().ok()).unwrap_or_default();
    let action = target.rsplit('.').next().unwrap_or_default().to_owned();
    let (status, body) = match throttle(&throttling, &action, &body) {
        Some(error) => (400, error.to_string().into_bytes()),
        None => {
            let dynamodb = throttling.dynamodb.clone();
            let execution = spawn_blocking(move || dynamodb.handle(&action, &body));
            let response = execution.await.expect("the engine does not panic");
            let body = response.body().bytes().unwrap_or_default().to_vec();
            (response.status().as_u16(), body)
        }
    };
    throttling.state().times.push(started.elapsed());
    sleep(LATENCY).await;
    let status = StatusCode::from_u16(status).expect("a valid status");
    (status, body).into_response()
}

/// The error of a request that is throttled. The function writes only to the table of members.
fn throttle(throttling: &ThrottlingDynamoDb, action: &str, body: &[u8]) -> Option<Value> {
    const NAMESPACE: &str = "com.amazonaws.dynamodb.v20120810";
    const MESSAGE: &str = "Throughput exceeds the maximum of the table or index.";
    match action {
        "PutItem" | "UpdateItem" if !throttling.admit(1, false) => Some(json!({
            "__type": format!("{NAMESPACE}#ThrottlingException"),
            "message": MESSAGE,
        })),
        "TransactWriteItems" => {
            let body: Value = serde_json::from_slice(body).ok()?;
            let records = body["TransactItems"].as_array()?.len();
            if throttling.admit(records, true) {
                return None;
            }
            let mut reasons = vec![json!({ "Code": "None" }); records];
            *reasons.last_mut()? = json!({ "Code": "ThrottlingError", "Message": MESSAGE });
            Some(json!({
                "__type": format!("{NAMESPACE}#TransactionCanceledException"),
                "Message": "Transaction cancelled",
                "CancellationReasons": reasons,
            }))
        }
        _ => None,
    }
}
