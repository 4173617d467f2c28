//! `keys rotate`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    assert_fails,
    keys::{check, create, with_input},
    server::Server,
    text, words,
};

/// The old key never expires later than before, and the new ones are valid for as long as it was.
#[test]
fn a_key_is_replaced_again_once_its_replacement_is_revoked() {
    let server = Server::start(&["--key-cache", "0"]);
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
        server.run(&["keys", "revoke", first_id]);
        let second = server.json(&rotate);

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

#[test]
fn a_key_in_a_list_that_was_replaced_is_named_and_skipped() {
    let server = Server::start(&[]);
    let [first, replaced, last] = [""; 3].map(|options| create(&server, options));
    server.run(&["keys", "rotate", &replaced]);
    let input = [&first[4..16], &replaced[4..16], &last[4..16]].join("\n");

    let output = with_input(&server, "keys rotate - --json", &input);

    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let error = text(&output.stderr);
    let refusal = format!("the key {} was already replaced by", &replaced[4..16]);
    assert!(error.contains(&refusal), "{error}");
    let lines = text(&output.stdout).lines();
    let new: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let replaces: Vec<_> = new.iter().map(|key| &key["replaces"]).collect();
    assert_eq!(replaces, [&json!(first[4..16]), &json!(last[4..16])]);
}

#[test]
fn a_rotation_says_until_when_the_old_key_is_valid() {
    let server = Server::start(&[]);
    for seconds in [0, 600, 604_800] {
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
    }
    let overlap = server.output(&words("keys rotate acmeDemoKey1 --overlap 31d"));
    crate::assert_usage_error(&overlap, "at most 30 days");
}
