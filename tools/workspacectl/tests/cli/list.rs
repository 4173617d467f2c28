//! `list`.

use std::sync::mpsc;

use serde_json::{Value, json};
use test_support::fixtures;
use workspace_local::demo::DEMO_KEY;
use workspace_management::records::Table;
use workspace_records::kinds::{Kind, api_tables};

use crate::{assert_fails, assert_usage_error, network::Network, server::Server, text};

#[test]
fn a_scope_selects_exactly_its_records() {
    let network = Network::new();
    let put = |table, record| network.dynamodb.put(table, record);
    for org in ["acme", "acm"] {
        put(Table::ORGANIZATIONS, fixtures::organization(org));
    }
    for project in ["apollo", "apollo-2"] {
        for team in ["docs", "docs-2"] {
            put(Table::TEAMS, fixtures::team("acme", project, team, team));
        }
        for user in ["ada", "grace"] {
            let member = fixtures::member("acme", project, "docs", user);
            put(Table::TEAM_MEMBERS, member);
        }
    }
    let count = |scope: &str| {
        let records = network.json(&format!("list {scope}"));
        records.as_array().unwrap().len()
    };
    for (scope, expected) in [
        ("teams", 4),
        ("teams --org acme", 4),
        ("teams --org acme --project apollo", 2),
        ("members --org acme", 4),
        ("members --org acme --project apollo", 2),
        ("members --org acme --project apollo --team docs", 2),
        ("members --org acme --project apollo --team docs-2", 0),
    ] {
        assert_eq!(count(scope), expected, "{scope}");
    }
    for table in api_tables() {
        assert_eq!(count(&format!("{} --org acm", Kind::of(table).plural)), 0);
        let output = network.output(&format!("list {} --org ac", Kind::of(table).plural));
        assert_fails(&output, "there is no organization ac:");
    }
    let output = network.output("list voices --org acme --project apollo");
    assert_usage_error(&output, "voices can only be filtered by --org");
}

/// A different program has stored records whose primary keys join too few or too many ids, or name
/// a different organization than `org_id`.
#[test]
fn a_malformed_primary_key_hides_no_other_record() {
    let network = Network::with_team(&["ada"]);
    let put = |table, record| network.dynamodb.put(table, record);
    put(Table::TEAMS, fixtures::team("globex", "apollo", "x", "X"));
    for project in ["acme", "acme#apollo#x", "globex#apollo"] {
        let team = json!({ "project": project, "team_id": "odd", "org_id": "acme" });
        put(Table::TEAMS, team);
    }
    for team in ["acme#apollo", "acme#apollo#docs#x"] {
        put(
            Table::TEAM_MEMBERS,
            json!({ "team": team, "user_id": "ada" }),
        );
    }
    for (scope, expected) in [
        ("teams --org acme", 2),
        ("teams --org acme --project apollo", 1),
        ("members --org acme", 1),
        ("members --org acme --user ada", 3),
    ] {
        let records = network.json(&format!("list {scope}"));
        assert_eq!(records.as_array().unwrap().len(), expected, "{scope}");
    }
    assert_eq!(network.json("orgs show acme")["records"]["teams"], 2);
    let export = network.output("orgs export acme");
    assert!(export.status.success(), "{export:?}");
    assert_eq!(text(&export.stdout).lines().count(), 4);
    let remove = "remove member --org acme --all-teams ada --yes";
    assert_eq!(network.json(remove)["teams"].as_array().unwrap().len(), 3);
    assert!(network.dynamodb.records(Table::TEAM_MEMBERS).is_empty());
}

#[test]
fn a_list_is_a_table_with_a_column_for_each_part_of_a_key() {
    let server = Server::start();
    server.send_events();
    let harmless = "Zoë 市场\u{3000}﷽ é\u{301} 🎉\u{fe0f}";
    server.create_demo_store(harmless);
    let stores = server.run("list data-stores");
    assert!(stores.contains(harmless), "{stores}");
    for (kind, columns, values) in [
        ("data-stores", "ORG DATA_STORE", "acme"),
        ("teams", "ORG PROJECT TEAM", "acme apollo"),
        ("members", "ORG PROJECT TEAM USER", "acme apollo"),
        ("models", "ORG MODEL_TYPE MODEL", "acme"),
    ] {
        let list = server.run(&format!("list {kind}"));
        let lines = list.lines().map(|line| line.split_whitespace().collect());
        let lines: Vec<Vec<_>> = lines.collect();
        assert!(lines[0].join(" ").starts_with(columns), "{list}");
        assert!(lines[1].join(" ").starts_with(values), "{list}");
        assert!(!lines[0].contains(&"REQUEST"), "{list}");
        assert!(list.contains(" ago"), "{list}");
        assert!(!list.contains(['#', '\u{1b}']), "{list:?}");
    }
    let team = &server.records("list teams")[0];
    assert_eq!(team["org_id"], "acme");
    assert_eq!(team["project"], "acme#apollo");
}

#[test]
fn a_list_for_people_has_the_labels_of_keys_and_reads_each_key_once() {
    let network = Network::with_team(&[""; 0]);
    let put = |table, record| network.dynamodb.put(table, record);
    put(
        Table::API_KEYS,
        json!(fixtures::key_record(DEMO_KEY, "acme", "ci")),
    );
    for (user, key) in [
        ("ada", "acmeDemoKey1"),
        ("grace", "acmeDemoKey1"),
        ("zoe", "0fzzzxjylrx3"),
    ] {
        let mut member = fixtures::member("acme", "apollo", "docs", user);
        member["created_by"] = json!(key);
        put(Table::TEAM_MEMBERS, member);
    }
    let (sender, reads) = mpsc::channel();

    let output = network.hooked_output("list members", move |request| {
        if request.action == "GetItem" {
            sender
                .send(request.body["Key"]["key_id"]["S"].to_string())
                .unwrap();
        }
        None
    });

    let list = text(&output.stdout);
    assert_eq!(
        list.matches(" acmeDemoKey1 (ci)\n").count(),
        2,
        "{output:?}"
    );
    assert!(list.ends_with(" 0fzzzxjylrx3\n"), "{list}");
    let expected = ["\"acmeDemoKey1\"", "\"0fzzzxjylrx3\""];
    assert_eq!(Vec::from_iter(reads.try_iter()), expected);
    let members = network.json("list members");
    assert_eq!(members[0]["created_by"], "acmeDemoKey1");
}

/// The records exceed the megabyte that DynamoDB returns per request.
#[test]
fn a_limit_cuts_a_list_and_says_so() {
    const MESSAGE: &str = "the list ends at --limit: there are more records\n";
    let server = Server::start();
    let keys = server.dynamodb("Scan", &json!({ "TableName": "KeysTable" }));
    let mut key = keys["Items"][0].clone();
    key["label"] = json!({ "S": "x".repeat(300_000) });
    for number in 0..6 {
        server.create_demo_store(&format!("Store {number}"));
        key["key_id"] = json!({ "S": format!("key{number}") });
        server.dynamodb("PutItem", &json!({ "TableName": "KeysTable", "Item": key }));
    }
    for list in [
        "list data-stores",
        "list data-stores --org acme",
        "keys list --org acme",
    ] {
        let all = server.records(list);
        for (limit, message) in [(all.len(), ""), (all.len() - 1, MESSAGE), (1, MESSAGE)] {
            let output = server.output(&format!("{list} --json --limit {limit}"));
            assert_eq!(text(&output.stderr), message, "{list} {limit}");
            let records: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(records.len(), limit, "{list}");
            assert!(records.iter().all(|record| all.contains(record)), "{list}");
        }
    }
}
