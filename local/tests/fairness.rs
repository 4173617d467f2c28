//! A model of what an organization that sends too many requests does to the others, and of what
//! limits would change. It models AWS and contains no code of the function. docs/decisions.md, "No
//! limit for each organization", describes the policies and contains the figures.
//!
//! `cargo test --package workspace-local --test fairness -- --show-output` prints them.
//!
//! Every request writes 20 units, such as 10 users. A process handles one request at a time, and
//! retries throttled writes as in `src/store/retry.rs`.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    ops::Range,
};

use fastrand::Rng;

/// Milliseconds since the start.
type Millis = u64;

const DURATION: Millis = 120_000;

/// The number of organizations that send 0.5 requests per second.
const HONEST: usize = 20;
const AGGRESSOR: usize = HONEST;
const IMPORTER: usize = HONEST + 1;

const MAX_WRITE_UNITS: Rate = Rate(25_000, 25); // 500 units, the default of the template
const ROUTE: Rate = Rate(500_000, 1000); // of the template
const SLOW_ROUTE: Rate = Rate(25_000, 50);
/// The limit of an organization. The sum of the limits is less than the maximum of the table.
const LIMIT: Rate = Rate(1000, 100);
const SMALL_LIMIT: Rate = Rate(100, 5);

/// A warm request, as docs/operations.md assumes. The other times are assumptions too.
const WARM: Millis = 10;
const COLD: Millis = 100;
const COUNTER: Millis = 5;
const REJECTION: Millis = 1;
/// How long a process rejects an organization before it asks the counter again.
const PAUSE: Millis = 5000;

const MAX_ATTEMPTS: u32 = 8;
const INITIAL_BACKOFF: Millis = 50;
const MAX_BACKOFF: Millis = 1000;
/// The retry quota of the SDK in a process, and what a retry takes from it.
const RETRY_QUOTA: u32 = 500;
const RETRY_COST: u32 = 5;

/// USD per million written units in us-east-1, November 2026.
const WRITE_PRICE: f64 = 0.625;

#[derive(Clone, Copy, Default, PartialEq)]
enum Policy {
    #[default]
    None,
    SlowRoute,
    ReservedConcurrency,
    Process,
    SmallProcess,
    /// Lambda uses the process that became idle last. Otherwise, it uses any idle process.
    LastProcess,
    DividedProcess,
    KeyCounter,
    Counter,
    CounterAfterThrottle,
}

#[rustfmt::skip]
const POLICIES: [(Policy, &str); 10] = [
    (Policy::None, "none"),
    (Policy::SlowRoute, "25 requests per second for the route"),
    (Policy::ReservedConcurrency, "reserved concurrency of 20"),
    (Policy::Process, "large bucket in each process"),
    (Policy::SmallProcess, "small bucket in each process"),
    (Policy::LastProcess, "large one, if Lambda prefers the last process"),
    (Policy::DividedProcess, "large one, divided by the number of processes"),
    (Policy::KeyCounter, "counter for each API key"),
    (Policy::Counter, "counter for each organization"),
    (Policy::CounterAfterThrottle, "the same, only after a throttled write"),
];

/// Thousandths of a token per second, and the tokens of a full bucket.
#[derive(Clone, Copy)]
struct Rate(u64, u64);

/// A token bucket. It counts millionths, so that a millisecond adds an integer.
#[derive(Clone, Copy, Default)]
struct Bucket {
    tokens: u64,
    updated: Millis,
}

impl Bucket {
    fn full(Rate(_, burst): Rate) -> Self {
        let tokens = burst * 1_000_000;
        Self { tokens, updated: 0 }
    }

