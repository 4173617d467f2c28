//! A long run of one process. It fails if a response is not a 204, if memory grows, or if some
//! requests take much longer than others.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use serde_json::json;
use workspace_local::{
    demo::{DEMO_KEY, DEMO_ORGANIZATION, key_record},
    events,
};
use workspace_management::{api_key::ApiKey, store::Table};

use crate::bench::Bench;

const REQUESTS: usize = 200_000;

/// The number of organizations whose records the requests create and repeat.
const ORGANIZATIONS: u64 = 1000;

/// How many times memory is read during the run.
const MEMORY_SAMPLES: usize = 400;

/// Sends every operation to one process, for each organization in turn.
pub(crate) async fn run(bench: &Bench) -> Result<()> {
    let mut function = bench.start_ours(&[]).await?;
    eprintln!("registering {ORGANIZATIONS} organizations, and sending every event for each");
    let mut events = Vec::new();
    for number in 0..ORGANIZATIONS {
        for event in organization_events(bench, number) {
            // Sends the events in order, because some need the records of earlier ones.
            function.invoke(&event).await?;
            events.push(event);
        }
    }
    eprintln!("sending {REQUESTS} requests");
    let (mut memory, mut times) = (Vec::new(), Vec::new());
    let started = Instant::now();
    for request in 0..REQUESTS {
        let invocation = function.invoke(&events[request % events.len()]).await?;
        times.push(invocation.response);
        // Discards the recorded requests, because they would fill the memory.
        bench.endpoint.take_traffic();
        if request % (REQUESTS / MEMORY_SAMPLES) == 0 {
            memory.push(function.memory()? as f64 / (1024.0 * 1024.0));
        }
    }
    let duration = started.elapsed();
    function.stop().await?;
    println!("{REQUESTS} requests in {duration:.1?}, 0 errors");
    check(times, &memory)
}

/// Registers an organization with an API key. Returns the events in `events/`, for it.
fn organization_events(bench: &Bench, number: u64) -> impl Iterator<Item = Arc<str>> {
    let organization = format!("{DEMO_ORGANIZATION}-{number}");
    let key = ApiKey::generate(number.to_be_bytes(), [[7; 16]; 2]);
    let record = json!({ "org_id": organization });
    bench.endpoint.dynamodb.put(Table::ORGANIZATIONS, record);
    let record = key_record(&key, &organization, "");
    bench.endpoint.dynamodb.put(Table::KEYS, record);
    events::all().map(move |(_, event)| {
        let event = event.replace(DEMO_KEY, &key);
        let demo_path = format!("/{DEMO_ORGANIZATION}/");
        event
            .replace(&demo_path, &format!("/{organization}/"))
            .into()
    })
}

/// Prints memory in MiB and response times, and checks their limits.
fn check(mut times: Vec<Duration>, memory: &[f64]) -> Result<()> {
    // The first quarter is left out, because caches and buffers still fill up.
    let quarter = memory.len() / 4;
    let mean = |samples: &[f64]| samples.iter().sum::<f64>() / samples.len() as f64;
    let second = mean(&memory[quarter..2 * quarter]);
    let last = mean(&memory[3 * quarter..]);
    let growth = (last / second - 1.0) * 100.0;
    println!("memory: second quarter {second:.2} MiB, last quarter {last:.2} MiB, {growth:+.1} %");

    times.sort();
    let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    let ratio = p99.as_secs_f64() / p50.as_secs_f64();
    println!("time: p50 {p50:.2?}, p99 {p99:.2?}, {ratio:.1} × p50");
    ensure!(
        last < second * 1.05,
        "memory grew by {growth:.1} %, more than 5 %"
    );
    // Some requests read their key again, and other programs on the machine slow some down.
    ensure!(
        p99 < p50 * 10,
        "the p99 is {ratio:.1} × the p50, more than 10 ×"
    );
    Ok(())
}
