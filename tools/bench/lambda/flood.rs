//! One organization adds users faster than the table of members accepts them. Measures how many
//! requests of each organization succeed, and how much function time AWS would bill.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use serde_json::json;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until},
};
use workspace_local::{dynamodb::DynamoDb, events};
use workspace_management::{api_key::ApiKey, operations::Operation, store::Table};
use workspace_records::{contract, item::new_key_record};

use crate::{
    bench::{OURS, Program, build, disable_streams},
    function::Response,
    processes::Processes,
    report::percentile,
    throttle::{Admission, ThrottlingDynamoDb},
};

/// The time before the measurement, in seconds. In this time, most processes start, and the units
/// of the first second are used.
const WARM_UP: f64 = 3.0;

/// The time of the measurement, in seconds. In a longer time, a build that retries throttled writes
/// often would use up the SDK's retry quota of its processes, and then look better than it is.
const MEASURED: f64 = 20.0;

/// The organization that floods. Other organizations have the following numbers.
const FLOODER: usize = 0;

/// What the organizations send, and what DynamoDB accepts.
pub(crate) struct Scenario {
    /// The argument that runs the scenario.
    name: &'static str,
    flooder: Load,
    /// The load of each other organization.
    other: Load,
    other_organizations: usize,
    /// The maximum write units per second.
    max_units: f64,
}

/// The requests of one organization. They arrive independently of each other (a Poisson process),
/// and of the responses. Each adds users that are not in the team.
struct Load {
    requests_per_second: f64,
    users_per_request: usize,
}

#[rustfmt::skip] // keeps each scenario short
const SCENARIOS: [Scenario; 3] = [
    Scenario {
        name: "flood", max_units: 100.0, other_organizations: 1,
        flooder: Load { requests_per_second: 30.0, users_per_request: 5 },
        other: Load { requests_per_second: 8.0, users_per_request: 1 },
    },
    Scenario {
        name: "flood-of-single-users", max_units: 100.0, other_organizations: 1,
        flooder: Load { requests_per_second: 300.0, users_per_request: 1 },
        other: Load { requests_per_second: 8.0, users_per_request: 1 },
    },
    Scenario {
        name: "flood-of-imports", max_units: 4_000.0, other_organizations: 8,
        flooder: Load { requests_per_second: 60.0, users_per_request: 100 },
        other: Load { requests_per_second: 1.0, users_per_request: 1 },
    },
];

impl Scenario {
    /// The scenario that the arguments name.
    pub(crate) fn from_arguments(arguments: &[String]) -> Option<&'static Self> {
        SCENARIOS
            .iter()
            .find(|it| arguments.iter().any(|argument| argument == it.name))
    }

    /// The requests of all organizations, in the order of their times. Always the same.
    fn requests(&self) -> Vec<Request> {
        let mut random = fastrand::Rng::with_seed(1);
        let mut requests = Vec::new();
        for organization in 0..=self.other_organizations {
            let load = match organization {
                FLOODER => &self.flooder,
                _ => &self.other,
            };
            let mut next_interval = || -(1.0 - random.f64()).ln() / load.requests_per_second;
            let mut time = next_interval();
            while time < WARM_UP + MEASURED {
                requests.push(Request {
                    time,
                    organization,
                    event: event(organization, requests.len(), load.users_per_request),
                });
                time += next_interval();
            }
        }
        requests.sort_by(|one, other| one.time.total_cmp(&other.time));
        requests
    }
}

struct Request {
    /// When to send the request, in seconds since the start.
    time: f64,
    organization: usize,
    event: Arc<str>,
}

/// The columns of the report, after the name of the build.
const COLUMNS: [&str; 7] = [
    "others with a 204, %",
    "flooder with a 204, %",
    "function time, s/s",
    "processes",
    "without a process, %",
    "DynamoDB requests/s",
    "DynamoDB without latency, ms, p99",
];

/// Builds the function, and runs the scenario with this build and other builds. Prints a table for
/// each kind of admission.
pub(crate) async fn run(scenario: &Scenario, root: &Path, others: Vec<Program>) -> Result<()> {
    let mut programs = vec![build(root, OURS)?];
    programs.extend(others);
    for admission in [Admission::Debt, Admission::Strict] {
        let columns = COLUMNS.join(" | ");
        println!("\n| {}, {admission:?} | {columns} |", scenario.name);
        println!("|{}", "---|".repeat(1 + COLUMNS.len()));
        for program in &programs {
            let figures = measure(scenario, program, admission).await?;
            let cells = figures.map(|figure| format!("{figure:.1}"));
            println!("| {} | {} |", program.name, cells.join(" | "));
        }
    }
    Ok(())
}

