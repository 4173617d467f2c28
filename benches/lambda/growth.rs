//! How the response time grows with the size of the request, of the team and of the key cache.

use std::{ops::Range, sync::Arc};

use anyhow::Result;
use serde_json::{Value, json};
use workspace_local::{
    demo::{DEMO_ORGANIZATION, key_record},
    fixtures,
};
use workspace_management::{api_key::ApiKey, operation::Operation, store::Table};

use crate::{
    bench::{Bench, CALLS, event_with_body, logging_instance_event},
    report::Report,
};

/// The number of calls at each size.
const CALLS_PER_SIZE: usize = CALLS / 4;

/// The numbers of members of the team to which a user is added.
pub(crate) const MEMBER_COUNTS: [usize; 3] = [10, 1_000, 1_000_000];

/// The names of the figures by the number of members.
pub(crate) const BY_MEMBERS: &str = "warm, by members of the team";
pub(crate) const OWN_TIME_BY_MEMBERS: &str = "warm without DynamoDB, by members of the team";
pub(crate) const REQUESTS_BY_MEMBERS: &str = "DynamoDB requests, by members of the team";

/// Measures users and models per request, members per team, and cached keys per process. The team
/// exists, because `operations` creates it.
pub(crate) async fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    eprintln!("calling operations with growing requests, teams and key caches");
    measure_entries(bench, report).await?;
    measure_members(bench, report).await?;
    measure_keys(bench, report).await
}

async fn measure_entries(bench: &Bench, report: &mut Report) -> Result<()> {
    // Calls of one size come in runs, because the first call after another size finds the
    // processor's caches cold.
    const RUN: usize = 8;
    let mut users = Vec::new();
    let mut models = Vec::new();
    for count in [1, 10, 100] {
        let of_users = event_with_body(Operation::AddTeamUsers, &users_body(0..count))?;
        let of_models = event_with_body(Operation::AddModels, &models_body(count))?;
        users.push((count.to_string(), of_users));
        models.push((count.to_string(), of_models));
    }
    let mut function = bench.start_ours(&[]).await?;
    for (_, event) in users.iter().chain(&models) {
        function.invoke(event).await?;
    }
    // The sizes alternate, because the machine's speed changes during a run.
    for _ in 0..CALLS_PER_SIZE / RUN {
        for (count, event) in &users {
            for _ in 0..RUN {
                bench.endpoint.take_traffic();
                let time = function.invoke(event).await?.response;
                let own_time = time.saturating_sub(bench.endpoint.take_traffic().time);
                report.time("warm, by users per request", count, time);
                report.time(
                    "warm without DynamoDB, by users per request",
                    count,
                    own_time,
                );
            }
        }
        for (count, event) in &models {
            for _ in 0..RUN {
                let time = function.invoke(event).await?.response;
                report.time("warm, by models per request", count, time);
            }
        }
    }
    function.stop().await
}

async fn measure_members(bench: &Bench, report: &mut Report) -> Result<()> {
    // No other figure adds users with these numbers.
    const NEW_USERS: usize = 900_000;
    let mut function = bench.start_ours(&[]).await?;
    let event = event_with_body(Operation::AddTeamUsers, &users_body(0..1))?;
    function.invoke(&event).await?;
    let mut stored = 0;
    for size in MEMBER_COUNTS {
        store_members(bench, stored..size);
        stored = size;
        let subject = size.to_string();
        bench.endpoint.take_traffic();
        for call in 0..CALLS_PER_SIZE {
            let user = NEW_USERS + size + call;
            let event = event_with_body(Operation::AddTeamUsers, &users_body(user..user + 1))?;
            let time = function.invoke(&event).await?.response;
            let traffic = bench.endpoint.take_traffic();
            let own_time = time.saturating_sub(traffic.time);
            report.time(BY_MEMBERS, &subject, time);
            report.time(OWN_TIME_BY_MEMBERS, &subject, own_time);
            report.count(REQUESTS_BY_MEMBERS, &subject, traffic.requests);
        }
    }
    function.stop().await
}

async fn measure_keys(bench: &Bench, report: &mut Report) -> Result<()> {
    // Longer than the measurement, so that no key expires from the cache.
    let variables = [("KEY_CACHE_SECONDS", "3600")];
    let mut function = bench.start_ours(&variables).await?;
    let mut events: Vec<Arc<str>> = Vec::new();
    for count in [1, 100, 10_000] {
        while events.len() < count {
            let event = event_with_new_key(bench, events.len())?;
            function.invoke(&event).await?;
            events.push(event);
        }
        let subject = count.to_string();
        for call in 0..CALLS_PER_SIZE {
            // A multiple of a prime spreads the calls over all keys.
            let invocation = function.invoke(&events[call * 7919 % count]).await?;
            report.time("warm, by cached keys", &subject, invocation.response);
        }
        report.size(
            "peak memory, by cached keys",
            &subject,
            function.peak_memory()?,
        );
    }
    function.stop().await
}

/// The body of a request that adds users.
fn users_body(numbers: Range<usize>) -> Value {
    let user = |number| json!({ "userid": format!("user-{number:06}") });
    json!({ "usersAddingToTeam": numbers.map(user).collect::<Vec<_>>() })
}

/// The body of a request that adds models.
fn models_body(count: usize) -> Value {
    let model = |id| json!({ "id": id, "modelid": format!("model-{id:06}") });
    json!({ "aIModelsSelectedToAddToOrg": (0..count).map(model).collect::<Vec<_>>() })
}

/// Stores members of the demo team without requests, which would take too long.
fn store_members(bench: &Bench, numbers: Range<usize>) {
    // Limits the memory for records that are not stored yet.
    const BATCH: usize = 10_000;
    for first in numbers.clone().step_by(BATCH) {
        let batch = first..numbers.end.min(first + BATCH);
        let members = batch.map(|number| {
            let user = format!("member-{number:06}");
            fixtures::member(DEMO_ORGANIZATION, "apollo", "research-team", &user)
        });
        bench.endpoint.dynamodb.import(Table::TEAM_MEMBERS, members);
    }
}

/// Stores a new API key. Returns an event with the key, for a project of its own.
fn event_with_new_key(bench: &Bench, number: usize) -> Result<Arc<str>> {
    let key = ApiKey::generate((number as u64).to_be_bytes(), [[7; 16]; 2]);
    let record = key_record(&key, DEMO_ORGANIZATION, "");
    bench.endpoint.dynamodb.put(Table::KEYS, record);
    let mut event = logging_instance_event(&format!("project-{number}"))?;
    event["headers"]["authorization"] = json!(format!("Bearer {key}"));
    Ok(event.to_string().into())
}
