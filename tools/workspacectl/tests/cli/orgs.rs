//! `orgs`.

use std::fs;

use serde_json::{Value, json};
use test_support::fixtures;
use workspace_local::demo::DEMO_KEY;
use workspace_management::records::Table;
use workspace_records::kinds::Kind;

use crate::{
    assert_fails, assert_usage_error, json_lines, network::Network, new_file, server::Server, text,
};

/// A service with a record of every kind, and a second organization whose id begins like the first.
fn with_acme2() -> Server {
    let server = Server::with_records();
    server.run("orgs create acme2");
    let key = server.run("keys create --org acme2");
    assert_eq!(
        server.create_team("acme2", key.trim(), "Research Team"),
        204
    );
    assert_eq!(server.create_data_store("acme2", key.trim(), "Papers"), 204);
    server
}

#[test]
fn an_organization_is_registered_only_once() {
    let server = Server::start();

    assert_eq!(server.run("orgs create globex"), "globex\n");
    let organizations = server.records("orgs list");
    let again = server.output("orgs create globex");
    assert_fails(
        &again,
        "globex is already registered: choose a different id",
    );
    let invalid = server.output("orgs create .");
    assert_usage_error(&invalid, "an id has 1 to 128 characters: ASCII letters");
    let if_absent = "orgs create globex --if-absent";
    assert_eq!(server.run(if_absent), "globex\n");
    assert_eq!(server.json(if_absent)["created"], false);

    assert_eq!(server.records("orgs list"), organizations);
    let hooli = server.json("orgs create hooli --if-absent");
    assert_eq!(hooli["created"], true);
    assert_eq!(hooli["created_by"], server.operator());
    let ids: Vec<_> = organizations.iter().map(|org| &org["org_id"]).collect();
    assert_eq!(ids, ["acme", "globex"]);
}

#[test]
fn the_name_and_reference_of_an_organization_are_shown_and_can_change() {
    let server = Server::start();
    let names = |organization: &Value| {
        [
            organization["name"].clone(),
            organization["reference"].clone(),
        ]
    };
    let created = server.json("orgs create globex --name Globex-Inc --reference CRM-42");
    assert_eq!(names(&created), [json!("Globex-Inc"), json!("CRM-42")]);
    for line in ["orgs list", "orgs show globex"] {
        let printed = server.run(line);
        assert!(
            printed.contains("Globex-Inc") && printed.contains("CRM-42"),
            "{printed}"
        );
    }

    let edited = server.json("orgs edit globex --name Globex --reference=");

    assert_eq!(names(&edited), [json!("Globex"), Value::Null]);
    assert_eq!(edited["updated_by"], server.operator());
    assert_eq!(server.records("orgs list")[1], edited);
    assert_eq!(server.json("orgs edit globex --name Globex"), edited);
    assert_usage_error(&server.output("orgs edit globex"), "required");
    let long = "x".repeat(101);
    for option in ["--name", "--reference"] {
        let output = server.output(&format!("orgs edit globex {option} {long}"));
        assert_usage_error(&output, "must have at most 100 characters");
    }
    for (line, part) in [
        (
            "keys revoke --all --org globex --yes",
            "0 keys of globex (Globex) will",
        ),
        (
            "orgs disable globex --wait 0",
            "the organization globex (Globex) is disabled",
        ),
        (
            "orgs erase globex --without-export --wait 0 --yes",
            "of the organization globex (Globex) will",
        ),
    ] {
        let output = server.output(line);
        let message = text(&output.stderr);
        assert!(
            output.status.success() && message.contains(part),
            "{message}"
        );
    }
}

#[test]
fn an_id_that_differs_only_by_case_from_an_existing_one_is_confirmed() {
    let server = Server::start();
    let create = "orgs create ACME";
    let expected = "the id ACME differs only by case from acme";
    let refused = server.output(create);
    assert_usage_error(&refused, "pass --yes");
    assert!(text(&refused.stderr).contains(expected), "{refused:?}");
    assert_eq!(server.records("orgs list").len(), 1);
    let output = server.output(&format!("{create} --yes"));
    let is_created = output.status.success() && text(&output.stderr).contains(expected);
    assert!(is_created, "{output:?}");
    // It exists now, so there is nothing to ask.
    server.run("orgs create ACME --if-absent");
    assert_eq!(server.records("orgs list").len(), 2);
}

#[test]
fn no_operation_succeeds_for_a_disabled_organization_until_it_is_enabled() {
    let server = Server::with_records();
    let state = || server.json("orgs show acme");
    assert_eq!(state()["state"], "enabled");

    let output = server.output("orgs disable acme --wait 0 --json");

    let message = String::from_utf8_lossy(&output.stderr);
    for limit in ["within 60 seconds", "within 90 seconds"] {
        assert!(message.contains(limit), "{message}");
    }
    let disabled: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(disabled["disabled_by"], server.operator());
    assert_eq!(state()["state"], "disabled");
    assert_eq!(server.create_data_store("acme", DEMO_KEY, "a"), 403);
    let key = "keys create --org acme";
    assert_fails(&server.output(key), "because acme is disabled");
    let before = state();
    server.run("orgs disable acme --wait 0");
    assert_eq!(state(), before);

    server.run("orgs enable acme");
    assert_eq!(state()["enabled_by"], server.operator());
    assert!(state()["disabled_at"].is_null());
    server.send_events();
    server.run(key);
}

