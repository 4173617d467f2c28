//! Operators disable, enable and erase an organization while clients send requests for it.

use std::{sync::Arc, time::Duration};

use fastrand::Rng;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use workspace_local::fixtures;
use workspace_management::store::Table;
use workspacectl::{
    commands::{
        keys::{NewKey, insert},
        orgs::{erase::Erasure, record, state::change},
    },
    wait::{SAFE_WAIT, Wait},
};

use super::{Attempt, Weakness, World, assert_breaks, assert_holds, operator, pause};

/// Sends requests for an organization.
pub(super) async fn write_records(
    world: Arc<World>,
    org: &'static str,
    key: String,
    mut rng: Rng,
) -> Vec<Attempt> {
    let mut attempts = Vec::new();
    while world.is_running() {
        let name = format!("n{}", rng.u64(..));
        let (path, body) = match rng.u8(0..3) {
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
        let is_anonymous = path.ends_with("dataStores/create") && rng.bool();
        let key = if is_anonymous { "" } else { &key };
        let attempt = world.send(&mut rng, &path, key, &body).await;
        attempts.push(Attempt {
            content: name,
            ..attempt
        });
        pause(&mut rng, 0..5).await;
    }
    attempts
}

/// The records of an organization, apart from its own.
fn records_of(world: &World, org: &str) -> Vec<Value> {
    let tables = Table::ALL
        .iter()
        .filter(|table| **table != Table::ORGANIZATIONS);
    let records = tables.flat_map(|table| world.tables.records(*table));
    let is_own = |record: &Value| {
        let texts = ["org_id", "project", "team"].map(|name| record[name].as_str());
        let mut owners = texts.into_iter().flatten();
        owners.any(|text| text.split('#').next() == Some(org))
    };
    records.filter(is_own).collect()
}

/// Disables an organization, and checks that no operation succeeds after the wait.
async fn disable(seed: u64, weakness: Option<Weakness>) -> Vec<String> {
    let world = World::new(seed, weakness).await;
    let mut rng = world.rng.clone();
    let key = world.register("acme", 1);
    let writers = [0, 1, 2].map(|_| {
        tokio::spawn(write_records(
            world.clone(),
            "acme",
            key.clone(),
            rng.fork(),
        ))
    });
    pause(&mut rng, 5..60).await;
    let deployment = world.deployment(&mut rng);
    let changed = change(&deployment, &operator(0), "acme", "disabled").await;
    changed.expect("it is disabled");
    sleep(SAFE_WAIT).await;
    let (disabled, before) = (world.now(), records_of(&world, "acme"));
    world.finish().await;
    let mut attempts = Vec::new();
    for writer in writers {
        attempts.extend(writer.await.expect("attempts"));
    }
    sleep(Duration::from_secs(60)).await; // for the last late writes
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
async fn change_state(seed: u64, weakness: Option<Weakness>) -> Vec<String> {
    let world = World::new(seed, weakness).await;
    let mut rng = world.rng.clone();
    world.register("acme", 1);
    let commands = [0, 1].map(|number| {
        let (world, mut rng) = (world.clone(), rng.fork());
        tokio::spawn(async move {
            let mut done = Vec::new();
            for _ in 0..4 {
                pause(&mut rng, 0..15).await;
                let wanted = if rng.bool() { "enabled" } else { "disabled" };
                let (deployment, began) = (world.deployment(&mut rng), world.now());
                let result = change(&deployment, &operator(number), "acme", wanted).await;
                done.push((began, world.now(), wanted, result.is_ok()));
            }
            done
        })
    });
    let mut done = Vec::new();
    for command in commands {
        done.extend(command.await.expect("commands"));
    }
    sleep(Duration::from_secs(60)).await; // for the last late writes
    done.sort();
    let last = done
        .iter()
        .max_by_key(|(began, ..)| began)
        .expect("a command");
    let others = done.iter().filter(|other| *other != last);
    let is_alone = others.clone().all(|(_, ended, ..)| *ended < last.0);
    let organization = world.tables.records(Table::ORGANIZATIONS).remove(0);
    let (.., wanted, succeeded) = last;
    if is_alone && *succeeded && record::state(&organization) != *wanted {
        return vec![format!(
            "the last command was reverted: {done:?} {organization}"
        )];
    }
    world.invalid_records()
}

/// Two operators erase an organization, killed at random times, and register it again.
async fn erase(seed: u64, weakness: Option<Weakness>) -> Vec<String> {
    let world = World::new(seed, weakness).await;
    let mut rng = world.rng.clone();
    let keys = [world.register("acme", 1), world.register("acme2", 2)];
    let writers = [("acme", &keys[0]), ("acme2", &keys[1])]
        .map(|(org, key)| tokio::spawn(write_records(world.clone(), org, key.clone(), rng.fork())));
    let issuer = {
        let (world, mut rng) = (world.clone(), rng.fork());
        tokio::spawn(async move {
            while world.is_running() {
                let deployment = world.deployment(&mut rng);
                let mut new = NewKey::generate("acme", "late", None, None).expect("a key");
                let _ = insert(&deployment, &mut new, &operator(9)).await;
                pause(&mut rng, 0..20).await;
            }
        })
    };
    pause(&mut rng, 10..30).await;
    let deployment = world.deployment(&mut rng);
    let changed = change(&deployment, &operator(0), "acme", "disabled").await;
    changed.expect("it is disabled");
    let first = record::find(&deployment, "acme").await.expect("a record");
    let operators = [0, 1].map(|number| {
        tokio::spawn(erase_first(
            world.clone(),
            number,
            rng.fork(),
            first["request_id"].clone(),
        ))
    });
    let mut completions = Vec::new();
    for operator in operators {
        completions.extend(operator.await.expect("a time"));
    }
    world.finish().await;
    let [_, others] = writers;
    let others = others.await.expect("attempts");
    issuer.await.expect("keys");
    sleep(Duration::from_secs(60)).await; // for the last late writes
    erase_violations(&world, !completions.is_empty(), &others)
}

fn erase_violations(world: &World, is_erased: bool, others: &[Attempt]) -> Vec<String> {
    let mut violations = world.invalid_records();
    let is_registered_again = world
        .tables
        .records(Table::ORGANIZATIONS)
        .into_iter()
        .find(|organization| organization["org_id"] == "acme");
    if is_erased {
        // The operator who completed first has registered it again.
        if is_registered_again.is_none_or(|new| new["request_id"] != "second") {
            violations.push("the new organization is lost".to_owned());
        }
        let left = records_of(world, "acme");
        let left: Vec<_> = left
            .iter()
            .filter(|record| record["request_id"] != "second")
            .collect();
        if !left.is_empty() {
            violations.push(format!("a record is left: {left:?}"));
        }
        let has_new = records_of(world, "acme")
            .iter()
            .any(|record| record["request_id"] == "second");
        if !has_new {
            violations.push("a record of the new organization is lost".to_owned());
        }
    }
    let stored = records_of(world, "acme2");
    for attempt in others.iter().filter(|attempt| attempt.status == 204) {
        let is_stored = |record: &Value| record.to_string().contains(&attempt.content);
        if !stored.iter().any(is_stored) {
            violations.push(format!(
                "a record of the other organization is lost: {attempt:?}"
            ));
        }
    }
    violations
}

/// Erases the first organization of the id. Registers the second one if this run was the first to
/// complete.
async fn erase_first(
    world: Arc<World>,
    number: usize,
    mut rng: Rng,
    first: Value,
) -> Option<Duration> {
    pause(&mut rng, 0..60).await;
    for run in 0..4 {
        let deployment = world.deployment(&mut rng);
        let operator = operator(number);
        let is_rerun = run > 0 || number > 0;
        let wait = match world.weakness {
            Some(Weakness::NoWaitInRerun) if is_rerun => 0,
            _ => SAFE_WAIT.as_secs(),
        };
        let erasure = async {
            let organization = record::get(&deployment, "acme").await?;
            let organization = organization.filter(|found| found["request_id"] == first);
            anyhow::ensure!(organization.is_some(), "another run has finished");
            let erasure = Erasure {
                deployment: &deployment,
                operator: &operator,
                org: "acme",
            };
            erasure
                .run(organization.as_ref(), Wait::seconds(wait), None)
                .await
        };
        let time = if run < 3 && rng.bool() {
            rng.u64(0..140)
        } else {
            600
        };
        match timeout(Duration::from_secs(time), erasure).await {
            Ok(Ok(_)) => {
                let organizations = world.tables.records(Table::ORGANIZATIONS);
                if organizations
                    .iter()
                    .all(|organization| organization["org_id"] != "acme")
                {
                    // Disabled, so that every record of it is from here.
                    for (table, mut record) in [
                        (
                            Table::ORGANIZATIONS,
                            fixtures::disabled_organization("acme"),
                        ),
                        (Table::MODELS, fixtures::model("acme", "chat", "gpt-4o")),
                    ] {
                        record["request_id"] = json!("second");
                        world.tables.put(table, record);
                    }
                }
                return Some(world.now());
            }
            Ok(Err(_)) => return None,
            Err(_) => pause(&mut rng, 0..20).await,
        }
    }
    None
}

#[test]
fn no_operation_succeeds_after_an_organization_is_disabled() {
    assert_holds(|seed| disable(seed, None));
}

#[test]
fn the_last_command_decides_about_the_state() {
    assert_holds(|seed| change_state(seed, None));
    let weakness = Weakness::StateWithoutId;
    assert_breaks(weakness, 40, |seed| change_state(seed, Some(weakness)));
}

#[test]
fn an_erased_organization_leaves_nothing_and_others_lose_nothing() {
    assert_holds(|seed| erase(seed, None));
}

#[test]
fn every_part_of_an_erasure_is_needed() {
    for (weakness, seed) in [
        (Weakness::DeletesWithoutCheck, 0),
        (Weakness::LastDeleteWithoutCondition, 0),
        (Weakness::EventualReads, 0),
        (Weakness::PrefixWithoutSeparator, 0),
        (Weakness::NoWaitInRerun, 0),
        (Weakness::KeysWithoutCheck, 0),
    ] {
        assert_breaks(weakness, seed, |seed| erase(seed, Some(weakness)));
    }
}
