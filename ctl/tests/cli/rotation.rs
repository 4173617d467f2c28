//! `keys rotate`, also of keys that were replaced before, and after a kill. A failure prints its
//! seed, which repeats the delays: `KILL_SEED=...`.

use std::{
    collections::BTreeSet,
    env,
    fs::{self, File},
    io::{BufRead as _, BufReader},
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use fastrand::Rng;
use serde_json::Value;

use crate::{
    assert_fails,
    keys::{check, create},
    server::Server,
    text, words,
};

/// The id of a run, from the first line that it prints to standard error.
fn run_id(error: &str) -> &str {
    let rest = error.strip_prefix("this is run ").expect(error);
    rest.split_once(':').unwrap().0
}

#[test]
fn a_rotated_key_stays_valid_until_the_overlap_ends() {
    let server = Server::start(&[]);
    let old_key = create(&server, "--label ci --allow create_data_store");
    let id = &old_key[4..16];
    let old = check(&server, id);

    let new = server.json(&["keys", "rotate", id, "--overlap", "2s"]);

    for name in ["org_id", "label", "operations"] {
        assert_eq!(new[name], old[name], "{name}");
    }
    let new_key = new["key"].as_str().unwrap();
    // The new key can repeat what the old one has sent.
    for key in [&old_key, new_key] {
        assert_eq!(server.create_data_store("acme", key, "Papers"), 204);
        assert_eq!(server.count("DataStoresTable"), 1);
    }
    let rotated = Instant::now();
    while check(&server, id)["state"] == "active" {
        assert!(rotated.elapsed() < Duration::from_secs(10), "still active");
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(check(&server, id)["state"], "expired");
    assert_eq!(check(&server, &new_key[4..16])["state"], "active");
}

/// The old key never expires later than before, and the new ones are valid for as long as it was.
#[test]
fn a_key_is_replaced_once_unless_the_operator_insists() {
    let server = Server::start(&[]);
    for expires in ["never", "30d", "1h"] {
        let key = create(&server, &format!("--expires {expires}"));
        let (id, old) = (&key[4..16], check(&server, &key[4..16]));
        let rotate = ["keys", "rotate", id];

        let first = server.json(&rotate);
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
}

/// Functions may have cached a key that has no overlap.
#[test]
fn a_rotation_says_until_when_the_old_key_may_be_accepted() {
    let server = Server::start(&[]);
    for (overlap, is_cached) in [("0s", true), ("600s", true), ("7d", false)] {
        let key = create(&server, "");
        let id = &key[4..16];
        let output = server.output(&["keys", "rotate", id, "--overlap", overlap]);
        let error = text(&output.stderr);
        let end = check(&server, id)["expires_at"].clone();
        let message = format!("the key {id} is valid until {}", end.as_str().unwrap());
        assert!(error.contains(&message), "{error}");
        assert_eq!(error.contains("above 60"), is_cached, "{error}");
        let until = error.split("accept it until ").nth(1);
        let until = until.map(|rest| rest.split(',').next().unwrap());
        // With 600 seconds, the end of the overlap is later than the default cache time.
        assert_eq!(until == end.as_str(), overlap == "600s", "{error}");
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

#[test]
fn only_a_run_of_the_organization_can_be_continued() {
    let server = Server::start(&[]);
    let rotate = words("keys rotate --all --org acme --yes");
    let output = server.output(&rotate);
    let run = run_id(text(&output.stderr));

    let continued = server.run(&[&rotate[..], &["--continue", run]].concat());
    assert_eq!(continued, "");
    let unknown = server.output(&[&rotate[..], &["--continue", "0000000000000000"]].concat());
    assert_fails(
        &unknown,
        "no key of acme was created by a run 0000000000000000",
    );
    assert_eq!(server.count("KeysTable"), 2);

    // Without it, all are replaced again.
    let again = server.run(&rotate);
    assert_eq!(again.lines().count(), 1, "{again}");
}

/// After a kill at any moment and a run that continues it, each valid key is an old one that expires,
/// or was printed, or is named.
#[test]
fn a_killed_rotation_of_all_keys_leaves_no_unknown_key() {
    let seed = env::var("KILL_SEED");
    let seed = seed.map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("KILL_SEED={seed}");
    let mut rng = Rng::with_seed(seed);
    let server = Server::start(&["--key-cache", "0"]);
    let folder = tempfile::tempdir().unwrap();
    let (mut interrupted, mut named) = (0, 0);
    for kill in 0..if env::var("STRESS").is_ok() { 100 } else { 10 } {
        let org = format!("org-{kill}");
        server.run(&["orgs", "create", &org]);
        for _ in 0..5 {
            server.run(&["keys", "create", "--org", &org]);
        }
        let rotate = ["keys", "rotate", "--all", "--org", &org, "--yes", "--json"];
        let file = folder.path().join(&org);
        let mut process = server
            .command(&rotate)
            .stdout(File::create(&file).unwrap())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut error = BufReader::new(process.stderr.take().unwrap());
        error.read_line(&mut line).unwrap();
        thread::sleep(Duration::from_micros(rng.u64(0..60_000)));
        process.kill().unwrap();
        process.wait().unwrap();

        let rerun = server.output(&[&rotate[..], &["--continue", run_id(&line)]].concat());

        let error = text(&rerun.stderr);
        let printed = fs::read_to_string(file).unwrap() + text(&rerun.stdout);
        if error.contains("no key of") {
            assert_eq!((rerun.status.code(), &*printed), (Some(1), ""), "{error}");
            continue;
        }
        let is_named = error.contains("may not have printed");
        assert_eq!(rerun.status.code(), Some(is_named.into()), "{error}");
        let mut unprinted = 0;
        for key in server.records(&["keys", "list", "--org", &org, "--state", "active"]) {
            let id = key["key_id"].as_str().unwrap();
            if key["replaces"].is_null() {
                assert!(key["replaced_at"].is_string(), "{kill}: {key}");
            } else if !printed.contains(&format!("wsk_{id}_")) {
                let last = error.lines().last().unwrap();
                assert!(last.contains(id), "{kill}: {id} in {error}");
                unprinted += 1;
            }
        }
        assert!(unprinted <= 1, "{kill}: {error}");
        interrupted += usize::from(!rerun.stdout.is_empty());
        named += unprinted;
    }
    println!("{interrupted} interrupted runs, {named} keys that were not printed");
    assert!(interrupted > 0);
}
