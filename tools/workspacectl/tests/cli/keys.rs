//! `keys`.

use std::{
    fs::OpenOptions,
    process::Command,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use test_support::faults::DENIED;
use workspace_local::demo::DEMO_KEY;
use workspace_management::{operations::Operation, records::Table};
use workspace_records::contract::Description;

use crate::{AWS, assert_fails, assert_usage_error, network::Network, server::Server, text};

/// Creates a key of `acme` with these options.
pub(crate) fn create(server: &Server, options: &str) -> String {
    let key = server.run(&format!("keys create --org acme {options}"));
    key.trim_end().to_owned()
}

/// The record of the key with this id.
pub(crate) fn check(server: &Server, id: &str) -> Value {
    server.json(&format!("keys check {id}"))[0].take()
}

/// The ids of the active keys of an organization.
fn active(server: &Server, org: &str) -> Vec<String> {
    let keys = server.records(&format!("keys list --org {org} --state active"));
    let ids = keys.iter().map(|key| key["key_id"].as_str().unwrap());
    ids.map(str::to_owned).collect()
}

#[test]
fn the_history_says_who_erased_a_key() {
    let server = Server::start();
    let id = create(&server, "")[4..16].to_owned();
    server.run("orgs disable acme --wait 0");
    server.run("orgs erase acme --without-export --wait 0 --yes");

    let operator = server.operator();
    for id in ["acmeDemoKey1", &id] {
        let checked = server.output(&format!("keys check {id}"));
        let expected =
            format!("there is no key {id}: {operator} erased it with the organization acme at 2");
        assert_fails(&checked, &expected);
        let mut without_history = server.command(&format!("keys check {id}"));
        for table in Table::ALL {
            without_history.env(table.env_variable, table.logical_id);
        }
        let output = without_history.envs(AWS).output().unwrap();
        assert_fails(&output, &format!("there is no key {id}: see"));
    }
    let unknown = server.output("keys check 0fzzzxjylrx3");
    assert_fails(
        &unknown,
        "there is no key 0fzzzxjylrx3: see `workspacectl keys list`",
    );
}

#[test]
fn the_history_names_a_key_that_an_interrupted_erasure_deleted() {
    let network = Network::with_team(&["ada"]);
    let id = network.json("keys create --org acme")["key_id"].take();
    network.disable_acme();
    let erase = "orgs erase acme --without-export --wait 0 --yes";
    let failed = network.hooked_output(erase, |request| {
        let is_member = request.body.to_string().contains("TeamMembersTable");
        (is_member && request.writes("Delete")).then_some(DENIED)
    });
    assert_fails(&failed, "cannot finish erasing");
    assert!(network.dynamodb.records(Table::API_KEYS).is_empty());

    assert!(network.output(erase).status.success());

    let checked = network.output(&format!("keys check {}", id.as_str().unwrap()));
    assert_fails(&checked, "erased it with the organization acme");
}

#[test]
fn a_created_key_works_for_its_organization_until_it_is_revoked() {
    let server = Server::start();
    server.run("orgs create globex");

    let create = "keys create --org globex --label ci --allow create_data_store,set_bot_voice";
    let created = server.json(create);

    let id = created["key_id"].as_str().unwrap();
    let key = created["key"].as_str().unwrap();
    assert_eq!(server.create_data_store("globex", key, "Papers"), 204);
    assert_eq!(server.create_data_store("acme", key, "Papers"), 403);
    assert_eq!(server.create_team("globex", key, "Docs"), 403);
    let list = server.run("keys list --org globex --json");
    let has_secret = list.contains(&key[17..]) || list.contains("sha256");
    assert!(!has_secret, "{list}");
    let listed: Vec<Value> = serde_json::from_str(&list).unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["state"], "active");
    assert_eq!(listed[0]["label"], "ci");
    let operations = json!(["create_data_store", "set_bot_voice"]);
    assert_eq!(listed[0]["operations"], operations);
    assert_eq!(listed[0]["last_four"], key[key.len() - 4..]);

    let revoked = server.json(&format!("keys revoke {id}"))[0].take();
    assert_eq!(server.create_data_store("globex", key, "Papers"), 401);
    assert_eq!(revoked["state"], "revoked");
    for name in ["created_by", "revoked_by"] {
        assert_eq!(revoked[name], server.operator());
    }
    assert_eq!(revoked["request_id"], created["request_id"]);
    let again = server.output(&format!("keys revoke {id} --json"));
    let message = text(&again.stderr);
    let at = revoked["revoked_at"].as_str().unwrap();
    let expected = format!(
        ": the key {id} was already revoked at {at} by {}\n",
        server.operator()
    );
    assert!(message.contains(&expected), "{message}");
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(again, json!([revoked]));
}