#[test]
fn an_organization_is_shown_with_the_number_of_its_records() {
    let server = with_acme2();
    for number in 0..3 {
        server.create_demo_store(&format!("Store {number}"));
    }
    let shown = &server.json("orgs show acme")["records"];
    for (kind, count) in shown.as_object().unwrap() {
        let list = match kind.as_str() {
            "keys" => "keys list --org acme",
            kind => &format!("list {kind} --org acme"),
        };
        assert_eq!(*count, json!(server.records(list).len()), "{kind}");
    }
    assert_eq!(shown.as_object().unwrap().len(), Table::ALL.len() - 1);
    assert_eq!(shown["data-stores"], 4);
    let other = &server.json("orgs show acme2")["records"];
    assert_eq!((&other["keys"], &other["voices"]), (&json!(1), &json!(0)));
}

#[test]
fn a_missing_organization_is_not_created() {
    let network = Network::new();
    for line in [
        "orgs show nope",
        "orgs disable nope",
        "orgs enable nope",
        "orgs export nope",
        "orgs erase nope --without-export --yes",
        "keys list --org nope",
        "keys revoke --all --org nope --yes",
        "list teams --org nope",
        "keys create --org nope",
    ] {
        assert_fails(&network.output(line), "there is no organization nope");
    }
    assert!(network.dynamodb.records(Table::ORGANIZATIONS).is_empty());
}

#[test]
fn an_export_has_every_record_of_one_organization_and_no_digest() {
    let server = with_acme2();
    let export = json_lines(&server.run("orgs export acme"));

    for table in Table::ALL {
        let is_own = |line: &Value| line["table"] == Kind::of(*table).plural;
        assert!(export.iter().any(is_own), "{}", Kind::of(*table).plural);
    }
    assert_eq!(export[0]["table"], "organizations");
    let text = json!(export).to_string();
    assert!(!text.contains("acme2"), "{text}");
    assert!(!text.contains("secret_sha256"), "{text}");
    let (folder, file) = new_file();
    server.run(&format!("orgs export acme --out {file}"));
    assert_eq!(json_lines(&fs::read_to_string(&file).unwrap()), export);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn an_organization_is_erased_completely_and_others_stay() {
    let server = with_acme2();
    let others = server.run("orgs export acme2");
    let (_folder, file) = new_file();
    let with_export = format!("orgs erase acme --wait 0 --yes --export {file}");

    let enabled = server.output(&with_export);
    assert_fails(&enabled, "run `workspacectl orgs disable acme` first");
    server.run("orgs disable acme --wait 0");
    let export = server.run("orgs export acme");
    let erased = server.json(&with_export);

    assert_eq!(erased["erased_by"], server.operator());
    assert_eq!(erased["deleted"], json_lines(&export).len());
    assert_eq!(fs::read_to_string(&file).unwrap(), export);
    assert_eq!(server.run("orgs export acme2"), others);
    let again = server.output("orgs erase acme --without-export --yes");
    assert_fails(&again, "there is no organization acme:");
    assert_eq!(server.create_data_store("acme", DEMO_KEY, "a"), 401);
    server.run("orgs create acme");
    assert_eq!(json_lines(&server.run("orgs export acme")).len(), 1);
}

/// `restore` compares the times of records with that of their organization.
#[test]
fn no_organization_is_registered_with_a_wrong_clock() {
    for (behind, error) in [
        (25 * 3_600, "clock is 1 day ahead of DynamoDB's"),
        (-600, "clock is 10 minutes behind DynamoDB's"),
        (240, ""),
    ] {
        let mut network = Network::new();
        network.behind = behind;
        let output = network.output("orgs create globex");
        let count = network.dynamodb.records(Table::ORGANIZATIONS).len();
        assert_eq!(count, usize::from(error.is_empty()));
        if !error.is_empty() {
            assert_fails(&output, error);
        }
    }
}

#[test]
fn a_cancelled_erasure_leaves_the_organization_disabled() {
    let network = Network::with_team(&["ada"]);
    let mut acme = fixtures::disabled_organization("acme");
    acme["erasing_id"] = json!(fixtures::RANDOM_ID);
    network.dynamodb.put(Table::ORGANIZATIONS, acme);

    let cancelled = network.json("orgs erase acme --cancel");

    assert_eq!(cancelled["state"], "disabled");
    assert_ne!(cancelled["disabled_at"], fixtures::CREATED_AT);
    assert_eq!(cancelled["erasing_id"], Value::Null);
    assert_eq!(network.json("orgs enable acme")["state"], "enabled");
    let again = network.json("orgs erase acme --cancel");
    assert_eq!(again["state"], "enabled");
    assert_eq!(network.dynamodb.records(Table::TEAM_MEMBERS).len(), 1);
}