    /// Takes a token if there is one.
    fn take(&mut self, now: Millis, Rate(rate, burst): Rate) -> bool {
        let tokens = self.tokens + rate * (now - self.updated);
        self.tokens = tokens.min(burst * 1_000_000);
        self.updated = now;
        let is_taken = self.tokens >= 1_000_000;
        self.tokens -= u64::from(is_taken) * 1_000_000;
        is_taken
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Done,
    /// Rejected by the policy.
    Limited,
    /// Rejected by API Gateway or Lambda, or throttled by DynamoDB after the retries.
    Failed,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Begin,
    Write,
    End(Outcome),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Request {
    organization: usize,
    key: u64,
    arrived: Millis,
    attempts: u32,
    process: usize,
}

#[derive(Default)]
struct Process {
    buckets: BTreeMap<usize, Bucket>,
    paused_until: BTreeMap<usize, Millis>,
    used_retries: u32,
    used_at: Millis,
}

#[derive(Default)]
struct Simulation {
    policy: Policy,
    rng: Rng,
    processes: Vec<Process>,
    idle: Vec<usize>,
    /// The number of processes that were used in the last 10 seconds.
    active: u64,
    queue: BinaryHeap<Reverse<(Millis, u64, Step, Request)>>,
    table: Bucket,
    counters: BTreeMap<(usize, u64), Bucket>,
    counter_writes: u64,
    requests: u64,
    /// How many requests of the counted organizations have each outcome.
    outcomes: [u64; 3],
    /// The durations of those that succeeded.
    durations: Vec<Millis>,
    counted: Range<usize>,
}

/// An aggressor sends so many requests per second with so many keys. Or an importer sends so many
/// requests within a second, and again 10 seconds later.
fn simulate(policy: Policy, aggressor: u64, keys: u64, import: u64) -> Simulation {
    let has_import = import > 0;
    let mut simulation = Simulation {
        policy,
        counted: if has_import {
            IMPORTER..IMPORTER + 1
        } else {
            0..HONEST
        },
        rng: Rng::with_seed(1),
        ..Simulation::default()
    };
    let is_slow = policy == Policy::SlowRoute;
    let route_rate = if is_slow { SLOW_ROUTE } else { ROUTE };
    let mut route = Bucket::full(route_rate);
    let mut callers = Vec::new();
    for now in 0..DURATION {
        let rng = &mut simulation.rng;
        callers.resize((aggressor + rng.u64(..1000)) as usize / 1000, AGGRESSOR);
        if rng.usize(..1000) < HONEST / 2 {
            callers.push(rng.usize(..HONEST));
        }
        if matches!(now / 1000, 60 | 70) && now * import % 1000 < import {
            callers.push(IMPORTER);
        }
        rng.shuffle(&mut callers);
        for organization in callers.drain(..) {
            simulation.arrive(now, organization, keys, route.take(now, route_rate));
        }
        if now % 10_000 == 0 {
            let processes = simulation.processes.iter();
            let active = processes.filter(|process| process.used_at + 10_000 > now);
            simulation.active = active.count() as u64;
        }
        simulation.run_until(now);
    }
    simulation.run_until(Millis::MAX);
    simulation.durations.sort_unstable();
    simulation
}

impl Simulation {
    fn arrive(&mut self, now: Millis, organization: usize, keys: u64, is_accepted: bool) {
        let mut request = Request {
            organization,
            key: self.rng.u64(..keys),
            arrived: now,
            attempts: 0,
            process: self.processes.len(),
        };
        let is_reserved = self.policy == Policy::ReservedConcurrency;
        let concurrency = if is_reserved { 20 } else { 1000 };
        self.requests += 1;
        if !is_accepted || (self.idle.is_empty() && request.process == concurrency) {
            self.end(now, Outcome::Failed, request);
        } else if self.idle.is_empty() {
            self.processes.push(Process::default());
            self.schedule(now + COLD, Step::Begin, request);
        } else {
            let index = match self.policy {
                Policy::LastProcess => self.idle.len() - 1,
                _ => self.rng.usize(..self.idle.len()),
            };
            request.process = self.idle.swap_remove(index);
            self.schedule(now, Step::Begin, request);
        }
    }

    /// Steps at the same time run in random order.
    fn schedule(&mut self, at: Millis, step: Step, request: Request) {
        let order = self.rng.u64(..);
        self.queue.push(Reverse((at, order, step, request)));
    }

    fn run_until(&mut self, until: Millis) {
        while let Some(Reverse((now, _, step, request))) = self.queue.peek().copied()
            && now <= until
        {
            self.queue.pop();
            match step {
                Step::Begin => self.begin(now, request),
                Step::Write => self.write(now, request),
                Step::End(outcome) => {
                    self.idle.push(request.process);
                    self.end(now, outcome, request);
                }
            }
        }
    }

    fn begin(&mut self, now: Millis, request: Request) {
        let process = &mut self.processes[request.process];
        process.used_at = now;
        let paused_until = process.paused_until.get(&request.organization);
        let mut take = |rate| {
            let bucket = process.buckets.entry(request.organization);
            bucket.or_insert(Bucket::full(rate)).take(now, rate)
        };
        let divisor = self.active.max(1);
        let is_allowed = match self.policy {
            Policy::Process | Policy::LastProcess => take(LIMIT),
            Policy::SmallProcess => take(SMALL_LIMIT),
            Policy::DividedProcess => take(Rate(LIMIT.0 / divisor, (LIMIT.1 / divisor).max(1))),
            _ => paused_until.is_none_or(|until| *until <= now),
        };
        if !is_allowed {
            self.schedule(now + REJECTION, Step::End(Outcome::Limited), request);
        } else if matches!(self.policy, Policy::Counter | Policy::KeyCounter) {
            self.count(now + COUNTER, request);
        } else {
            self.schedule(now, Step::Write, request);
        }
    }

    /// A conditional update, which costs a unit even if its condition fails.
    fn count(&mut self, now: Millis, request: Request) {
        let is_for_key = self.policy == Policy::KeyCounter;
        let counter = (request.organization, u64::from(is_for_key) * request.key);
        let counter = self.counters.entry(counter).or_insert(Bucket::full(LIMIT));
        self.counter_writes += 1;
        if counter.take(now, LIMIT) {
            return self.schedule(now, Step::Write, request);
        }
        if !is_for_key {
            let paused_until = &mut self.processes[request.process].paused_until;
            paused_until.insert(request.organization, now + PAUSE);
        }
        self.schedule(now, Step::End(Outcome::Limited), request);
    }

    fn write(&mut self, now: Millis, mut request: Request) {
        let is_written = self.table.take(now, MAX_WRITE_UNITS);
        let now = now + WARM;
        let max_backoff = (INITIAL_BACKOFF << request.attempts).min(MAX_BACKOFF);
        let backoff = self.rng.u64(..max_backoff);
        request.attempts += 1;
        let used_retries = &mut self.processes[request.process].used_retries;
        if is_written {
            let refund = if request.attempts > 1 { RETRY_COST } else { 1 };
            *used_retries = used_retries.saturating_sub(refund);
            self.schedule(now, Step::End(Outcome::Done), request);
        } else if self.policy == Policy::CounterAfterThrottle && request.attempts == 1 {
            self.count(now + COUNTER, request);
        } else if request.attempts == MAX_ATTEMPTS || *used_retries + RETRY_COST > RETRY_QUOTA {
            self.schedule(now, Step::End(Outcome::Failed), request);
        } else {
            *used_retries += RETRY_COST;
            self.schedule(now + backoff, Step::Write, request);
        }
    }

    fn end(&mut self, now: Millis, outcome: Outcome, request: Request) {
        if self.counted.contains(&request.organization) {
            self.outcomes[outcome as usize] += 1;
            if outcome == Outcome::Done {
                self.durations.push(now - request.arrived);
            }
        }
    }

    /// The percentage of the counted requests with this outcome.
    fn percentage(&self, outcome: Outcome) -> f64 {
        100.0 * self.outcomes[outcome as usize] as f64 / self.outcomes.iter().sum::<u64>() as f64
    }

    /// USD per million requests.
    fn price(&self) -> f64 {
        WRITE_PRICE * self.counter_writes as f64 / self.requests as f64
    }
}

#[test]
fn the_decisions_contain_the_figures_of_the_model() {
    let decisions = include_str!("../../docs/decisions.md");
    let mut missing = Vec::new();
    for (policy, name) in POLICIES {
        let attack = simulate(policy, 500, 1, 0);
        let keys = simulate(policy, 500, 100, 0);
        let faster = simulate(policy, 5000, 1, 0);
        let imports = simulate(policy, 0, 1, 100);
        let row = format!(
            "| {name} | {:.0} | {:.0} | {} | {:.0} | {:.0} | {:.0} | {:.0} | {:.2} | {:.2} |",
            attack.percentage(Outcome::Done),
            attack.percentage(Outcome::Limited),
            attack.durations[attack.durations.len() * 99 / 100],
            keys.percentage(Outcome::Done),
            faster.percentage(Outcome::Done),
            imports.percentage(Outcome::Done),
            imports.percentage(Outcome::Limited),
            attack.price(),
            imports.price(),
        );
        println!("{row}");
        if !decisions.contains(&row) {
            missing.push(row);
        }
    }
    assert!(
        missing.is_empty(),
        "docs/decisions.md lacks these rows: {missing:#?}"
    );
}