/// Runs the scenario. Returns the figures of `COLUMNS`.
async fn measure(
    scenario: &Scenario,
    program: &Program,
    admission: Admission,
) -> Result<[f64; COLUMNS.len()]> {
    let dynamodb = DynamoDb::with_tables().await?;
    disable_streams(&dynamodb.client()).await?;
    for organization in 0..=scenario.other_organizations {
        register(&dynamodb, organization)?;
    }
    let dynamodb = ThrottlingDynamoDb::start(dynamodb, scenario.max_units, admission).await?;
    let processes = Processes::new(program.file.clone(), dynamodb.url.clone());
    let processes = Arc::new(processes);

    let requests = scenario.requests();
    let (warm_up, measured) = requests.split_at(requests.partition_point(|it| it.time < WARM_UP));
    let start = Instant::now();
    let warm_up = send(warm_up, start, &processes).await;
    dynamodb.take_times();
    let measured = send(measured, start, &processes).await;
    let dynamodb_times = dynamodb.take_times();
    for result in warm_up.join_all().await {
        result?;
    }
    let (mut flooder, mut others) = (Outcomes::default(), Outcomes::default());
    for result in measured.join_all().await {
        match result? {
            (FLOODER, response) => flooder.add(response)?,
            (_, response) => others.add(response)?,
        }
    }
    let function_time = flooder.function_time + others.function_time;
    let without_process = flooder.without_process + others.without_process;
    let milliseconds: Vec<f64> = dynamodb_times
        .iter()
        .map(|time| time.as_secs_f64() * 1000.0)
        .collect();
    Ok([
        percent(others.successful, others.requests),
        percent(flooder.successful, flooder.requests),
        function_time.as_secs_f64() / MEASURED,
        processes.started() as f64,
        percent(without_process, flooder.requests + others.requests),
        dynamodb_times.len() as f64 / MEASURED,
        percentile(&milliseconds, 0.99),
    ])
}

/// Sends requests at their times. The tasks return the organization and the response, or `None` if
/// the request got no process.
async fn send(
    requests: &[Request],
    start: Instant,
    processes: &Arc<Processes>,
) -> JoinSet<Result<(usize, Option<Response>)>> {
    let mut tasks = JoinSet::new();
    for request in requests {
        sleep_until(start + Duration::from_secs_f64(request.time)).await;
        let (organization, event) = (request.organization, request.event.clone());
        let processes = processes.clone();
        tasks.spawn(async move { Ok((organization, processes.respond(&event).await?)) });
    }
    tasks
}

/// What happened to the requests of some organizations.
#[derive(Default)]
struct Outcomes {
    requests: usize,
    successful: usize,
    without_process: usize,
    function_time: Duration,
}

impl Outcomes {
    /// Adds a request. `None` if it got no process.
    fn add(&mut self, response: Option<Response>) -> Result<()> {
        self.requests += 1;
        match response {
            None => self.without_process += 1,
            Some(response) => {
                self.function_time += response.duration;
                self.successful += usize::from(response.status()? == 204);
            }
        }
        Ok(())
    }
}

fn percent(part: usize, total: usize) -> f64 {
    100.0 * part as f64 / total as f64
}

/// Stores an organization with an API key and a team.
fn register(dynamodb: &DynamoDb, organization: usize) -> Result<()> {
    let org_id = org_id(organization);
    let registration = json!({ "org_id": org_id, "request_id": "registration" });
    dynamodb.put(Table::ORGANIZATIONS, registration);
    let key = api_key(organization);
    let created_at = "2026-11-20T12:00:00.000Z";
    let key = new_key_record(&key, &org_id, "registration", "flood", created_at);
    dynamodb.put(Table::API_KEYS, key.context("the key is malformed")?);
    let project = format!("{org_id}#apollo");
    dynamodb.put(
        Table::TEAMS,
        json!({ "project": project, "team_id": "research-team" }),
    );
    Ok(())
}

fn org_id(organization: usize) -> String {
    format!("organization-{organization}")
}

fn api_key(organization: usize) -> String {
    let byte = organization as u8;
    ApiKey::encode([byte; 8], [[byte; 16]; 2])
}

/// The event of a request that adds new users to the team of an organization.
fn event(organization: usize, number: usize, users: usize) -> Arc<str> {
    let mut entries = Vec::new();
    for user in 0..users {
        entries.push(json!({ "userid": format!("user-{number}-{user}") }));
    }
    let body = json!({ "usersAddingToTeam": entries }).to_string();
    let org_id = org_id(organization);
    let operation = Operation::AddTeamUsers;
    let request = contract::example(operation, |name| (name == "org_id").then_some(&*org_id));
    let mut event = events::event(operation);
    event["rawPath"] = json!(request.path);
    event["headers"]["authorization"] = json!(format!("Bearer {}", api_key(organization)));
    event["body"] = json!(body);
    event.to_string().into()
}
