//! The network between a process and DynamoDB.

use std::{
    fmt,
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};

use aws_sdk_dynamodb::{
    config::{
        ConfigBag, Intercept, RuntimeComponents,
        http::{HttpRequest, HttpResponse},
        interceptors::FinalizerInterceptorContextRef,
    },
    error::BoxError,
};
use aws_smithy_runtime_api::client::{
    http::{HttpConnector, HttpConnectorFuture},
    result::ConnectorError,
};
use fastrand::Rng;
use serde_json::{Value, json};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep},
};

use super::{TRACE, tables::Tables};
use crate::{
    faults::{Fault, http_response},
    hook::Request,
};

/// The maximum age of the state that an eventually consistent read of a table returns. Only
/// weakened requests read a table this way. The limit is longer than the simulations, because
/// DynamoDB documents none.
const MAX_LAG_OF_TABLES: Duration = Duration::from_secs(600);

/// How often requests have faults, and how large the faults are.
#[derive(Clone, Default)]
pub struct Faults {
    /// A request takes less than this many milliseconds to arrive, and so does a response.
    pub latency: u64,
    /// The percentage of requests that get an error or no response. They may have been executed.
    pub errors: u64,
    /// The percentage of writes that report success but are lost. The real DynamoDB loses no
    /// writes. Lost writes prove that a simulation finds them.
    pub lost_writes: u64,
    /// The percentage of writes that arrive up to 20 seconds late, even if the client has given up
    /// or was killed.
    pub late_writes: u64,
    /// The maximum age of the state that an index returns.
    pub index_lag: Duration,
    /// After this many reads of an index, the index seems to be empty.
    pub max_index_reads: Option<usize>,
    /// Changes requests before they arrive.
    pub weaken: Option<Weaken>,
}

/// Changes the body of a request. The first argument is the action.
pub type Weaken = Arc<dyn Fn(&str, &mut Value) + Send + Sync>;

/// The network between a process and DynamoDB.
#[derive(Clone)]
pub struct Network {
    tables: Tables,
    rng: Arc<Mutex<Rng>>,
    faults: Faults,
    /// When the requests that read an index were sent.
    pub index_reads: Arc<Mutex<Vec<Instant>>>,
}

impl Network {
    pub fn new(tables: &Tables, rng: &mut Rng, faults: Faults) -> Self {
        Self {
            tables: tables.clone(),
            rng: Arc::new(Mutex::new(rng.fork())),
            faults,
            index_reads: Arc::default(),
        }
    }

    /// A random duration of fewer milliseconds than `limit`.
    fn milliseconds(&self, limit: u64) -> Duration {
        Duration::from_millis(self.rng.lock().unwrap().u64(0..limit))
    }

    /// Whether a random event with this probability happens.
    fn happens(&self, percentage: u64) -> bool {
        percentage > 0 && self.rng.lock().unwrap().u64(0..100) < percentage
    }

    /// Handles a read. An eventually consistent read returns an earlier state.
    async fn read(&self, request: &Request, weakened: &Request) -> HttpResponse {
        if weakened.is_consistent() {
            return weakened.send_to(&self.tables.dynamodb);
        }
        let reads = self.index_reads.lock().unwrap().len();
        if self.faults.max_index_reads.is_some_and(|max| reads > max) {
            let nothing = json!({ "Items": [], "Count": 0, "ScannedCount": 0 });
            return http_response(200, nothing.to_string());
        }
        let max_lag = if request.is_consistent() {
            MAX_LAG_OF_TABLES
        } else {
            self.faults.index_lag
        };
        let lag = self.milliseconds(max_lag.as_millis() as u64 + 1);
        let moment = Instant::now().checked_sub(lag);
        self.tables.read_at(weakened, moment).await
    }

    /// Handles a write, even if the client gives up.
    async fn write(&self, request: Request) -> Result<HttpResponse, ConnectorError> {
        if self.happens(self.faults.lost_writes) {
            return Ok(http_response(200, "{}".to_owned()));
        }
        let is_late = self.happens(self.faults.late_writes);
        let delay = self.milliseconds(if is_late { 20_001 } else { self.faults.latency });
        let (sender, response) = oneshot::channel();
        let tables = self.tables.clone();
        tokio::spawn(async move {
            sleep(delay).await;
            drop(sender.send(tables.write(&request)));
        });
        let response = response.await;
        response.map_err(|error| ConnectorError::io(error.into()))
    }

    async fn send(self, request: Request) -> Result<HttpResponse, ConnectorError> {
        let elapsed = self.tables.started.elapsed();
        TRACE.with_borrow_mut(|trace| trace.push(format!("{elapsed:?} {}", request.action)));
        let mut weakened = request.clone();
        if let Some(weaken) = &self.faults.weaken {
            weaken(&request.action, &mut weakened.body);
        }
        let is_read = request.is_read();
        if is_read && request.body["IndexName"].is_string() {
            self.index_reads.lock().unwrap().push(Instant::now());
        }
        if self.happens(self.faults.errors) {
            return self.fail(weakened).await;
        }
        if !is_read {
            return self.write(weakened).await;
        }
        sleep(self.milliseconds(self.faults.latency)).await;
        let response = self.read(&request, &weakened).await;
        sleep(self.milliseconds(self.faults.latency)).await;
        Ok(response)
    }

    /// Makes a request fail. Half of the writes are executed all the same.
    async fn fail(&self, request: Request) -> Result<HttpResponse, ConnectorError> {
        sleep(self.milliseconds(self.faults.latency)).await;
        if !request.is_read() && self.happens(50) {
            self.tables.write(&request);
        }
        let fault = self.rng.lock().unwrap().u8(0..6);
        let fault = match fault {
            0 => Fault::Status(500, "InternalServerError"),
            1 => Fault::Status(400, "ThrottlingException"),
            2 => Fault::Status(400, "ProvisionedThroughputExceededException"),
            3 => return Err(ConnectorError::io("the connection was reset".into())),
            4 => return Err(ConnectorError::timeout("too slow".into())),
            _ => return pending().await,
        };
        Ok(fault.response(&request).unwrap())
    }
}

impl HttpConnector for Network {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let request = Request::read(&request);
        HttpConnectorFuture::new(self.clone().send(request))
    }
}

impl Intercept for Network {
    fn name(&self) -> &'static str {
        "network"
    }

    /// Seeds the random wait of the SDK before the next attempt. Seeding once per schedule is not
    /// enough, because the SDK also takes a random number for each span that may be logged, which
    /// depends on what the process has run before.
    fn read_after_attempt(
        &self,
        _: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        fastrand::seed(self.rng.lock().unwrap().u64(..));
        Ok(())
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Network")
    }
}
