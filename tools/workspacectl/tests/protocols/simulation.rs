//! Simulations of what operators do while clients send requests: two function processes with
//! caches, slow and late writes, and two operators whose commands are killed and run again.
//!
//! A [`Weakness`] removes a part of a protocol from the requests on their way to DynamoDB. For each
//! weakness, a seed must break a rule. Otherwise the part would not be needed, or not be tested.
//!
//! A seed does not determine the ids and times that the commands generate for their records.

mod organizations;
mod registrations;
mod teams;
mod users;
mod weakness;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use aws_sdk_dynamodb::{
    Client,
    config::{retry::RetryConfig, timeout::TimeoutConfig},
};
use fastrand::Rng;
use serde_json::{Value, json};
use test_support::{
    invocation,
    simulation::{self, Faults, Network, Tables},
};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};
use workspace_local::gateway::http_event;
use workspace_management::{
    auth::AnonymousAccess,
    records::Table,
    service::{FUNCTION_TIMEOUT, Service},
    store::{AdditionalRetryClassifier, MAX_CACHE_TTL, Store},
};
use workspace_records::local::table_names;
use workspacectl::{
    context::Run,
    deployment::{Deployment, INDEX_PAUSE},
    wait::{SAFE_WAIT, WaitArgs},
};

use self::weakness::Weakness;

/// The maximum age of the state that an index returns. DynamoDB documents no limit, and indexes
/// usually lag by less than a second. `remove member --all-teams` relies on this limit.
const MAX_LAG_OF_INDEXES: Duration = INDEX_PAUSE;

/// The time after which no write that was sent is still late.
const LATE_WRITES: Duration = Duration::from_secs(60);

/// The processes and the tables of a simulation.
struct World {
    tables: Tables,
    weakness: Option<Weakness>,
    services: [Service; 2],
    /// Whether the operators have finished, so that clients stop too.
    is_finished: AtomicBool,
}

/// A request that a client sends.
struct Request {
    path: String,
    body: Value,
    /// What the request adds, such as a user.
    content: String,
    is_anonymous: bool,
}

impl Request {
    fn new(path: impl Into<String>, body: Value) -> Self {
        Self {
            path: path.into(),
            body,
            content: String::new(),
            is_anonymous: false,
        }
    }
}

/// A request and its response, as the client saw them.
#[derive(Debug)]
struct Attempt {
    content: String,
    request_id: String,
    began: Duration,
    ended: Duration,
    status: u16,
}

impl World {
    /// A world, and the source of randomness for what happens in it.
    async fn new(seed: u64, weakness: Option<Weakness>) -> (Arc<Self>, Rng) {
        let mut rng = Rng::with_seed(seed);
        let tables = Tables::new().await;
        let services = [0, 1].map(|_| {
            let network = Network::new(&tables, &mut rng, faults(None));
            let config = simulation::config(network);
            let store = Store::new(config, table_names(), MAX_CACHE_TTL);
            Service::new(store, AnonymousAccess::Allowed)
        });
        let world = Self {
            tables,
            weakness,
            services,
            is_finished: AtomicBool::new(false),
        };
        (Arc::new(world), rng)
    }

    /// What is wrong with the records. Nothing if there is a weakness, which may leave incomplete
    /// records.
    fn invalid_records(&self) -> Vec<String> {
        if self.weakness.is_some() {
            return vec![];
        }
        self.tables.errors()
    }

    /// The time since the start, on the simulated clock.
    fn now(&self) -> Duration {
        self.tables.started.elapsed()
    }

    /// Whether clients go on sending requests.
    fn is_running(&self) -> bool {
        !self.is_finished.load(Ordering::Relaxed)
    }

    /// Starts a client that sends random requests, with pauses of up to so many seconds.
    fn spawn_client(
        self: &Arc<Self>,
        key: &str,
        rng: &mut Rng,
        max_pause: u64,
        new_request: impl Fn(&mut Rng) -> Request + Send + 'static,
    ) -> JoinHandle<Vec<Attempt>> {
        let (world, key, mut rng) = (self.clone(), key.to_owned(), rng.fork());
        tokio::spawn(async move {
            let mut attempts = Vec::new();
            while world.is_running() {
                let request = new_request(&mut rng);
                attempts.push(world.send(&mut rng, &key, request).await);
                pause(&mut rng, 0..max_pause).await;
            }
            attempts
        })
    }

    /// Lets the clients stop after a while. Waits until the last late writes have ended. Returns
    /// the requests of the given clients.
    async fn finish(
        &self,
        clients: impl IntoIterator<Item = JoinHandle<Vec<Attempt>>>,
    ) -> Vec<Attempt> {
        sleep(Duration::from_secs(30)).await;
        self.is_finished.store(true, Ordering::Relaxed);
        let attempts = join(clients).await;
        sleep(LATE_WRITES).await;
        attempts
    }

    /// The records of all tables.
    fn records(&self) -> Vec<Value> {
        let of_table = |table: &Table| self.tables.records(*table);
        Table::ALL.iter().flat_map(of_table).collect()
    }

    /// The deployment as an operator reaches it. Attempts time out early, so that late requests are
    /// retried: so often that a command never fails, unless it should.
    fn deployment(&self, rng: &mut Rng) -> Deployment {
        self.observed_deployment(rng, 30).0
    }

