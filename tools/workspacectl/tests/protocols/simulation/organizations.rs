//! Operators disable, enable and erase an organization while clients send requests for it.

use std::{sync::Arc, time::Duration};

use fastrand::Rng;
use serde_json::{Value, json};
use test_support::{fixtures, simulation};
use tokio::time::{sleep, timeout};
use workspace_management::records::Table;
use workspacectl::{
    commands::orgs::{
        change_state::{StateChange, change_state},
        erase::erase as erase_organization,
    },
    deployment::Deployment,
    organization,
    wait::SAFE_WAIT,
};

use super::{
    Attempt, LATE_WRITES, Request, Weakness, World, assert_breaks, assert_holds, join, pause,
    registrations::issue_keys, run_by, time_until_kill,
};

/// Creates a record of an organization.
pub(super) fn create_record(org: &str, rng: &mut Rng) -> Request {
    let name = format!("n{}", rng.u64(..));
    let kind = rng.u8(0..3);
    let (path, body) = match kind {
        0 => (
            format!("/api/v1/org/{org}/dataStores/create"),
            json!({ "dataStoreName": name }),
        ),
        1 => (
            format!("/api/v1/project/{org}/apollo/createNewTeamOnProject"),
            json!({ "teamName": name }),
        ),
        _ => (
            format!("/api/v1/bot/playground/{name}/voice"),
            json!({ "type": "male", "enabled": true }),
        ),
    };
    Request {
        content: name,
        is_anonymous: kind == 0 && rng.bool(),
        ..Request::new(path, body)
    }
}

/// The records of an organization, apart from its own.
fn records_of(world: &World, org: &str) -> Vec<Value> {
    let is_own = |record: &Value| {
        let texts = ["org_id", "project", "team"].map(|name| record[name].as_str());
        let mut owners = texts.into_iter().flatten();
        owners.any(|text| text.split('#').next() == Some(org))
    };
    let mut records = world.records();
    let organizations = world.tables.records(Table::ORGANIZATIONS);
    records.retain(|record| is_own(record) && !organizations.contains(record));
    records
}

/// The record of `acme`.
fn organization(world: &World) -> Option<Value> {
    let mut organizations = world.tables.records(Table::ORGANIZATIONS).into_iter();
    organizations.find(|organization| organization["org_id"] == "acme")
}

/// Disables `acme`.
pub(super) async fn disable_acme(world: &World, deployment: &Deployment) {
    let now = world.tables.time();
    let changed = change_state(deployment, &run_by(0), "acme", StateChange::Disable, now).await;
    changed.expect("it is disabled");
}

/// Disables an organization, and checks that no operation succeeds after the wait.
async fn disable(seed: u64) -> Vec<String> {
    let (world, mut rng) = World::new(seed, None).await;
    let key = world.tables.register("acme", 1);
    let create = |rng: &mut Rng| create_record("acme", rng);
    let writers = [0, 1, 2].map(|_| world.spawn_client(&key, &mut rng, 5, create));
    pause(&mut rng, 5..60).await;
    let deployment = world.deployment(&mut rng);
    disable_acme(&world, &deployment).await;
    sleep(SAFE_WAIT).await;
    let (disabled, before) = (world.now(), records_of(&world, "acme"));
    let attempts = world.finish(writers).await;
    let mut violations = world.invalid_records();
    let after = records_of(&world, "acme");
    if after.len() != before.len() {
        let new = after.iter().find(|record| !before.contains(record));
        violations.push(format!("a write landed after the wait: {new:?}"));
    }
    for attempt in attempts {
        if attempt.began >= disabled && ![403, 404].contains(&attempt.status) {
            violations.push(format!("a request was accepted: {attempt:?}"));
        }
    }
    violations
}

/// Two operators disable and enable an organization, each more than once. The last command decides.
async fn take_turns(seed: u64, weakness: Option<Weakness>) -> Vec<String> {
    let (world, mut rng) = World::new(seed, weakness).await;
    world.tables.register("acme", 1);
    let commands = [0, 1].map(|number| {
        let (world, mut rng) = (world.clone(), rng.fork());
        tokio::spawn(async move {
            let mut done = Vec::new();
            for _ in 0..4 {
                pause(&mut rng, 0..15).await;
                let change = [StateChange::Disable, StateChange::Enable][usize::from(rng.bool())];
                let (deployment, began) = (world.deployment_of_run(0, &mut rng), world.now());
                let this_run = run_by(number);
                let result =
                    change_state(&deployment, &this_run, "acme", change, world.tables.time()).await;
                done.push((began, world.now(), change, result.is_ok()));
            }
            done
        })
    });
    let mut done = join(commands).await;
    sleep(LATE_WRITES).await;
    done.sort_by_key(|(began, ..)| *began);
    let (last, others) = done.split_last().expect("a command");
    let is_alone = others.iter().all(|(_, ended, ..)| *ended < last.0);
    let record = world.tables.records(Table::ORGANIZATIONS).remove(0);
    let (.., change, succeeded) = last;
    let is_enabled = record["disabled_at"].is_null();
    if is_alone && *succeeded && is_enabled != (*change == StateChange::Enable) {
        let message = format!("the last command was reverted: {done:?} {record}");
        return vec![message];
    }
    world.invalid_records()
}

