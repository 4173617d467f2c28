//! One organization adds users faster than the table of members accepts them. Measures how many
//! requests of each organization succeed, and how much function time AWS would bill.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result};
use serde_json::json;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until},
};
use workspace_local::{dynamodb::DynamoDb, events};
use workspace_management::{api_key::ApiKey, operations::Operation, records::Table};
use workspace_records::{contract, item::new_key_record};

use crate::{
    bench::{OURS, Program, build, disable_streams},
    function::{Function, Response},
    throttle::{self, Admission},
};

/// The time before the measurement, in seconds. In this time, most processes start, and the units
/// of the first second are used.
const WARM_UP: f64 = 3.0;

/// The time of the measurement, in seconds. In a longer time, a build that retries throttled writes
/// often would use up the SDK's retry quota of its processes, and then look better than it is.
const MEASURED: f64 = 20.0;

/// The maximum number of processes. By default, Lambda's is 1,000, which is too much for most
/// machines.
const MAX_PROCESSES: usize = 100;

/// The requests of an organization. They arrive independently of each other (a Poisson process),
/// and of the responses. Each adds users that are not in the team.
struct Load {
    org_id: &'static str,
    requests_per_second: f64,
    users_per_request: usize,
}

const LOADS: [Load; 2] = [
    Load {
        org_id: "flooder",
        requests_per_second: 30.0,
        users_per_request: 5,
    },
    Load {
        org_id: "other",
        requests_per_second: 8.0,
        users_per_request: 1,
    },
];

struct Request {
    /// When to send the request, in seconds since the start.
    time: f64,
    /// The index in [`LOADS`].
    organization: usize,
    event: Arc<str>,
}

/// Builds the function, and measures this build and other builds. Prints a table for each kind of
/// admission.
pub(crate) async fn run(root: &Path, others: Vec<Program>) -> Result<()> {
    let mut programs = vec![build(root, OURS)?];
    programs.extend(others);
    for admission in [Admission::Debt, Admission::Strict] {
        println!(
            "\n| {admission:?} | others with a 204, % | flooder with a 204, % | function time, s/s | processes |"
        );
        println!("|---|---|---|---|---|");
        for program in &programs {
            let [others, flooder, time, processes] = measure(program, admission).await?;
            let name = &program.name;
            println!("| {name} | {others:.1} | {flooder:.1} | {time:.1} | {processes:.0} |");
        }
    }
    Ok(())
}

/// Returns the figures of the columns.
async fn measure(program: &Program, admission: Admission) -> Result<[f64; 4]> {
    let dynamodb = DynamoDb::with_tables().await?;
    disable_streams(&dynamodb.client()).await?;
    for organization in 0..LOADS.len() {
        register(&dynamodb, organization)?;
    }
    let processes = Arc::new(Processes {
        program: program.file.clone(),
        dynamodb_url: throttle::start(dynamodb, admission).await?,
        idle: Mutex::default(),
        started: AtomicUsize::new(0),
    });
    let mut tasks = JoinSet::new();
    let start = Instant::now();
    for request in requests() {
        sleep_until(start + Duration::from_secs_f64(request.time)).await;
        let processes = processes.clone();
        tasks.spawn(async move {
            let response = processes.respond(&request.event).await?;
            anyhow::Ok((request, response))
        });
    }
    let (mut sent, mut successful) = ([0.0; LOADS.len()], [0.0; LOADS.len()]);
    let mut function_time = Duration::ZERO;
    for result in tasks.join_all().await {
        let (request, response) = result?;
        if request.time < WARM_UP {
            continue;
        }
        sent[request.organization] += 1.0;
        if let Some(response) = response {
            function_time += response.duration;
            if response.status()? == 204 {
                successful[request.organization] += 1.0;
            }
        }
    }
    Ok([
        100.0 * successful[1] / sent[1],
        100.0 * successful[0] / sent[0],
        function_time.as_secs_f64() / MEASURED,
        processes.started.load(Ordering::Relaxed) as f64,
    ])
}

/// The requests of all organizations, in the order of their times. Always the same.
fn requests() -> Vec<Request> {
    let mut random = fastrand::Rng::with_seed(1);
    let mut requests = Vec::new();
    for (organization, load) in LOADS.iter().enumerate() {
        let mut next_interval = || -(1.0 - random.f64()).ln() / load.requests_per_second;
        let mut time = next_interval();
        while time < WARM_UP + MEASURED {
            requests.push(Request {
                time,
                organization,
                event: event(organization, requests.len()),
            });
            time += next_interval();
        }
    }
    requests.sort_by(|one, other| one.time.total_cmp(&other.time));
    requests
}

/// The processes of a function. Lambda starts as many as it has requests at the same time.
struct Processes {
    program: PathBuf,
    dynamodb_url: String,
    /// The processes without a request. The last one was used last.
    idle: Mutex<Vec<Function>>,
    /// How many processes were started. None is stopped.
    started: AtomicUsize,
}

impl Processes {
    /// Sends an event to the idle process that was used last, or starts a process. `None` if all
    /// processes are busy and no more may be started.
    async fn respond(&self, event: &Arc<str>) -> Result<Option<Response>> {
        let idle = self.idle().pop();
        let mut process = match idle {
            Some(process) => process,
            None if self.started.load(Ordering::Relaxed) >= MAX_PROCESSES => return Ok(None),
            None => {
                self.started.fetch_add(1, Ordering::Relaxed);
                let variables = [("AWS_ENDPOINT_URL_DYNAMODB", &*self.dynamodb_url)];
                Function::start(&self.program, &variables, None).await?.0
            }
        };
        let response = process.respond(event).await?;
        self.idle().push(process);
        Ok(Some(response))
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Function>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stores an organization with an API key and a team.
fn register(dynamodb: &DynamoDb, organization: usize) -> Result<()> {
    let org_id = LOADS[organization].org_id;
    let registration = json!({ "org_id": org_id, "request_id": "registration" });
    dynamodb.put(Table::ORGANIZATIONS, registration);
    let key = api_key(organization);
    let created_at = "2026-11-20T12:00:00.000Z";
    let key = new_key_record(&key, org_id, "registration", "flood", created_at);
    dynamodb.put(Table::API_KEYS, key.context("the key is malformed")?);
    let project = format!("{org_id}#apollo");
    let team = json!({ "project": project, "team_id": "research-team" });
    dynamodb.put(Table::TEAMS, team);
    Ok(())
}

fn api_key(organization: usize) -> String {
    let byte = organization as u8;
    ApiKey::encode([byte; 8], [[byte; 16]; 2])
}

/// The event of a request that adds new users to the team of an organization.
fn event(organization: usize, number: usize) -> Arc<str> {
    let load = &LOADS[organization];
    let mut users = Vec::new();
    for user in 0..load.users_per_request {
        users.push(json!({ "userid": format!("user-{number}-{user}") }));
    }
    let operation = Operation::AddTeamUsers;
    let request = contract::example(operation, |name| (name == "org_id").then_some(load.org_id));
    let mut event = events::event(operation);
    event["rawPath"] = json!(request.path);
    event["headers"]["authorization"] = json!(format!("Bearer {}", api_key(organization)));
    event["body"] = json!(json!({ "usersAddingToTeam": users }).to_string());
    event.to_string().into()
}