#[test]
fn a_key_that_cannot_be_printed_is_revoked_or_not_created() {
    let server = Server::start();
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut create = server.command("keys create --org acme");
    let output = create.stdout(full).output().unwrap();
    assert_fails(&output, "cannot print the key, so it was revoked");
    let revoked = server.records("keys list --state revoked");
    assert_eq!(revoked.len(), 1);

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
    assert_eq!(server.count("KeysTable"), 2);
}

#[test]
fn keys_are_read_from_arguments_and_standard_input_and_never_printed_again() {
    let server = Server::start();
    let keys = ["", ""].map(|options| create(&server, options));
    let ids = keys.each_ref().map(|key| &key[4..16]);
    let input = format!("\n{}\r\n  {}\n\n{}\n", keys[0], ids[1], ids[0]);
    let run = |line: &str, input: &str| {
        let output = server.output_with_input(line, input);
        assert!(output.status.success(), "{output:?}");
        let printed = text(&output.stdout).to_owned();
        for text in [&printed, text(&output.stderr)] {
            assert!(!text.contains(&keys[0][17..61]), "{text}");
        }
        printed
    };

    assert!(run(&format!("keys check {}", keys[0]), "").contains(ids[0]));
    let both = format!("keys check {} {}", ids[1], keys[0]);
    assert!(run(&both, "").lines().count() == 3);
    let checked: Vec<Value> = serde_json::from_str(&run("keys check - --json", &input)).unwrap();
    let checked: Vec<_> = checked.iter().map(|key| &key["key_id"]).collect();
    assert_eq!(checked, ids);

    server.run("orgs disable acme --wait 0");
    let output = server.output(&format!("keys check {}", ids[0]));
    let note = "the organization acme is disabled: its keys are not accepted";
    assert!(text(&output.stderr).contains(note), "{output:?}");
    server.run("orgs enable acme");

    let new = run("keys rotate -", &input);
    let new_ids: Vec<_> = new.lines().map(|key| &key[4..16]).collect();
    assert_eq!(new_ids.len(), 2, "{new}");

    let revoked = run("keys revoke -", &format!("{input}{new}"));
    let revoked: Vec<_> = revoked.lines().collect();
    assert_eq!(revoked, [&ids[..], &new_ids].concat());
    assert_eq!(active(&server, "acme"), ["acmeDemoKey1"]);
}

#[test]
fn no_key_changes_if_a_different_key_is_mistyped_or_cannot_be_changed() {
    let server = Server::start();
    let [key, revoked] = ["", ""].map(|options| create(&server, options));
    server.run(&format!("keys revoke {revoked}"));
    let mistyped = &key[..60];
    for command in ["check", "rotate", "revoke"] {
        let run = |input: &str| server.output_with_input(&format!("keys {command} -"), input);
        let output = run(&format!("{key}\n\n{mistyped}\n"));
        let error = "line 3 of standard input: the API key is incomplete";
        assert_usage_error(&output, error);
        assert!(!text(&output.stderr).contains(mistyped), "{output:?}");
        let unknown = run(&format!("{key}\nunknownKey12\n"));
        let error = "there is no key unknownKey12: see";
        assert_fails(&unknown, error);
        assert_usage_error(&run("\n"), "standard input contains no key");

        for argument in [mistyped, "acmeDemoKey1x", "\u{1b}]0;x\u{7}"] {
            let output = server.output(&format!("keys {command} {argument}"));
            assert_usage_error(&output, "keys list");
            assert!(!text(&output.stderr).contains(argument), "{output:?}");
        }
    }
    let rotated = server.output_with_input("keys rotate -", &format!("{key}\n{revoked}"));
    assert_fails(&rotated, "is revoked or expired: create a new key");
    assert_eq!(active(&server, "acme").len(), 2);
}

