//! `keys rotate`, also of keys that were replaced before, and after a kill.

use std::{collections::BTreeSet, time::Duration};

use serde_json::Value;
use workspace_local::fixtures::key_record;
use workspace_management::{api_key::ApiKey, store::Table};

use crate::{
    assert_fails,
    keys::{check, create},
    network::Network,
    server::Server,
    text, words,
};

/// The id of a run, from the first line that it prints to standard error.
fn run_id(error: &str) -> &str {
    let rest = error.strip_prefix("this is run ").expect(error);
    rest.split_once(':').unwrap().0
}

/// The old key never expires later than before, and the new ones are valid for as long as it was.
#[test]
fn a_key_is_replaced_once_unless_the_operator_insists() {
    let server = Server::start(&[]);
    for expires in ["never", "30d", "1h"] {
        let options = format!("--label ci --allow create_data_store --expires {expires}");
        let key = create(&server, &options);
        let (id, old) = (&key[4..16], check(&server, &key[4..16]));
        let rotate = ["keys", "rotate", id];

        let first = server.json(&rotate);
        for name in ["org_id", "label", "operations"] {
            assert_eq!(first[name], old[name], "{name}");
        }
        // The new key can repeat what the old one has sent.
        for key in [&key, first["key"].as_str().unwrap()] {
            assert_eq!(server.create_data_store("acme", key, "Papers"), 204);
        }
        let first_id = first["key_id"].as_str().unwrap();
        let error = format!("the key {id} was already replaced by {first_id}");
        assert_fails(&server.output(&rotate), &error);
        let again = server.output(&[&rotate[..], &["--again", "--json"]].concat());

        let error = text(&again.stderr);
        assert!(again.status.success(), "{error}");
        let message = format!("the key {first_id}, which replaced");
        assert!(error.contains(&message), "{error}");
        assert_eq!(check(&server, first_id)["state"], "active");
        let second: Value = serde_json::from_slice(&again.stdout).unwrap();
        let date = |key: &Value| key["expires_at"].as_str().map(|at| at[..10].to_owned());
        assert_eq!(date(&first), date(&old), "{expires}");
        assert_eq!(date(&second), date(&old), "{expires}");
        let replaced = check(&server, id);
        assert_eq!(replaced["state"], "active");
        assert_eq!(replaced["replaced_by"], second["key_id"]);
        // The overlap is a day.
        let is_unchanged = replaced["expires_at"] == old["expires_at"];
        assert_eq!(is_unchanged, expires == "1h", "{replaced}");
    }
    assert_eq!(server.count("KeysTable"), 1 + 3 * 3);
    assert_eq!(server.count("DataStoresTable"), 1);
}

/// Functions may have cached a key that has no overlap.
#[test]
fn a_rotation_says_until_when_the_old_key_may_be_accepted() {
    let server = Server::start(&[]);
    for (seconds, is_cached) in [(0, true), (600, true), (604_800, false)] {
        let key = create(&server, "");
        let id = &key[4..16];
        let overlap = format!("{seconds}s");
        let output = server.output(&["keys", "rotate", id, "--overlap", &overlap]);
        let error = text(&output.stderr);
        let end = check(&server, id)["expires_at"].clone();
        let message = format!("the key {id} is valid until {}", end.as_str().unwrap());
        assert!(error.contains(&message), "{error}");
        let time = humantime::parse_rfc3339(end.as_str().unwrap()).unwrap();
        let rotated = time - Duration::from_secs(seconds);
        assert!(
            rotated.elapsed().unwrap() < Duration::from_secs(60),
            "{error}"
        );
        assert_eq!(error.contains("above 60"), is_cached, "{error}");
        let until = error.split("accept it until ").nth(1);
        let until = until.map(|rest| rest.split(',').next().unwrap());
        // With 600 seconds, the end of the overlap is later than the default cache time.
        assert_eq!(until == end.as_str(), seconds == 600, "{error}");
    }
}

/// A key in its overlap may have leaked too, so its overlap ends earlier.
#[test]
fn all_keys_of_an_organization_are_rotated_once() {
    let server = Server::start(&["--key-cache", "0"]);
    let old = create(&server, "");
    let replacement = server.run(&words("keys rotate acmeDemoKey1 --overlap 7d"));
    let ids = |keys: &[Value], name: &str| -> BTreeSet<String> {
        let ids = keys
            .iter()
            .map(|key| key[name].as_str().unwrap().to_owned());
        ids.collect()
    };

    let rotate = "keys rotate --all --org acme --yes --json --overlap 0s";
    let output = server.output(&words(rotate));

    let error = text(&output.stderr);
    assert!(error.contains("replaced 2 keys of acme"), "{error}");
    let lines = text(&output.stdout).lines();
    let new: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for key in &new {
        assert_eq!(key["request_id"], run_id(error));
        let key = key["key"].as_str().unwrap();
        assert_eq!(server.create_data_store("acme", key, "Papers"), 204);
    }
    for key in [&server.key, &old, replacement.trim()] {
        assert_eq!(server.create_data_store("acme", key, "Papers"), 401);
    }
    let replaced = [&old, &replacement].map(|key| key[4..16].to_owned());
    assert_eq!(ids(&new, "replaces"), replaced.into());
    let active = server.records(&words("keys list --state active"));
    assert_eq!(ids(&active, "key_id"), ids(&new, "key_id"));
}

/// After a run that continues it, each key is an old one that expires, or was printed, or is named.
#[test]
fn a_rotation_of_all_keys_that_is_killed_at_any_request_leaves_no_unknown_key() {
    let (mut request, mut named) = (0, 0);
    let kill = |request| [false, true].map(|is_handled| kill_rotation(request, is_handled));
    while let [Some(not_handled), Some(handled)] = kill(request) {
        named += not_handled + handled;
        request += 1;
    }
    assert!(
        request > 5 && named > 0,
        "{request} requests, {named} named keys"
    );
}

/// Kills a rotation at a request, and continues it. Returns how many keys were not printed, but named,
/// or `None` if there were fewer requests.
fn kill_rotation(at: usize, is_handled: bool) -> Option<usize> {
    let network = Network::with_team(&[]);
    for id in [1, 2] {
        let key = ApiKey::generate([id; 8], [[7; 16]; 2]);
        network
            .dynamodb
            .put(Table::KEYS, key_record(&key, "acme", ""));
    }
    let rotate = "keys rotate --all --org acme --yes --json";
    let first = network.kill_at(at, is_handled, rotate);
    let run = run_id(text(&first.stderr));
    let rerun = network.run(&format!("{rotate} --continue {run}"), |_, _| true);

    let is_killed = !first.status.success();
    let error = text(&rerun.stderr);
    let printed = [first.stdout.clone(), rerun.stdout].concat();
    let printed = text(&printed);
    if error.contains("no key of acme was created by a run") {
        assert_eq!((rerun.status.code(), printed), (Some(1), ""), "{error}");
        return Some(0);
    }
    let is_named = error.contains("may not have printed");
    assert_eq!(rerun.status.code(), Some(is_named.into()), "{error}");
    let mut unprinted = 0;
    for key in network.dynamodb.records(Table::KEYS) {
        let id = key["key_id"].as_str().unwrap();
        if key["replaces"].is_null() {
            assert!(key["replaced_at"].is_string(), "{at}: {key}");
        } else if !printed.contains(&format!("wsk_{id}_")) {
            let last = error.lines().last().unwrap();
            assert!(last.contains(id), "{at}: {id} in {error}");
            unprinted += 1;
        }
    }
    assert!(unprinted <= 1, "{at}: {error}");
    is_killed.then_some(unprinted)
}
