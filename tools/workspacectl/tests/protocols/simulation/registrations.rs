//! An organization is erased and registered again, while clients still use keys of the first
//! registration, which functions cache.

use std::{pin::pin, sync::Arc, time::Duration};

use fastrand::Rng;
use serde_json::{Value, json};
use test_support::fixtures;
use tokio::time::{sleep, timeout};
use workspace_management::{api_key::ApiKey, records::Table};
use workspacectl::{
    commands::{
        keys::{Expiry, KeyRequest, NewKey},
        orgs::erase::erase,
    },
    organization,
};

use super::{
    LATE_WRITES, Weakness, World, assert_breaks, assert_holds, join,
    organizations::{create_record, disable_acme},
    pause, run_by,
};

/// A key for all operations that does not expire.
fn key_request() -> KeyRequest {
    KeyRequest {
        org: "acme".to_owned(),
        label: String::new(),
        expiry: Expiry::Never,
        operations: None,
        projects: None,
    }
}

/// Issues keys. The operator's machine sleeps during some of the commands.
pub(super) async fn issue_keys(world: Arc<World>, mut rng: Rng) {
    while world.is_running() {
        let deployment = world.deployment(&mut rng);
        let run = run_by(9);
        let mut command = pin!(NewKey::issue(&deployment, &run, key_request(), None));
        let awake = Duration::from_millis(rng.u64(0..1000));
        if timeout(awake, &mut command).await.is_err() {
            pause(&mut rng, 0..160).await;
            let _ = command.await;
        }
        pause(&mut rng, 0..10).await;
    }
}

/// Registers the organization again after it was erased, and uses it with a key of its own.
async fn register_again(seed: u64, weakness: Option<Weakness>) -> Vec<String> {
    let (world, mut rng) = World::new(seed, weakness).await;
    let old = world.tables.register("acme", 1);
    let spawn_client = |key: &str, rng: &mut Rng| {
        world.spawn_client(key, rng, 5, |rng| create_record("acme", rng))
    };
    let old_clients = [0, 1].map(|_| spawn_client(&old, &mut rng));
    let issuers = [0, 1].map(|_| tokio::spawn(issue_keys(world.clone(), rng.fork())));
    pause(&mut rng, 10..30).await;
    let deployment = world.deployment(&mut rng);
    disable_acme(&world, &deployment).await;
    let organization = organization::require(&deployment, "acme").await;
    let organization = organization.expect("it is registered");
    let (run_0, wait) = (run_by(0), world.wait(true));
    let erased = erase(&deployment, &run_0, &organization, wait, None).await;
    erased.expect("it is erased");
    let gone = organization::find(&deployment, "acme").await;
    assert!(gone.expect("a response").is_none());

    let mut organization = fixtures::organization("acme");
    organization["request_id"] = json!("second");
    let registration = organization["request_id"].clone();
    world.tables.put(Table::ORGANIZATIONS, organization);
    let new = NewKey::issue(&deployment, &run_by(1), key_request(), None).await;
    let new = new.expect("a key of the second registration");
    let new_client = spawn_client(&new.key, &mut rng);
    pause(&mut rng, 60..120).await;
    let attempts = world.finish([new_client]).await;
    join(old_clients).await;
    for issuer in issuers {
        issuer.await.expect("keys");
    }
    sleep(LATE_WRITES).await;

    let mut violations = world.invalid_records();
    let is_rejected = |status| [401, 403, 404].contains(&status);
    if let Some(attempt) = attempts.iter().find(|attempt| is_rejected(attempt.status)) {
        violations.push(format!("the new key was rejected: {attempt:?}"));
    }
    let old_id = ApiKey::parse(&old).expect("a key").id;
    let records = world.records();
    if let Some(record) = records.iter().find(|record| record["created_by"] == old_id) {
        violations.push(format!("the old key wrote a record: {record}"));
    }
    let is_old = |key: &Value| key["key_id"].is_string() && key["org_request_id"] != registration;
    if let Some(key) = records.into_iter().find(is_old) {
        violations.push(format!("a key of the first registration is stored: {key}"));
    }
    violations
}

#[test]
fn no_key_outlives_the_registration_of_its_organization() {
    assert_holds(|seed| register_again(seed, None));
}

#[test]
fn erasures_must_wait_and_keys_must_belong_to_a_registration() {
    let weaknesses = [
        (Weakness::NoWaitInRerun, 3),
        (Weakness::KeysOfAnyRegistration, 10),
    ];
    assert_breaks(register_again, &weaknesses);
}
