//! The network between a process and DynamoDB.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use aws_sdk_dynamodb::config::http::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::{
    client::{
        http::{HttpConnector, HttpConnectorFuture},
        result::ConnectorError,
    },
    http::StatusCode,
};
use fastrand::Rng;
use serde_json::{Value, json};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep},
};
use workspace_local::dynamodb::{action, is_read};
use workspacectl::commands::remove::all_teams;

use super::{
    tables::{Tables, new_request},
    weakness::Weakness,
};

/// The maximum age of the state that an index returns. DynamoDB documents no limit, and indexes
/// usually lag by less than a second. `remove member --all-teams` relies on this limit.
pub(super) const MAX_LAG_OF_INDEXES: Duration = all_teams::PAUSE;

/// The same for a table, if a weakness makes a read eventually consistent. It is longer than the
/// simulations, because DynamoDB documents no limit.
const MAX_LAG_OF_TABLES: Duration = Duration::from_secs(600);

/// The network between a process and DynamoDB. Requests take a while, and a write can arrive up to
/// 20 seconds late, even if its sender has given up or was killed.
#[derive(Debug, Clone)]
pub(super) struct Network {
    tables: Tables,
    rng: Arc<Mutex<Rng>>,
    weakness: Option<Weakness>,
    /// When requests that read an index were sent.
    pub(super) index_reads: Arc<Mutex<Vec<Instant>>>,
}

impl Network {
    pub(super) fn new(tables: &Tables, rng: &mut Rng, weakness: Option<Weakness>) -> Self {
        Self {
            tables: tables.clone(),
            rng: Arc::new(Mutex::new(rng.fork())),
            weakness,
            index_reads: Arc::default(),
        }
    }

    fn random(&self, limit: u64) -> u64 {
        self.rng.lock().expect("a lock").u64(0..limit)
    }

    fn milliseconds(&self, limit: u64) -> Duration {
        Duration::from_millis(self.random(limit))
    }

    /// The request as DynamoDB receives it.
    fn weaken(&self, request: &HttpRequest) -> HttpRequest {
        let mut body = body_of(request);
        let action = action(request);
        if let Some(weakness) = self.weakness {
            weakness.apply(action, &mut body);
        }
        new_request(action, body.to_string())
    }

    /// Handles a read. An eventually consistent one returns an earlier state.
    async fn read(&self, request: &HttpRequest, weakened: &HttpRequest) -> HttpResponse {
        if is_consistent(weakened) {
            return self.tables.read(weakened);
        }
        let pass = self.index_reads.lock().expect("a lock").len();
        if self.weakness == Some(Weakness::OnePass) && pass > 1 {
            let nothing = json!({ "Items": [], "Count": 0, "ScannedCount": 0 }).to_string();
            return HttpResponse::new(StatusCode::try_from(200).expect("a status"), nothing.into());
        }
        let max_lag = match self.weakness {
            _ if is_consistent(request) => MAX_LAG_OF_TABLES,
            Some(Weakness::SlowIndex) => 3 * MAX_LAG_OF_INDEXES,
            _ => MAX_LAG_OF_INDEXES,
        };
        let lag = self.milliseconds(max_lag.as_millis() as u64 + 1);
        let moment = Instant::now().checked_sub(lag);
        self.tables.read_at(weakened, moment).await
    }

    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let weakened = self.weaken(&request);
        if is_read(&request) {
            if body_of(&request)["IndexName"].is_string() {
                let mut index_reads = self.index_reads.lock().expect("a lock");
                index_reads.push(Instant::now());
            }
            sleep(self.milliseconds(300)).await;
            let response = self.read(&request, &weakened).await;
            sleep(self.milliseconds(300)).await;
            return Ok(response);
        }
        let is_late = self.random(100) < 40;
        let delay = self.milliseconds(if is_late { 20_001 } else { 200 });
        let (sender, response) = oneshot::channel();
        let tables = self.tables.clone();
        tokio::spawn(async move {
            sleep(delay).await;
            drop(sender.send(tables.write(&weakened)));
        });
        let response = response.await;
        response.map_err(|error| ConnectorError::io(error.into()))
    }
}

fn body_of(request: &HttpRequest) -> Value {
    let bytes = request.body().bytes().expect("a body in memory");
    serde_json::from_slice(bytes).expect("JSON")
}

/// Whether a read is strongly consistent.
fn is_consistent(request: &HttpRequest) -> bool {
    let body = body_of(request);
    match body["RequestItems"].as_object() {
        Some(tables) => tables.values().all(|keys| keys["ConsistentRead"] == true),
        None => body["ConsistentRead"] == true,
    }
}

impl HttpConnector for Network {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let network = self.clone();
        HttpConnectorFuture::new(async move { network.send(request).await })
    }
}
