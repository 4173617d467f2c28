//! `keys`, except `keys rotate`.

use std::{
    fs::OpenOptions,
    io::Write as _,
    process::{Command, Output, Stdio},
    time::SystemTime,
};

use serde_json::{Value, json};

use crate::{assert_fails, assert_usage_error, server::Server, text, words};

/// Creates a key of `acme` with these options.
pub(crate) fn create(server: &Server, options: &str) -> String {
    let key = server.run(&words(&format!("keys create --org acme {options}")));
    key.trim_end().to_owned()
}

/// The record of the key with this id.
pub(crate) fn check(server: &Server, id: &str) -> Value {
    server.json(&["keys", "check", id])[0].take()
}

/// The ids of the active keys of an organization.
fn active(server: &Server, org: &str) -> Vec<String> {
    let keys = server.records(&["keys", "list", "--org", org, "--state", "active"]);
    let ids = keys.iter().map(|key| key["key_id"].as_str().unwrap());
    ids.map(str::to_owned).collect()
}

#[test]
fn a_created_key_works_for_its_organization_until_it_is_revoked() {
    let server = Server::start(&["--key-cache", "0"]);
    server.run(&["orgs", "create", "globex"]);

    let create = "keys create --org globex --label ci --allow create_data_store,set_bot_voice";
    let created = server.json(&words(create));

    let id = created["key_id"].as_str().unwrap();
    let key = created["key"].as_str().unwrap();
    assert_eq!(server.create_data_store("globex", key, "Papers"), 204);
    assert_eq!(server.create_data_store("acme", key, "Papers"), 403);
    let create_team = "/api/v1/project/globex/apollo/createNewTeamOnProject";
    let response = server.post(create_team, Some(key), r#"{"teamName":"Docs"}"#);
    assert_eq!(response.status, 403);
    let table = server.run(&words("keys list --org globex"));
    // It was neither revoked nor replaced.
    let is_listed =
        |line: &str| line.contains(" - ") && line.ends_with("create_data_store,set_bot_voice");
    assert!(table.lines().any(is_listed), "{table}");
    let list = server.run(&words("keys list --org globex --json"));
    assert!(
        !list.contains(&key[17..]) && !list.contains("sha256"),
        "{list}"
    );
    let listed: Vec<Value> = serde_json::from_str(&list).unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["state"], "active");
    assert_eq!(listed[0]["label"], "ci");
    assert_eq!(listed[0]["last_four"], key[key.len() - 4..]);

    let revoked = server.json(&["keys", "revoke", id]);
    assert_eq!(server.create_data_store("globex", key, "Papers"), 401);
    assert_eq!(revoked["state"], "revoked");
    for name in ["created_by", "revoked_by"] {
        assert_eq!(revoked[name], server.operator());
    }
    assert_eq!(revoked["request_id"], created["request_id"]);
    assert_eq!(server.json(&["keys", "revoke", id]), revoked);
}

#[test]
fn a_key_that_cannot_be_printed_is_revoked_or_not_created() {
    let server = Server::start(&[]);
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (reader, closed) = std::io::pipe().unwrap();
    drop(reader);
    for stdout in [Stdio::from(full), Stdio::from(closed)] {
        let mut create = server.command(&["keys", "create", "--org", "acme"]);
        let output = create.stdout(stdout).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
    }
    let revoked = server.records(&["keys", "list", "--state", "revoked"]);
    assert_eq!(revoked.len(), 2);

    // Rust opens `/dev/null` instead of a standard output that is closed.
    for command in ["create --org acme", "rotate acmeDemoKey1"] {
        for redirection in [">&-", ">/dev/null"] {
            let script = format!("exec \"$0\" keys {command} {redirection}");
            let output = Command::new("/bin/sh")
                .args(["-c", &script, env!("CARGO_BIN_EXE_workspacectl")])
                .env("AWS_ENDPOINT_URL_DYNAMODB", &server.dynamodb_url)
                .output();
            assert_fails(&output.unwrap(), "standard output is closed or /dev/null");
        }
    }
    assert_eq!(server.count("KeysTable"), 3);
}

/// Runs a command with text in its standard input.
pub(crate) fn with_input(server: &Server, arguments: &str, input: &str) -> Output {
    let mut command = server.command(&words(arguments));
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = process.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    process.wait_with_output().unwrap()
}