/// clap repeats an argument that it does not expect.
#[test]
fn a_key_in_the_wrong_place_is_not_printed() {
    let server = Server::start();
    for line in ["keys list ", "keys create --org acme --allow ", ""] {
        let output = server.output(&format!("{line}{DEMO_KEY}"));
        assert_usage_error(&output, "one may be an API key");
        assert!(!text(&output.stderr).contains(DEMO_KEY), "{output:?}");
    }
}

#[test]
fn a_key_expires_after_a_year_unless_told_otherwise() {
    let server = Server::start();
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
    for (time, expected) in [
        // A date includes its day.
        ("9000-01-31", "9000-01-31T23:59:59Z"),
        ("9000-01-31T00:00:00Z", "9000-01-31T00:00:00Z"),
        ("9000-01-31T18:30Z", "9000-01-31T18:30:00Z"),
        ("9000-01-31T23:59+01:00", "9000-01-31T22:59:00Z"),
        ("9000-01-31T23:59:58.5-01:30", "9000-02-01T01:29:58Z"),
    ] {
        let expires_at = expires_at(&format!("--expires {time}"));
        assert_eq!(expires_at.unwrap(), expected, "{time}");
    }
    let today = humantime::format_rfc3339(SystemTime::now()).to_string();
    create(&server, &format!("--expires {}", &today[..10]));
    for time in ["9000-01-31T18:30", "9000-02-30", "9000-01-31T", "tomorrow"] {
        let output = server.output(&format!("keys create --org acme --expires {time}"));
        assert_usage_error(&output, "a time such as 2027-01-31T18:00+01:00");
    }

    let long = format!("--label {}", "x".repeat(101));
    for option in [
        "--expires 0d",
        "--expires 90",
        "--expires 2001-01-01",
        "--expires 9999999d",
        "--label a\nb",
        &long,
        "--allow delete_team",
    ] {
        let output = server.output(&format!("keys create --org acme {option}"));
        assert_usage_error(&output, &option[2..7]);
    }
    create(&server, &format!("--label {}", "é".repeat(100)));
    let twice = "--allow set_bot_voice,create_team,set_bot_voice --allow create_team";
    let key = check(&server, &create(&server, twice)[4..16]);
    assert_eq!(key["operations"], json!(["set_bot_voice", "create_team"]));
}

#[test]
fn keys_are_listed_by_state_and_expiry() {
    let server = Server::start();
    create(&server, "--label soon --expires 5d");
    create(&server, "--label later --expires 60d");
    let revoked = create(&server, "--label revoked --expires 5d");
    server.run(&format!("keys revoke {revoked}"));
    let labels = |options: &str| {
        let keys = server.records(&format!("keys list {options}"));
        let labels = keys.iter().map(|key| key["label"].as_str().unwrap());
        let mut labels: Vec<_> = labels.map(str::to_owned).collect();
        labels.sort();
        labels
    };

    assert_eq!(labels("--expiring 14d"), ["soon"]);
    assert_eq!(labels("--state revoked"), ["revoked"]);
    assert_eq!(labels("--state active"), ["demo", "later", "soon"]);
}

