//! `keys rotate` of keys that were replaced before, and after a kill. A failure prints its seed, which
//! repeats the delays: `KILL_SEED=...`.

use std::{
    env,
    fs::{self, File},
    io::{BufRead as _, BufReader},
    process::Stdio,
    thread,
    time::Duration,
};

use fastrand::Rng;
use serde_json::Value;

use crate::{assert_fails, server::Server};

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap()
}

/// The record of a key.
fn key(server: &Server, id: &str) -> Value {
    server.json(&["keys", "check", id])[0].clone()
}

/// The id of a run, from the first line that it prints to standard error.
fn run_id(error: &str) -> &str {
    let rest = error.strip_prefix("this is run ").expect(error);
    rest.split_once(':').unwrap().0
}

#[test]
fn a_key_is_replaced_once_unless_the_operator_insists() {
    let server = Server::start(&[]);
    let rotate = ["keys", "rotate", "acmeDemoKey1"];
    let first = server.json(&rotate)["key_id"].as_str().unwrap().to_owned();

    let error = format!("the key acmeDemoKey1 was already replaced by {first}");
    assert_fails(&server.output(&rotate), &error);
    assert_eq!(server.count("KeysTable"), 2);

    let again = server.output(&[&rotate[..], &["--again"]].concat());
    let printed = text(&again.stdout);
    let error = text(&again.stderr);
    assert!(again.status.success(), "{error}");
    assert!(
        error.contains(&format!("the key {first}, which replaced")),
        "{error}"
    );
    assert_eq!(key(&server, "acmeDemoKey1")["replaced_by"], printed[4..16]);
    assert_eq!(key(&server, &first)["state"], "active");
}

/// Functions may have cached a key that has no overlap.
#[test]
fn a_rotation_says_until_when_the_old_key_may_be_accepted() {
    let server = Server::start(&[]);
    for (overlap, is_cached) in [("0s", true), ("600s", true), ("7d", false)] {
        let id = server.json(&["keys", "create", "--org", "acme"])["key_id"].clone();
        let id = id.as_str().unwrap();
        let output = server.output(&["keys", "rotate", id, "--overlap", overlap]);
        let error = text(&output.stderr);
        let end = key(&server, id)["expires_at"].clone();
        let message = format!("the key {id} is valid until {}", end.as_str().unwrap());
        assert!(error.contains(&message), "{error}");
        assert_eq!(error.contains("above 60"), is_cached, "{error}");
        let until = error.split("accept it until ").nth(1);
        let until = until.map(|rest| rest.split(',').next().unwrap());
        // With 600 seconds, the end of the overlap is later than the default cache time.
        assert_eq!(until == end.as_str(), overlap == "600s", "{error}");
    }
}

/// A key in its overlap may have leaked too.
#[test]
fn a_rotation_of_all_keys_shortens_the_overlap_of_replaced_ones() {
    let server = Server::start(&["--key-cache", "0"]);
    let rotate_all = [
        "keys", "rotate", "--all", "--org", "acme", "--yes", "--json",
    ];
    server.run(&["keys", "rotate", "acmeDemoKey1", "--overlap", "7d"]);

    let output = server.output(&[&rotate_all[..], &["--overlap", "0s"]].concat());

    let error = text(&output.stderr);
    assert!(
        error.contains("the key acmeDemoKey1 is valid until"),
        "{error}"
    );
    assert!(error.contains("replaced 1 key of acme"), "{error}");
    let new: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(new["request_id"], run_id(error));
    let active = server.records(&["keys", "list", "--state", "active"]);
    assert_eq!(active.len(), 1, "{active:?}");
    assert_eq!(active[0]["key_id"], new["key_id"]);
}

#[test]
fn only_a_run_of_the_organization_can_be_continued() {
    let server = Server::start(&[]);
    let rotate = ["keys", "rotate", "--all", "--org", "acme", "--yes"];
    let output = server.output(&rotate);
    let run = run_id(text(&output.stderr));

    let continued = server.output(&[&rotate[..], &["--continue", run]].concat());
    assert!(
        continued.status.success() && continued.stdout.is_empty(),
        "{continued:?}"
    );
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
