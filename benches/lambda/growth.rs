//! How the response time grows with the size of the team to which a user is added.

use std::{ops::Range, sync::Arc};

use anyhow::Result;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use test_support::fixtures;
use workspace_local::{demo::DEMO_ORGANIZATION, events};
use workspace_management::{operation::Operation, store::Table};

use crate::{bench::Bench, report::Report};

/// The numbers of members of the team.
const MEMBER_COUNTS: [usize; 3] = [10, 1_000, 1_000_000];

/// Adds users one by one to a team with more and more members.
pub(crate) async fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    eprintln!("adding users to growing teams");
    let calls = bench.calls / 4;
    let mut function = bench.start_ours().await?;
    function
        .invoke(&events::get(Operation::CreateTeam).into())
        .await?;
    function.invoke(&add_user(0)?).await?;
    let mut stored = 0;
    for size in MEMBER_COUNTS {
        store_members(bench, stored..size);
        stored = size;
        for call in 0..calls {
            let event = add_user(size + call)?;
            let time = function.invoke(&event).await?;
            report.time("members of the team", "response", &size.to_string(), time);
        }
    }
    function.stop().await
}

/// The event that adds a new user.
fn add_user(number: usize) -> Result<Arc<str>> {
    let body = json!({ "usersAddingToTeam": [{ "userid": format!("user-{number}") }] });
    let mut event: Value = serde_json::from_str(events::get(Operation::AddTeamUsers))?;
    event["body"] = json!(STANDARD.encode(body.to_string()));
    Ok(event.to_string().into())
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