/// Even expired keys, because the local clock may be wrong.
#[test]
fn all_keys_of_an_organization_are_revoked_after_a_confirmation() {
    let server = Server::start();
    server.run("orgs create globex");
    server.run("keys create --org globex");
    let expired = create(&server, "");
    let id = json!({ "key_id": { "S": expired[4..16] } });
    let past = json!({ "S": "2026-01-01T00:00:00Z" });
    server.update_item("KeysTable", id, "SET expires_at = :value", past);
    assert_eq!(check(&server, &expired[4..16])["state"], "expired");
    let revoke = "keys revoke --all --org acme";
    let confirmed = format!("{revoke} --yes");

    assert_usage_error(&server.output(revoke), "pass --yes");
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

/// A different program has written the key. The function does not accept it.
#[test]
fn a_key_without_a_registration_is_malformed_and_can_only_be_revoked() {
    let server = Server::start();
    let key = create(&server, "");
    let id = &key[4..16];
    let item = json!({ "key_id": { "S": id } });
    server.update_item("KeysTable", item, "REMOVE org_request_id", json!(null));
    let listed = server.records("keys list --state malformed");
    assert_eq!(listed[0]["key_id"], id);
    assert_eq!(server.create_data_store("acme", &key, "Papers"), 401);
    let rotate = server.output(&format!("keys rotate {id}"));
    assert_fails(&rotate, "belongs to an earlier registration of acme");
    // An earlier version of the function accepts it.
    let revoked = server.records("keys revoke --all --org acme --yes");
    assert_eq!(revoked.len(), 2);
}

#[test]
fn a_key_for_projects_works_only_there_and_so_does_its_replacement() {
    let server = Server::start();
    let options = "--project zeus,apollo --project zeus";
    let output = server.output(&format!("keys create --org acme {options}"));
    let key = text(&output.stdout).trim_end();
    let summary = "and may call every operation in these projects: zeus, apollo. ";
    assert!(text(&output.stderr).contains(summary), "{output:?}");
    let id = &key[4..16];
    let rotated = server.json(&format!("keys rotate {id}"))[0].take();

    for (key, record) in [
        (key, check(&server, id)),
        (rotated["key"].as_str().unwrap(), rotated.clone()),
    ] {
        assert_eq!(record["projects"], json!(["zeus", "apollo"]));
        assert_eq!(server.create_team("acme", key, "Docs"), 204);
        assert_eq!(server.create_data_store("acme", key, "Papers"), 403);
    }
    let list = server.run("keys list --org acme");
    assert_eq!(list.matches(" zeus,apollo").count(), 2, "{list}");
    let elsewhere = create(&server, "--project zeus --allow create_team");
    assert_eq!(server.create_team("acme", &elsewhere, "Docs"), 403);
}

#[test]
fn a_key_for_projects_allows_no_operation_without_a_project() {
    let server = Server::start();
    let mut count = server.count("KeysTable");
    for operation in Operation::ALL {
        let name = operation.name();
        let allow = format!("--project apollo --allow create_team,{name}");
        let output = server.output(&format!("keys create --org acme {allow}"));
        if Description::of(*operation).path.contains("{project_id}") {
            assert!(output.status.success(), "{output:?}");
            count += 1;
        } else {
            assert_usage_error(&output, &format!("cannot call {name}"));
        }
    }
    for project in ["", "a/b", "apollo,", ".."] {
        let create = format!("keys create --org acme --project={project}");
        assert_usage_error(&server.output(&create), "--project");
    }
    assert_eq!(server.count("KeysTable"), count);
}

/// The old key never expires later than before. The new keys have the lifetime of the old key.
#[test]
fn a_key_can_be_rotated_again_after_its_replacement_is_revoked() {
    let server = Server::start();
    for expires in ["never", "30d", "1h"] {
        let options = format!("--label ci --allow create_data_store --expires {expires}");
        let key = create(&server, &options);
        let (id, old) = (&key[4..16], check(&server, &key[4..16]));
        let rotate = format!("keys rotate {id}");

        let first = server.json(&rotate)[0].take();
        for name in ["org_id", "label", "operations"] {
            assert_eq!(first[name], old[name], "{name}");
        }
        // The new key can retry the requests of the old key.
        for key in [&key, first["key"].as_str().unwrap()] {
            assert_eq!(server.create_data_store("acme", key, "Papers"), 204);
        }
        let first_id = first["key_id"].as_str().unwrap();
        let error = format!("the key {id} was already replaced by {first_id}");
        assert_fails(&server.output(&rotate), &error);
        server.run(&format!("keys revoke {first_id}"));
        let again = match expires {
            // The rotation has set an expiry, and no lifetime is recorded.
            "never" => {
                assert_fails(&server.output(&rotate), "pass --expires");
                format!("{rotate} --expires never")
            }
            _ => rotate.clone(),
        };
        let second = server.json(&again)[0].take();

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
fn a_rotation_says_until_when_the_old_key_is_valid() {
    let server = Server::start();
    for seconds in [0, 600, 604_800] {
        let key = create(&server, "");
        let id = &key[4..16];
        let overlap = Duration::from_secs(seconds);
        let output = server.output(&format!("keys rotate {id} --overlap {seconds}s"));
        let error = text(&output.stderr);
        let end = check(&server, id)["expires_at"].clone();
        let message = format!("the old key {id} is valid until {}", end.as_str().unwrap());
        assert!(error.contains(&message), "{error}");
        let rotated = humantime::parse_rfc3339(end.as_str().unwrap()).unwrap() - overlap;
        assert!(rotated.elapsed().unwrap().as_secs() < 60, "{error}");
    }
    let overlap = server.output("keys rotate acmeDemoKey1 --overlap 31d");
    assert_usage_error(&overlap, "at most 30 days");
}
