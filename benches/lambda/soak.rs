//! A long run of one process. It fails if a response is not a 204, or if memory grows.

use std::{sync::Arc, time::Instant};

use anyhow::{Result, ensure};
use workspace_local::{
    demo::{DEMO_KEY, DEMO_ORGANIZATION, key_record},
    events, fixtures,
};
use workspace_management::{api_key::ApiKey, store::Table};

use crate::bench::Bench;

const REQUESTS: usize = 200_000;

/// The number of organizations whose records the requests create and repeat.
const ORGANIZATIONS: u64 = 1000;

/// Sends every operation to one process, for each organization in turn.
pub(crate) async fn run(bench: &Bench) -> Result<()> {
    let mut function = bench.start_ours().await?;
    let mut events = Vec::new();
    for number in 0..ORGANIZATIONS {
        events.extend(organization_events(bench, number));
    }
    eprintln!("sending {REQUESTS} requests");
    let started = Instant::now();
    // Caches and buffers fill up in the first half.
    let mut memory_of_half = 0;
    for request in 0..REQUESTS {
        if request == REQUESTS / 2 {
            memory_of_half = function.peak_memory()?;
        }
        function.invoke(&events[request % events.len()]).await?;
    }
    let duration = started.elapsed();
    let memory = function.peak_memory()?;
    function.stop().await?;
    let mebibytes = |bytes: u64| bytes as f64 / (1024.0 * 1024.0);
    println!(
        "{REQUESTS} requests in {duration:.1?}, 0 errors; peak memory {:.2} MiB, {:.2} MiB after the first half",
        mebibytes(memory),
        mebibytes(memory_of_half),
    );
    ensure!(
        memory < memory_of_half / 100 * 105,
        "memory grew by more than 5 % in the second half"
    );
    Ok(())
}

/// Registers an organization with an API key. Returns the events in `events/`, for it.
fn organization_events(bench: &Bench, number: u64) -> impl Iterator<Item = Arc<str>> {
    let organization = format!("{DEMO_ORGANIZATION}-{number}");
    let key = ApiKey::generate(number.to_be_bytes(), [[7; 16]; 2]);
    let dynamodb = &bench.endpoint.dynamodb;
    dynamodb.put(Table::ORGANIZATIONS, fixtures::organization(&organization));
    dynamodb.put(Table::KEYS, key_record(&key, &organization, ""));
    events::all().map(move |(_, event)| {
        let event = event.replace(DEMO_KEY, &key);
        let demo_path = format!("/{DEMO_ORGANIZATION}/");
        event
            .replace(&demo_path, &format!("/{organization}/"))
            .into()
    })
}
