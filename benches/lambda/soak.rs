//! Many requests at once for a long time: no error, flat memory, no straggler.

use std::{collections::HashMap, sync::Arc, time::Instant};

use anyhow::{Result, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use workspace_management::operation::Operation;

use crate::bench::{Bench, OURS, event};

/// How many requests, and how many of them at once.
const REQUESTS: u64 = 200_000;
const CONCURRENCY: u64 = 64;

/// How often the memory is looked at.
const LOOKS: u64 = 400;

/// Sends all operations in turn through one process.
pub(crate) async fn run(bench: &Bench) -> Result<()> {
    eprintln!("{REQUESTS} requests, {CONCURRENCY} at once");
    let concurrency = CONCURRENCY.to_string();
    let (mut function, _) = bench
        .start(OURS, &[("AWS_LAMBDA_MAX_CONCURRENCY", &concurrency)])
        .await?;
    let events: Vec<_> = Operation::ALL
        .iter()
        .map(|operation| event(*operation))
        .collect::<Result<_>>()?;
    let (mut sent, mut memory, mut times) = (HashMap::new(), Vec::new(), Vec::new());
    // The team that users are added to.
    function.send(REQUESTS, &event(Operation::CreateTeam)?.to_string().into());
    function.response().await?;
    let began = Instant::now();
    for request in 0..REQUESTS + CONCURRENCY {
        if request >= CONCURRENCY {
            let (id, at) = function.response().await?;
            let handed: Instant = sent.remove(&id).expect("it was sent");
            times.push(at - handed);
            // Endpoint and Lambda share a process with the benchmark: what they note is let go.
            bench.endpoint.take_traffic();
        }
        if request < REQUESTS {
            let event = varied(&events[request as usize % events.len()], request);
            sent.insert(request, Instant::now());
            function.send(request, &event);
        }
        if request % (REQUESTS / LOOKS) == 0 {
            memory.push(function.memory()? as f64 / (1024.0 * 1024.0));
        }
    }
    let taken = began.elapsed();
    function.stop().await?;

    let quarter = memory.len() / 4;
    let mean = |looks: &[f64]| looks.iter().sum::<f64>() / looks.len() as f64;
    let (second, last) = (
        mean(&memory[quarter..2 * quarter]),
        mean(&memory[3 * quarter..]),
    );
    times.sort();
    let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    println!(
        "{} requests at concurrency {CONCURRENCY} in {taken:.1?}: 0 errors",
        times.len()
    );
    println!(
        "memory: second quarter {second:.2} MiB, last {last:.2} MiB, {:+.1} %",
        (last / second - 1.0) * 100.0
    );
    println!(
        "time: p50 {p50:.2?}, p99 {p99:.2?}, {:.1} x",
        p99.as_secs_f64() / p50.as_secs_f64()
    );
    ensure!(last < second * 1.05, "memory grows");
    ensure!(p99 < p50 * 5, "some requests take too long");
    Ok(())
}

/// The event with another body or path in a thousand, so that it meets other records.
fn varied(event: &Value, request: u64) -> Arc<str> {
    let number = request / 6 % 1000;
    let mut event = event.clone();
    let path = event["rawPath"].as_str().unwrap_or_default();
    event["rawPath"] = json!(path.replace("bot-7", &format!("bot-{number}")));
    let body = STANDARD
        .decode(event["body"].as_str().unwrap_or_default())
        .unwrap_or_default();
    let mut body: Value = serde_json::from_slice(&body).unwrap_or_default();
    for name in ["teamName", "dataStoreName"] {
        if body[name].is_string() {
            body[name] = json!(format!("{name} {number}"));
        }
    }
    for (entries, name) in [
        ("usersAddingToTeam", "userid"),
        ("aIModelsSelectedToAddToOrg", "modelid"),
    ] {
        if let Some(entry) = body[entries].get_mut(0) {
            entry[name] = json!(format!("{name}-{number}"));
        }
    }
    event["body"] = json!(STANDARD.encode(body.to_string()));
    event.to_string().into()
}