#[test]
fn keys_are_read_from_arguments_and_standard_input_and_never_printed_again() {
    let server = Server::start(&[]);
    let keys = ["", ""].map(|options| create(&server, options));
    let ids = keys.each_ref().map(|key| &key[4..16]);
    let input = format!("\n{}\r\n  {}\n\n{}\n", keys[0], ids[1], ids[0]);
    let run = |arguments: &str, input: &str| {
        let output = with_input(&server, arguments, input);
        assert!(output.status.success(), "{output:?}");
        assert!(
            !text(&output.stderr).contains(&keys[0][17..61]),
            "{output:?}"
        );
        let printed = text(&output.stdout).to_owned();
        assert!(!printed.contains(&keys[0][17..61]), "{printed}");
        printed
    };

    assert!(run(&format!("keys check {}", keys[0]), "").contains(ids[0]));
    let both = format!("keys check {} {}", ids[1], keys[0]);
    assert!(run(&both, "").lines().count() == 3);
    let checked: Vec<Value> = serde_json::from_str(&run("keys check - --json", &input)).unwrap();
    let checked: Vec<_> = checked.iter().map(|key| &key["key_id"]).collect();
    assert_eq!(checked, ids);

    let new = run("keys rotate -", &input);
    let new_ids: Vec<_> = new.lines().map(|key| &key[4..16]).collect();
    assert_eq!(new_ids.len(), 2, "{new}");

    let revoked = run("keys revoke -", &format!("{input}{new}"));
    let revoked: Vec<_> = revoked.lines().collect();
    assert_eq!(revoked, [&ids[..], &new_ids].concat());
    assert_eq!(active(&server, "acme"), ["acmeDemoKey1"]);
}

#[test]
fn no_key_changes_if_another_is_mistyped_or_cannot_be_changed() {
    let server = Server::start(&[]);
    let [key, revoked] = ["", ""].map(|options| create(&server, options));
    server.run(&["keys", "revoke", &revoked]);
    let mistyped = &key[..60];
    for command in ["check", "rotate", "revoke"] {
        let run = |input: &str| with_input(&server, &format!("keys {command} -"), input);
        let output = run(&format!("{key}\n\n{mistyped}\n"));
        assert_usage_error(
            &output,
            "line 3 of standard input: the API key is incomplete",
        );
        assert!(!text(&output.stderr).contains(mistyped), "{output:?}");
        let unknown = run(&format!("{key}\nunknownKey12\n"));
        assert_fails(
            &unknown,
            "there is no key unknownKey12: run `workspacectl keys list`",
        );
        assert_usage_error(&run("\n"), "standard input contains no key");

        for argument in [mistyped, "acmeDemoKey1x", "acme Demo K1", "\u{1b}]0;x\u{7}"] {
            let output = server.output(&["keys", command, argument]);
            assert_usage_error(&output, "keys list");
            assert!(!text(&output.stderr).contains(argument), "{output:?}");
        }
    }
    let rotated = with_input(&server, "keys rotate -", &format!("{key}\n{revoked}"));
    assert_fails(&rotated, "is revoked or expired: create a new one");
    assert_eq!(active(&server, "acme").len(), 2);
}

/// clap repeats an argument that it does not expect.
#[test]
fn a_key_in_the_wrong_place_is_not_printed() {
    let server = Server::start(&[]);
    let key = server.key.as_str();
    for arguments in [
        &["keys", "list", key][..],
        &["keys", "create", "--org", "acme", "--allow", key],
        &[key],
    ] {
        let output = server.output(arguments);
        assert_usage_error(&output, "one of them may be an API key");
        assert!(!text(&output.stderr).contains(key), "{output:?}");
    }
}

#[test]
fn a_key_expires_after_a_year_unless_told_otherwise() {
    let server = Server::start(&[]);
    let expires_at = |options: &str| {
        let key = check(&server, &create(&server, options)[4..16]);
        key["expires_at"].as_str().map(str::to_owned)
    };
    let days_left = |options: &str| {
        let at = humantime::parse_rfc3339(&expires_at(options)?).unwrap();
        let left = at.duration_since(SystemTime::now()).unwrap();
        Some((left.as_secs() + 60) / 86_400)
    };
    assert_eq!(days_left(""), Some(365));
    assert_eq!(days_left("--expires never"), None);
    assert_eq!(days_left("--expires 2w"), Some(14));
    for time in ["9000-01-31", "9000-01-31T00:00:00Z"] {
        let expires_at = expires_at(&format!("--expires {time}"));
        assert_eq!(expires_at.unwrap(), "9000-01-31T00:00:00Z");
    }

    let long = "x".repeat(101);
    for [option, value] in [
        ["--expires", "0d"],
        ["--expires", "3m"],
        ["--expires", "90"],
        ["--expires", "d"],
        ["--expires", "+1d"],
        ["--expires", "9000-13-01"],
        ["--expires", "2001-01-01"],
        ["--expires", "9999999d"],
        ["--label", "a\nb"],
        ["--label", &long],
        ["--allow", "delete_team"],
    ] {
        let output = server.output(&["keys", "create", "--org", "acme", option, value]);
        assert_usage_error(&output, &option[2..option.len() - 1]);
    }
    create(&server, &format!("--label {}", "é".repeat(100)));
}

