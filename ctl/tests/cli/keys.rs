//! `keys`.

use std::{
    collections::BTreeSet,
    fs::OpenOptions,
    io::Write as _,
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{assert_exits_with, assert_fails, assert_usage_error, server::Server};

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

/// Other programs can write attributes of every type.
#[test]
fn every_type_of_attribute_has_a_json_value() {
    let server = Server::start(&[]);
    let types = [
        ("text", json!({ "S": "a" }), json!("a")),
        ("integer", json!({ "N": "7" }), json!(7)),
        ("decimal", json!({ "N": "1.5" }), json!(1.5)),
        ("flag", json!({ "BOOL": true }), json!(true)),
        ("null", json!({ "NULL": true }), json!(null)),
        ("bytes", json!({ "B": "YWI=" }), json!("YWI=")),
        ("byte_set", json!({ "BS": ["YWI="] }), json!(["YWI="])),
        ("text_set", json!({ "SS": ["a"] }), json!(["a"])),
        ("number_set", json!({ "NS": ["1"] }), json!(["1"])),
        ("list", json!({ "L": [{ "S": "a" }] }), json!(["a"])),
        (
            "map",
            json!({ "M": { "a": { "BOOL": false } } }),
            json!({ "a": false }),
        ),
    ];
    let mut item = json!({ "key_id": { "S": "anyAttribute" } });
    for (name, value, _) in &types {
        item[*name] = value.clone();
    }
    let request = json!({ "TableName": "KeysTable", "Item": item });
    server.dynamodb("PutItem", &request);
    let record = by_id(&server, &json!("anyAttribute"));
    for (name, _, expected) in types {
        assert_eq!(record[name], expected, "{name}");
    }
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
    let list = server.run(&["keys", "list"]);
    // It has no label, and was neither revoked nor replaced.
    let is_listed =
        |line: &str| line.contains(" - ") && line.ends_with("create_team,set_bot_voice");
    assert!(list.lines().any(is_listed), "{list}");

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
        let output = server
            .command(&["keys", "create", "--org", "acme", "--label", "lost"])
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

/// Rust opens `/dev/null` instead of a standard output that is closed.
#[test]
fn no_key_is_created_if_nothing_can_be_printed() {
    let server = Server::start(&[]);
    for command in ["create --org acme --label lost", "rotate acmeDemoKey1"] {
        for redirection in [">&-", ">/dev/null"] {
            let script = format!("exec \"$0\" keys {command} {redirection}");
            let output = Command::new("/bin/sh")
                .args(["-c", &script, env!("CARGO_BIN_EXE_workspacectl")])
                .env("AWS_ENDPOINT_URL_DYNAMODB", &server.dynamodb)
                .output();
            assert_fails(&output.unwrap(), "standard output is closed or /dev/null");
        }
    }
    assert_eq!(server.count("KeysTable"), 1);
}

/// Other programs can write any text to records.
#[test]
fn the_text_of_a_record_does_not_control_the_terminal() {
    let server = Server::start(&[]);
    let label = "a\u{202e}b";
    let create = ["keys", "create", "--org", "acme", "--label", label];
    let key = server.run(&[&create[..], &["--json"]].concat());
    assert!(key.contains(r"a\u202eb") && !key.contains(label), "{key}");

    let operations = json!({ ":operations": { "L": [{ "S": "\u{1b}[2J" }] } });
    server.dynamodb("UpdateItem", &json!({
        "TableName": "KeysTable", "Key": { "key_id": { "S": "acmeDemoKey1" } },
        "UpdateExpression": "SET operations = :operations", "ExpressionAttributeValues": operations,
    }));
    let output = server.output(&["keys", "rotate", "acmeDemoKey1"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains(r"\u{1b}[2J") && !error.contains('\u{1b}'),
        "{error}"
    );
}

#[test]
fn several_keys_are_read_from_standard_input() {
    let server = Server::start(&[]);
    let keys = ["a", "b"].map(|label| create(&server, label, &[]));
    let [first, second] = keys.each_ref().map(|key| &key[4..16]);
    let input = format!("\n{}\r\n  {second}\n\n{first}\n", keys[0]);

    let checked = with_input(&server, &["keys", "check", "-", "--json"], &input);
    let checked: Vec<Value> = serde_json::from_slice(&checked.stdout).unwrap();
    let checked: Vec<_> = checked
        .iter()
        .map(|key| key["key_id"].as_str().unwrap())
        .collect();
    assert_eq!(checked, [first, second]);

    let rotated = with_input(&server, &["keys", "rotate", "-"], &input);
    let new = String::from_utf8(rotated.stdout).unwrap();
    assert_eq!(new.lines().count(), 2, "{new}");
    assert_eq!(labelled(&server, "a").len(), 2);

    let revoked = with_input(&server, &["keys", "revoke", "-"], &format!("{input}{new}"));
    let new_ids: Vec<_> = new.lines().map(|key| &key[4..16]).collect();
    let revoked = String::from_utf8(revoked.stdout).unwrap();
    assert_eq!(
        revoked.lines().collect::<Vec<_>>(),
        [&[first, second], &new_ids[..]].concat()
    );
    assert_eq!(ids(&server, "acme", "active"), ["acmeDemoKey1"]);
}

#[test]
fn no_key_changes_if_a_line_of_standard_input_is_wrong() {
    let server = Server::start(&[]);
    let key = create(&server, "a", &[]);
    let mistyped = &key[..60];
    for command in ["check", "rotate", "revoke"] {
        for (line, code, message) in [
            (
                mistyped,
                2,
                "line 3 of standard input: the API key is incomplete",
            ),
            ("unknownKey12", 1, "there is no key unknownKey12"),
        ] {
            let input = format!("{key}\n\n{line}\n");
            let output = with_input(&server, &["keys", command, "-"], &input);
            assert_exits_with(code, &output, message);
            assert!(
                !String::from_utf8_lossy(&output.stderr).contains(mistyped),
                "{output:?}"
            );
        }
        let empty = with_input(&server, &["keys", command, "-"], "\n");
        assert_usage_error(&empty, "standard input contains no key");
    }
    // A key that cannot be rotated stops the rotation of the others.
    let revoked = create(&server, "revoked", &[]);
    server.run(&["keys", "revoke", &revoked]);
    let output = with_input(
        &server,
        &["keys", "rotate", "-"],
        &format!("{key}\n{revoked}"),
    );
    assert_fails(&output, "is revoked or expired");
    assert_eq!(ids(&server, "acme", "active").len(), 2);
}

/// The local clock may be wrong.
#[test]
fn expired_keys_are_revoked_too() {
    let server = Server::start(&[]);
    create(&server, "expired", &["--expires", "1s"]);
    while labelled(&server, "expired")[0]["state"] == "active" {
        thread::sleep(Duration::from_millis(50));
    }
    server.run(&["keys", "revoke", "--all", "--org", "acme", "--yes"]);
    assert_eq!(labelled(&server, "expired")[0]["state"], "revoked");
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

    assert_eq!(labelled(&server, "short").len(), 2);
    let replaced = by_id(&server, &old["key_id"]);
    for name in ["state", "expires_at"] {
        assert_eq!(replaced[name], old[name], "{name}");
    }
}

/// The rotation of a key that was rotated before used to give the new key the rest of the overlap.
#[test]
fn a_second_rotation_issues_a_key_for_as_long_as_the_first_one() {
    let server = Server::start(&[]);
    for expires in ["never", "30d"] {
        let label = format!("expires {expires}");
        create(&server, &label, &["--expires", expires]);
        let old = labelled(&server, &label).remove(0);
        let id = old["key_id"].as_str().unwrap();

        let first = server.json(&["keys", "rotate", id]);
        let second = server.json(&["keys", "rotate", id, "--again"]);

        let date = |key: &Value| key["expires_at"].as_str().map(|at| at[..10].to_owned());
        assert_eq!(date(&first), date(&old), "{expires}");
        assert_eq!(date(&second), date(&old), "{expires}");
        let replaced = by_id(&server, &old["key_id"]);
        assert_eq!(replaced["replaced_by"], second["key_id"]);
        assert_ne!(
            replaced["expires_at"], old["expires_at"],
            "the overlap ends earlier"
        );
    }
}

/// Runs a command with text in its standard input.
fn with_input(server: &Server, arguments: &[&str], input: &str) -> Output {
    let mut process = server
        .command(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    process
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    process.wait_with_output().unwrap()
}

#[test]
fn a_key_can_be_named_by_its_text_and_is_never_printed_again() {
    let server = Server::start(&[]);
    for command in ["check", "rotate", "revoke"] {
        for from_input in [false, true] {
            let label = format!("{command} {from_input}");
            let key = create(&server, &label, &[]);
            let secret = &key[17..61];

            let output = match from_input {
                true => with_input(&server, &["keys", command, "-"], &format!("{key}\n")),
                false => server.output(&["keys", command, &key]),
            };

            assert!(output.status.success(), "{command}: {output:?}");
            let printed = [output.stdout, output.stderr].concat();
            let printed = String::from_utf8(printed).unwrap();
            assert!(!printed.contains(secret), "{command}: {printed}");
            assert!(printed.contains(&key[4..16]), "{command}: {printed}");
        }
    }
    let states = labelled(&server, "revoke true");
    assert_eq!(states[0]["state"], "revoked");
}

#[test]
fn a_mistyped_key_is_a_usage_error_that_does_not_repeat_it() {
    let server = Server::start(&[]);
    let key = create(&server, "ci", &[]);
    let mistyped = &key[..key.len() - 1];
    for command in ["check", "rotate", "revoke"] {
        for argument in [
            mistyped,
            "acmeDemoKey1x",
            "acme Demo K1",
            "\u{1b}]0;x\u{7}",
            "",
        ] {
            let output = server.output(&["keys", command, argument]);

            let error = String::from_utf8(output.stderr).unwrap();
            assert_eq!(
                output.status.code(),
                Some(2),
                "{command} {argument:?}: {error}"
            );
            assert!(error.contains("keys list"), "{error}");
            assert!(argument.is_empty() || !error.contains(argument), "{error}");
        }
    }
    assert_eq!(labelled(&server, "ci")[0]["state"], "active");
}

#[test]
fn a_key_expires_after_a_year_unless_told_otherwise() {
    let server = Server::start(&[]);
    let days_left = |label: &str| {
        let key = labelled(&server, label).remove(0);
        let at = humantime::parse_rfc3339(key["expires_at"].as_str()?).unwrap();
        let left = at.duration_since(std::time::SystemTime::now()).unwrap();
        Some((left.as_secs() + 60) / 86_400)
    };
    create(&server, "default", &[]);
    create(&server, "never", &["--expires", "never"]);
    create(&server, "two weeks", &["--expires", "2w"]);
    for expires in ["9000-01-31", "9000-01-31T00:00:00Z"] {
        create(&server, expires, &["--expires", expires]);
        let key = labelled(&server, expires).remove(0);
        assert_eq!(key["expires_at"], "9000-01-31T00:00:00Z");
    }

    assert_eq!(days_left("default"), Some(365));
    assert_eq!(days_left("never"), None);
    assert_eq!(days_left("two weeks"), Some(14));
    for expires in [
        "0d",
        "3m",
        "3M",
        "1y",
        "90",
        "",
        "d",
        "+1d",
        "tomorrow",
        "9000-13-01",
        "2001-01-01",
        "9999999d",
    ] {
        let output = server.output(&["keys", "create", "--org", "acme", "--expires", expires]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{expires}: {error}");
    }
    for arguments in [["--label", "a\nb"], ["--label", &"x".repeat(101)]] {
        let create = ["keys", "create", "--org", "acme"];
        let output = server.output(&[&create[..], &arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
    create(&server, &"é".repeat(100), &[]);
    let overlap = server.output(&["keys", "rotate", "acmeDemoKey1", "--overlap", "31d"]);
    assert_eq!(overlap.status.code(), Some(2), "{overlap:?}");
    server.run(&["keys", "rotate", "acmeDemoKey1", "--overlap", "30d"]);
}

#[test]
fn keys_are_listed_by_state_and_expiry() {
    let server = Server::start(&[]);
    create(&server, "soon", &["--expires", "5d"]);
    create(&server, "later", &["--expires", "60d"]);
    let revoked = create(&server, "revoked", &["--expires", "5d"]);
    server.run(&["keys", "revoke", &revoked]);
    let labels = |arguments: &[&str]| {
        let keys = server.records(&[&["keys", "list"], arguments].concat());
        let labels = keys
            .iter()
            .map(|key| key["label"].as_str().unwrap().to_owned());
        labels.collect::<BTreeSet<_>>()
    };

    assert_eq!(labels(&["--expiring", "14d"]), ["soon".to_owned()].into());
    assert_eq!(
        labels(&["--state", "revoked"]),
        ["revoked".to_owned()].into()
    );
    let active = ["demo", "later", "soon"].map(str::to_owned);
    assert_eq!(labels(&["--state", "active"]), active.into());
}

#[test]
fn errors_say_what_to_do_next() {
    let server = Server::start(&[]);
    let rows: [(&[&str], &str); 3] = [
        (
            &["keys", "create", "--org", "globex"],
            "the organization globex is not registered: run `workspacectl orgs create` first",
        ),
        (
            &["keys", "revoke", "unknownKey12"],
            "there is no key unknownKey12: run `workspacectl keys list`",
        ),
        (
            &["keys", "rotate", "unknownKey12"],
            "there is no key unknownKey12: run `workspacectl keys list`",
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

/// clap repeats an argument that it does not expect.
#[test]
fn a_key_in_the_wrong_place_is_not_printed() {
    let server = Server::start(&[]);
    let key = server.key.as_str();
    for arguments in [
        &["keys", "revoke", key, key][..],
        &["keys", "list", key],
        &["keys", "create", "--org", "acme", "--allow", key],
        &[key],
    ] {
        let output = server.output(arguments);
        assert_usage_error(&output, "one of them may be an API key");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!error.contains(key), "{error}");
    }
}

/// The ids of the keys of an organization in a state.
fn ids(server: &Server, org: &str, state: &str) -> Vec<String> {
    let keys = server.records(&["keys", "list", "--org", org, "--state", state]);
    let ids = keys
        .iter()
        .map(|key| key["key_id"].as_str().unwrap().to_owned());
    ids.collect()
}

#[test]
fn all_keys_of_an_organization_are_revoked_after_a_confirmation() {
    let server = Server::start(&["--key-cache", "0"]);
    server.run(&["orgs", "create", "globex"]);
    server.run(&["keys", "create", "--org", "globex"]);
    server.run(&["keys", "create", "--org", "acme"]);
    let revoke = ["keys", "revoke", "--all", "--org", "acme"];

    assert_usage_error(&server.output(&revoke), "confirm it with --yes");
    assert_eq!(ids(&server, "acme", "active").len(), 2);
    let revoked = server.records(&[&revoke[..], &["--yes"]].concat());

    assert_eq!(revoked.len(), 2);
    for key in &revoked {
        assert_eq!(key["revoked_by"], server.operator());
        assert!(key["secret_sha256"].is_null(), "{key}");
    }
    assert!(ids(&server, "acme", "active").is_empty());
    assert_eq!(ids(&server, "globex", "active").len(), 1);
    assert!(
        server
            .records(&[&revoke[..], &["--yes"]].concat())
            .is_empty()
    );
}

#[test]
fn all_keys_of_an_organization_are_rotated_once() {
    let server = Server::start(&["--key-cache", "0"]);
    server.run(&["keys", "create", "--org", "acme"]);
    let before = ids(&server, "acme", "active");
    let rotate = [
        "keys",
        "rotate",
        "--all",
        "--org",
        "acme",
        "--overlap",
        "0s",
        "--yes",
    ];

    let output = server.run(&[&rotate[..], &["--json"]].concat());

    let new: Vec<Value> = output
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(new.len(), 2);
    for key in &new {
        assert!(
            before.contains(&key["replaces"].as_str().unwrap().to_owned()),
            "{key}"
        );
        let text = key["key"].as_str().unwrap();
        assert_eq!(server.create_data_store("acme", text, "Papers"), 204);
    }
    let mut issued: Vec<_> = new
        .iter()
        .map(|key| key["key_id"].as_str().unwrap())
        .collect();
    issued.sort_unstable();
    assert_eq!(ids(&server, "acme", "active"), issued);
    assert_eq!(server.create_data_store("acme", &server.key, "Papers"), 401);
}

#[test]
fn records_of_keys_say_who_issued_and_revoked_them() {
    let server = Server::start(&[]);
    let key = server.json(&["keys", "create", "--org", "acme"]);
    assert_eq!(key["created_by"], server.operator());
    let id = key["key_id"].as_str().unwrap();
    let revoked = server.json(&["keys", "revoke", id]);
    assert_eq!(revoked["created_by"], server.operator());
    assert_eq!(revoked["revoked_by"], server.operator());
    assert_eq!(revoked["request_id"], key["request_id"]);
}

/// The function accepts none of these keys, which other programs have written.
#[test]
fn the_state_of_a_key_is_what_the_function_makes_of_its_record() {
    let server = Server::start(&["--key-cache", "0"]);
    let key = create(&server, "ci", &["--expires", "never"]);
    let id = labelled(&server, "ci").remove(0)["key_id"].clone();
    let update = |expression: &str, value: Value| {
        let mut update = json!({
            "TableName": "KeysTable", "Key": { "key_id": { "S": id } },
            "UpdateExpression": expression,
        });
        if !value.is_null() {
            update["ExpressionAttributeValues"] = json!({ ":value": value });
        }
        server.dynamodb("UpdateItem", &update);
    };
    let shown = || {
        let check = ["keys", "check", id.as_str().unwrap()];
        let checked = server.records(&check).remove(0)["state"].clone();
        assert_eq!(by_id(&server, &id)["state"], checked);
        checked
    };
    for (attribute, state) in [
        ("revoked_at", "revoked"),
        ("expires_at", "expired"),
        ("org_request_id", "malformed"),
    ] {
        let set = format!("SET {attribute} = :value");
        update(&set, json!({ "NULL": true }));
        assert_eq!(shown(), state);
        assert_eq!(server.create_data_store("acme", &key, "Papers"), 401);
        update(&format!("REMOVE {attribute}"), json!(null));
    }

    assert_eq!(shown(), "malformed");
    assert_eq!(server.create_data_store("acme", &key, "Papers"), 401);
    let rotate = server.output(&["keys", "rotate", id.as_str().unwrap()]);
    assert_fails(&rotate, "belongs to an earlier registration of acme");
    // An earlier version of the function accepts it.
    let revoke = ["keys", "revoke", "--all", "--org", "acme", "--yes"];
    assert_eq!(server.records(&revoke).len(), 2);
}

#[test]
fn an_organization_without_a_request_id_cannot_get_keys() {
    let server = Server::start(&[]);
    let update = json!({
        "TableName": "OrganizationsTable", "Key": { "org_id": { "S": "acme" } },
        "UpdateExpression": "REMOVE request_id",
    });
    server.dynamodb("UpdateItem", &update);

    let output = server.output(&["keys", "create", "--org", "acme"]);

    assert_fails(
        &output,
        "the record of the organization acme has no request_id",
    );
}