/// Two operators erase an organization and register it again. Their commands are killed at random
/// times.
async fn erase(seed: u64, weakness: Option<Weakness>) -> Vec<String> {
    let (world, mut rng) = World::new(seed, weakness).await;
    let [_, others] = [("acme", 1), ("acme2", 2)].map(|(org, number)| {
        let key = world.tables.register(org, number);
        world.spawn_client(&key, &mut rng, 5, |rng| create_record(org, rng))
    });
    let issuer = tokio::spawn(issue_keys(world.clone(), rng.fork()));
    pause(&mut rng, 10..30).await;
    let deployment = world.deployment(&mut rng);
    disable_acme(&world, &deployment).await;
    let operators =
        [0, 1].map(|number| tokio::spawn(erase_first(world.clone(), number, rng.fork())));
    let completions = join(operators).await;
    let others = world.finish([others]).await;
    issuer.await.expect("keys");
    sleep(LATE_WRITES).await;
    erase_violations(&world, !completions.is_empty(), &others)
}

fn erase_violations(world: &World, is_erased: bool, others: &[Attempt]) -> Vec<String> {
    let mut violations = world.invalid_records();
    if is_erased {
        // The operator who completed first has registered it again.
        let is_second = |record: &Value| record["request_id"] == "second";
        if !organization(world).is_some_and(|new| is_second(&new)) {
            violations.push("the new organization is lost".to_owned());
        }
        let records = records_of(world, "acme").into_iter();
        let (new, left): (Vec<_>, Vec<_>) = records.partition(is_second);
        if !left.is_empty() {
            violations.push(format!("a record is left: {left:?}"));
        }
        if new.is_empty() {
            violations.push("a record of the new organization is lost".to_owned());
        }
    }
    let stored = records_of(world, "acme2");
    for attempt in others.iter().filter(|attempt| attempt.status == 204) {
        let is_stored = |record: &Value| record.to_string().contains(&attempt.content);
        if !stored.iter().any(is_stored) {
            violations.push(format!("a record of acme2 is lost: {attempt:?}"));
        }
    }
    violations
}

/// Erases the first organization of the id. Registers the second one if this run was the first to
/// complete.
async fn erase_first(world: Arc<World>, number: usize, mut rng: Rng) -> Option<Duration> {
    pause(&mut rng, 0..60).await;
    for run in 0..4 {
        let deployment = world.deployment_of_run(run, &mut rng);
        let this_run = run_by(number);
        let wait = world.wait(run > 0 || number > 0);
        let erasure = async {
            let organization = organization::require(&deployment, "acme").await?;
            let is_first =
                organization.fields.registration_id.as_deref() == Some(fixtures::REQUEST_ID);
            anyhow::ensure!(is_first, "another run has finished");
            erase_organization(&deployment, &this_run, &organization, wait, None).await
        };
        match timeout(time_until_kill(run, &mut rng), erasure).await {
            Ok(Ok(_)) => {
                if organization(&world).is_none() {
                    // Disabled, so that every record of it is from here.
                    let second = fixtures::disabled_organization("acme");
                    let model = fixtures::model("acme", "chat", "gpt-4o");
                    for (table, mut record) in
                        [(Table::ORGANIZATIONS, second), (Table::MODELS, model)]
                    {
                        record["request_id"] = json!("second");
                        world.tables.put(table, record);
                    }
                }
                return Some(world.now());
            }
            _ => pause(&mut rng, 0..20).await,
        }
    }
    None
}

#[test]
fn no_operation_succeeds_after_an_organization_is_disabled() {
    assert_holds(disable);
}

#[test]
fn the_last_command_decides_about_the_state() {
    assert_holds(|seed| take_turns(seed, None));
    assert_breaks(take_turns, &[(Weakness::StateUnchecked, 99)]);
}

#[test]
fn an_erased_organization_leaves_nothing_and_others_lose_nothing() {
    assert_holds(|seed| erase(seed, None));
}

#[test]
fn every_part_of_an_erasure_is_needed() {
    let weaknesses = [
        (Weakness::DeletesWithoutCheck, 57),
        (Weakness::LastDeleteWithoutCondition, 336),
        (Weakness::EventualReads, 2),
        (Weakness::PrefixWithoutSeparator, 0),
        (Weakness::NoWaitInRerun, 4),
        (Weakness::KeysWithoutCheck, 195),
    ];
    assert_breaks(erase, &weaknesses);
}

#[test]
fn a_seed_replays_its_schedule() {
    let test = "simulation::organizations::a_seed_replays_its_schedule";
    simulation::assert_replays(test, 0..2, |seed| erase(seed, None));
}
