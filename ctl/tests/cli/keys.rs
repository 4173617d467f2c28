//! `keys`.

use std::{
    fs::OpenOptions,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{assert_fails, server::Server, workspacectl};

/// Creates a key of `acme` with this label.
fn create(server: &Server, label: &str, arguments: &[&str]) -> String {
    let create = ["keys", "create", "--org", "acme", "--label", label];
    let key = server.run(&[&create, arguments].concat());
    key.trim_end().to_owned()
}

/// The records of the keys with this label.
fn labelled(server: &Server, label: &str) -> Vec<Value> {
    let mut keys = server.records(&["keys", "list"]);
    keys.retain(|key| key["label"] == label);
    keys
}

/// The record of the key with this id.
fn by_id(server: &Server, id: &Value) -> Value {
    let keys = server.records(&["keys", "list"]);
    keys.into_iter().find(|key| key["key_id"] == *id).unwrap()
}

#[test]
fn a_created_key_works_for_its_organization_until_it_is_revoked() {
    let server = Server::start(&[]);
    server.run(&["orgs", "create", "globex"]);

    let create = ["keys", "create", "--org", "globex", "--label", "ci"];
    let key = server.run(&[&create[..], &["--expires", "90d"]].concat());
    let key = key.trim_end();

    assert_eq!(server.create_data_store("globex", key, "Papers"), 204);
    assert_eq!(server.create_data_store("acme", key, "Papers"), 403);
    let keys = server.records(&["keys", "list", "--org", "globex"]);
    assert_eq!(keys.len(), 1);
    assert_eq!(keys[0]["state"], "active");
    assert_eq!(keys[0]["label"], "ci");
    assert_eq!(keys[0]["last_four"], key[key.len() - 4..]);
    assert!(keys[0]["expires_at"].is_string(), "{keys:?}");

    let id = keys[0]["key_id"].as_str().unwrap();
    server.run(&["keys", "revoke", id]);
    let revoked = by_id(&server, &keys[0]["key_id"]);
    assert_eq!(revoked["state"], "revoked");
    server.run(&["keys", "revoke", id]);
    assert_eq!(by_id(&server, &keys[0]["key_id"]), revoked);
}

#[test]
fn a_list_of_keys_contains_neither_secrets_nor_hashes() {
    let server = Server::start(&[]);
    let key = create(&server, "ci", &[]);

    let list = server.run(&["keys", "list", "--json"]);

    let secret = &key[17..];
    assert!(!list.contains(secret) && !list.contains("sha256"), "{list}");
}

#[test]
fn a_key_may_call_only_its_operations() {
    let server = Server::start(&[]);
    let key = create(&server, "", &["--allow", "create_team,set_bot_voice"]);
    assert_eq!(server.create_data_store("acme", &key, "Papers"), 403);

    let unknown = server.output(&["keys", "create", "--org", "acme", "--allow", "delete_team"]);

    let error = String::from_utf8(unknown.stderr).unwrap();
    assert_eq!(unknown.status.code(), Some(2), "{error}");
    assert!(error.contains("create_logging_instance"), "{error}");
}

#[test]
fn a_key_that_cannot_be_printed_is_revoked() {
    let server = Server::start(&[]);
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (reader, closed) = std::io::pipe().unwrap();
    drop(reader);

    for stdout in [Stdio::from(full), Stdio::from(closed)] {
        let output = workspacectl(&["keys", "create", "--org", "acme", "--label", "lost"])
            .env("AWS_ENDPOINT_URL_DYNAMODB", &server.dynamodb)
            .stdout(stdout)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
    }

    let states: Vec<_> = labelled(&server, "lost")
        .into_iter()
        .map(|key| key["state"].clone())
        .collect();
    assert_eq!(states, ["revoked", "revoked"]);
}

#[test]
fn a_rotated_key_stays_valid_until_the_overlap_ends() {
    let server = Server::start(&[]);
    let options = ["--expires", "90d", "--allow", "create_data_store"];
    let old_key = create(&server, "ci", &options);
    let old = labelled(&server, "ci").remove(0);
    let id = old["key_id"].as_str().unwrap();

    let new = server.json(&["keys", "rotate", id, "--overlap", "2s"]);

    for name in ["org_id", "label", "operations"] {
        assert_eq!(new[name], old[name], "{name}");
    }
    let lifetime_in_days = |key: &Value| {
        let time = |name: &str| humantime::parse_rfc3339(key[name].as_str().unwrap()).unwrap();
        let lifetime = time("expires_at").duration_since(time("created_at"));
        lifetime.unwrap().as_secs() / 86_400
    };
    assert_eq!(lifetime_in_days(&new), lifetime_in_days(&old));
    let new_key = new["key"].as_str().unwrap();
    // The new key can repeat what the old one has sent.
    assert_eq!(server.create_data_store("acme", &old_key, "Papers"), 204);
    let records = server.records(&["list", "data-stores"]);
    assert_eq!(server.create_data_store("acme", new_key, "Papers"), 204);
    assert_eq!(server.records(&["list", "data-stores"]), records);

    let rotated = Instant::now();
    while by_id(&server, &old["key_id"])["state"] == "active" {
        assert!(rotated.elapsed() < Duration::from_secs(10), "still active");
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(by_id(&server, &old["key_id"])["state"], "expired");
    assert_eq!(by_id(&server, &new["key_id"])["state"], "active");
    let again = server.output(&["keys", "rotate", id]);
    assert_fails(&again, "is revoked or expired: create a new one");
}

#[test]
fn a_rotation_never_extends_the_life_of_the_old_key() {
    let server = Server::start(&[]);
    create(&server, "short", &["--expires", "1h"]);
    let old = labelled(&server, "short").remove(0);

    let id = old["key_id"].as_str().unwrap();
    server.run(&["keys", "rotate", id, "--overlap", "7d"]);

    let keys = labelled(&server, "short");
    assert_eq!(keys.len(), 2);
    assert!(keys.contains(&old), "{keys:?}");
}

#[test]
fn errors_say_what_to_do_next() {
    let server = Server::start(&[]);
    let rows: [(&[&str], &str); 4] = [
        (
            &["keys", "create", "--org", "globex"],
            "run `workspacectl orgs create globex` first",
        ),
        (
            &["keys", "revoke", "unknown"],
            "there is no key unknown: run `workspacectl keys list`",
        ),
        (
            &["keys", "rotate", "unknown"],
            "there is no key unknown: run `workspacectl keys list`",
        ),
        (
            &["keys", "create", "--org", "acme", "--expires", "9000y"],
            "use a shorter duration",
        ),
    ];
    for (arguments, message) in rows {
        assert_fails(&server.output(arguments), message);
    }
    let malformed = server.output(&["keys", "create", "--org", "acme", "--expires", "soon"]);
    let error = String::from_utf8(malformed.stderr).unwrap();
    assert_eq!(malformed.status.code(), Some(2), "{error}");
    assert!(error.contains("--expires"), "{error}");
}