    /// The deployment for a run that may be killed. In half of the runs before the fourth, commands
    /// soon give up, so that their last write can be executed after they have ended. DynamoDB ignores
    /// a late attempt only after a successful attempt of the same run.
    fn deployment_of_run(&self, run: usize, rng: &mut Rng) -> Deployment {
        let attempts = attempts_of_run(run, rng);
        self.observed_deployment(rng, attempts).0
    }

    /// A deployment, and when its requests that read an index were sent.
    fn observed_deployment(
        &self,
        rng: &mut Rng,
        max_attempts: u32,
    ) -> (Deployment, Arc<Mutex<Vec<Instant>>>) {
        let network = Network::new(&self.tables, rng, faults(self.weakness));
        let index_reads = network.index_reads.clone();
        let timeouts = TimeoutConfig::builder().operation_attempt_timeout(Duration::from_secs(3));
        let config = simulation::config(network)
            .retry_config(RetryConfig::standard().with_max_attempts(max_attempts))
            .timeout_config(timeouts.build())
            .retry_classifier(AdditionalRetryClassifier);
        let mut deployment = Deployment::local_service("http://dynamodb").expect("a client");
        deployment.dynamodb = Client::from_conf(config.build());
        deployment.index_pause = MAX_LAG_OF_INDEXES;
        (deployment, index_reads)
    }

    /// The wait of a run of a command.
    fn wait(&self, is_rerun: bool) -> WaitArgs {
        let seconds = match self.weakness {
            Some(Weakness::NoWaitInRerun) if is_rerun => 0,
            _ => SAFE_WAIT.as_secs(),
        };
        WaitArgs {
            seconds,
            is_silent: true,
        }
    }

    /// Sends a request to one of the services.
    async fn send(&self, rng: &mut Rng, key: &str, request: Request) -> Attempt {
        let began = self.now();
        let request_id = format!("request-{}", rng.u64(..));
        let key = if request.is_anonymous { "" } else { key };
        let headers = BTreeMap::from([("authorization".to_owned(), key.to_owned())]);
        let body = request.body.to_string();
        let mut event = http_event(None, "POST", &request.path, &headers, Some(body.as_bytes()));
        event["requestContext"]["requestId"] = json!(request_id);
        let received_at = self.tables.time();
        let event = invocation(&event, received_at, FUNCTION_TIMEOUT);
        let service = &self.services[rng.usize(0..2)];
        let response = json!(service.handle(event, received_at).await);
        Attempt {
            content: request.content,
            request_id,
            began,
            ended: self.now(),
            status: response["statusCode"].as_u64().expect("a status") as u16,
        }
    }
}

/// What happens to the requests of a process.
fn faults(weakness: Option<Weakness>) -> Faults {
    let index_lag = match weakness {
        Some(Weakness::SlowIndex) => 3 * MAX_LAG_OF_INDEXES,
        _ => MAX_LAG_OF_INDEXES,
    };
    Faults {
        latency: 300,
        late_writes: 40,
        index_lag,
        max_index_reads: (weakness == Some(Weakness::OnePass)).then_some(1),
        weaken: weakness.map(|weakness| weakness.into_weaken()),
        ..Faults::default()
    }
}

/// A run of a command by an operator.
fn run_by(number: usize) -> Run {
    Run {
        id: format!("{number:016x}"),
        operator: format!("operator-{number}"),
        reason: None,
        history_days: 400,
    }
}

/// The maximum number of attempts of a request in a run of a command.
fn attempts_of_run(run: usize, rng: &mut Rng) -> u32 {
    if run < 3 && rng.bool() { 2 } else { 30 }
}

/// The time after which a run of a command is killed. The fourth run gets more time than it needs.
fn time_until_kill(run: usize, rng: &mut Rng) -> Duration {
    let is_killed = run < 3 && rng.bool();
    Duration::from_secs(if is_killed { rng.u64(0..140) } else { 600 })
}

/// What the tasks return, in their order.
async fn join<T: IntoIterator>(tasks: impl IntoIterator<Item = JoinHandle<T>>) -> Vec<T::Item> {
    let mut results = Vec::new();
    for task in tasks {
        results.extend(task.await.expect("no panic"));
    }
    results
}

async fn pause(rng: &mut Rng, seconds: std::ops::Range<u64>) {
    let milliseconds = rng.u64(seconds.start * 1000..seconds.end * 1000);
    sleep(Duration::from_millis(milliseconds)).await;
}

/// Asserts that no seed violates a rule.
fn assert_holds<F: Future<Output = Vec<String>>>(simulation: impl Fn(u64) -> F + Sync) {
    simulation::assert_holds((4, 100), simulation);
}

/// Asserts that a simulation violates a rule with each weakness, and none without it. Begins with the
/// given seed, which probably violates a rule.
fn assert_breaks<F: Future<Output = Vec<String>>>(
    simulation: impl Fn(u64, Option<Weakness>) -> F + Sync,
    weaknesses: &[(Weakness, u64)],
) {
    for (weakness, first) in weaknesses {
        let name = format!("{weakness:?}");
        let seed =
            simulation::assert_breaks(&name, *first, |seed| simulation(seed, Some(*weakness)));
        // Fails if the commands themselves lack the part.
        for (_, violations) in simulation::run(seed..seed + 1, |seed| simulation(seed, None)) {
            assert!(violations.is_empty(), "{name}: seed {seed}: {violations:?}");
        }
    }
}
