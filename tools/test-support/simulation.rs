//! Schedules that a seed determines. The real service, commands, SDK and DynamoDB engine run on one
//! thread with a paused clock, which skips every wait. Requests to the engine pass a [`Network`]
//! with faults.
//!
//! Tests run a simulation for several seeds, and check that no rule is violated. A failed test
//! prints the seed. `SIMULATION_SEED=... cargo test simulation` replays the schedule.

mod network;
mod tables;

use std::{
    cell::RefCell,
    env,
    fmt::Debug,
    ops::Range,
    process::Command,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use aws_sdk_dynamodb::config::{Builder, retry::RetryPartition};
use workspace_local::dynamodb::http_client;
use workspace_records::local::sdk_config;

pub use self::{
    network::{Faults, Network, Weaken},
    tables::Tables,
};
use crate::iterations;

thread_local! {
    /// The DynamoDB requests of the current schedule, with the times at which they were sent.
    static TRACE: RefCell<Vec<String>> = RefCell::default();
}

pub fn config(network: Network) -> Builder {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    // By default, all clients of a process share one budget for retries.
    let partition = RetryPartition::new(COUNT.fetch_add(1, Ordering::Relaxed).to_string());
    sdk_config("http://dynamodb")
        .interceptor(network.clone())
        .http_client(http_client(network))
        .retry_partition(partition)
}

/// Runs a simulation for each of these seeds, on all processors. Returns each seed with its result,
/// in the order of the seeds.
pub fn run<T: Send, F: Future<Output = T>>(
    seeds: Range<u64>,
    simulation: impl Fn(u64) -> F + Sync,
) -> Vec<(u64, T)> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let results = &results;
            let simulation = &simulation;
            let seeds = seeds.clone();
            scope.spawn(move || {
                for seed in (seeds.start + thread..seeds.end).step_by(threads as usize) {
                    let runtime = tokio::runtime::Builder::new_current_thread()
                        .enable_all()
                        .start_paused(true)
                        .build()
                        .unwrap();
                    TRACE.take();
                    let result = runtime.block_on(simulation(seed));
                    results.lock().unwrap().push((seed, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap();
    results.sort_by_key(|(seed, _)| *seed);
    results
}

/// Asserts that seeds replay their schedules: a second time in this process, and in a new process
/// that runs only `test`, which is the test that calls this function.
pub fn assert_replays<F: Future<Output: Debug>>(
    test: &str,
    seeds: Range<u64>,
    simulation: impl Fn(u64) -> F + Sync,
) {
    const IS_NEW_PROCESS: &str = "SIMULATION_PRINTS_TRACE";
    const PREFIX: &str = "trace: ";
    let trace = || {
        let traces = run(seeds.clone(), async |seed| {
            let result = simulation(seed).await;
            format!("{}\n{result:#?}", TRACE.take().join("\n"))
        });
        let lines = traces.iter().flat_map(|(_, trace)| trace.lines());
        lines.map(|line| format!("{PREFIX}{line}")).collect()
    };
    let first: Vec<String> = trace();
    if env::var(IS_NEW_PROCESS).is_ok() {
        println!("\n{}", first.join("\n"));
        return;
    }
    let mut process = Command::new(env::current_exe().unwrap());
    process.args(["--exact", test, "--nocapture"]);
    let output = process.env(IS_NEW_PROCESS, "").output().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let printed = output.lines().filter(|line| line.starts_with(PREFIX));
    let printed = printed.map(str::to_owned).collect();
    for (place, replayed) in [("this process", trace()), ("a new process", printed)] {
        for (index, line) in first.iter().enumerate() {
            assert_eq!(replayed.get(index), Some(line), "line {index} in {place}");
        }
    }
}

/// Asserts that a simulation violates no rule: for `few` seeds, or `many` with `STRESS=full`.
/// `SIMULATION_SEED` is the first seed.
pub fn assert_holds<F: Future<Output = Vec<String>>>(
    (few, many): (u32, u32),
    simulation: impl Fn(u64) -> F + Sync,
) {
    let first = match env::var("SIMULATION_SEED") {
        Ok(seed) => seed.parse().expect("SIMULATION_SEED must be a number"),
        Err(_) => fastrand::u64(..) >> 16,
    };
    let count = u64::from(iterations(few, many));
    println!("{count} schedules from SIMULATION_SEED={first}");
    for (seed, violations) in run(first..first + count, simulation) {
        assert!(
            violations.is_empty(),
            "SIMULATION_SEED={seed} replays this schedule:\n{}",
            violations.join("\n")
        );
    }
}

/// Asserts that a simulation violates a rule for at least one of 600 seeds. `first` is a seed that
/// probably violates a rule, so that the search is short. `what` describes the simulation. Returns
/// the seed.
pub fn assert_breaks<F: Future<Output = Vec<String>>>(
    what: &str,
    first: u64,
    simulation: impl Fn(u64) -> F + Sync,
) -> u64 {
    for seed in first..first + 600 {
        let (_, violations) = run(seed..seed + 1, &simulation).remove(0);
        if let Some(violation) = violations.first() {
            println!("{what}: seed {seed}: {violation}");
            return seed;
        }
    }
    panic!("{what} breaks no rule in 600 schedules from {first}");
}