#[test]
fn keys_are_listed_by_state_and_expiry() {
    let server = Server::start(&[]);
    create(&server, "--label soon --expires 5d");
    create(&server, "--label later --expires 60d");
    let revoked = create(&server, "--label revoked --expires 5d");
    server.run(&["keys", "revoke", &revoked]);
    let labels = |options: &str| {
        let keys = server.records(&words(&format!("keys list {options}")));
        let labels = keys.iter().map(|key| key["label"].as_str().unwrap());
        let mut labels: Vec<_> = labels.map(str::to_owned).collect();
        labels.sort();
        labels
    };

    assert_eq!(labels("--expiring 14d"), ["soon"]);
    assert_eq!(labels("--state revoked"), ["revoked"]);
    assert_eq!(labels("--state active"), ["demo", "later", "soon"]);
}

/// Also those that are expired, because the local clock may be wrong.
#[test]
fn all_keys_of_an_organization_are_revoked_after_a_confirmation() {
    let server = Server::start(&[]);
    server.run(&["orgs", "create", "globex"]);
    server.run(&["keys", "create", "--org", "globex"]);
    let expired = create(&server, "");
    let id = json!({ "key_id": { "S": expired[4..16] } });
    let past = json!({ "S": "2026-01-01T00:00:00Z" });
    server.update_item("KeysTable", id, "SET expires_at = :value", past);
    assert_eq!(check(&server, &expired[4..16])["state"], "expired");
    let revoke = words("keys revoke --all --org acme");
    let confirmed = [&revoke[..], &["--yes"]].concat();

    assert_usage_error(&server.output(&revoke), "confirm it with --yes");
    assert_eq!(active(&server, "acme"), ["acmeDemoKey1"]);
    let revoked = server.records(&confirmed);

    assert_eq!(revoked.len(), 2);
    for key in &revoked {
        assert_eq!(key["state"], "revoked");
        assert_eq!(key["revoked_by"], server.operator());
        assert!(key["secret_sha256"].is_null(), "{key}");
    }
    assert_eq!(active(&server, "globex").len(), 1);
    assert!(server.records(&confirmed).is_empty());
}

/// The function accepts none of these keys, which other programs have written.
#[test]
fn the_state_of_a_key_is_what_the_function_makes_of_its_record() {
    let server = Server::start(&["--key-cache", "0"]);
    let key = create(&server, "--expires never");
    let id = &key[4..16];
    let update = |expression: &str, value: Value| {
        let key = json!({ "key_id": { "S": id } });
        server.update_item("KeysTable", key, expression, value);
    };
    let assert_state = |state: &str| {
        let keys = server.records(&["keys", "list", "--state", state]);
        assert!(
            keys.iter().any(|key| key["key_id"] == id),
            "{state}: {keys:?}"
        );
        assert_eq!(check(&server, id)["state"], state);
        assert_eq!(server.create_data_store("acme", &key, "Papers"), 401);
    };
    for (attribute, state) in [
        ("revoked_at", "revoked"),
        ("expires_at", "expired"),
        ("org_request_id", "malformed"),
    ] {
        update(
            &format!("SET {attribute} = :value"),
            json!({ "NULL": true }),
        );
        assert_state(state);
        update(&format!("REMOVE {attribute}"), json!(null));
    }

    assert_state("malformed");
    let rotate = server.output(&["keys", "rotate", id]);
    assert_fails(&rotate, "belongs to an earlier registration of acme");
    // An earlier version of the function accepts it.
    let revoke = words("keys revoke --all --org acme --yes");
    assert_eq!(server.records(&revoke).len(), 2);

    let acme = json!({ "org_id": { "S": "acme" } });
    server.update_item("OrganizationsTable", acme, "REMOVE request_id", json!(null));
    let output = server.output(&["keys", "create", "--org", "acme"]);
    assert_fails(&output, "the organization acme has no request_id");
}
