//! `list`.

use std::process::Output;

use serde_json::{Value, json};
use test_support::fixtures;
use workspace_management::store::Table;
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

/// The records of a page and the cursor of the next page, which is in standard error, so that the
/// JSON has the same shape as without `--limit`.
fn page(output: &Output) -> (Vec<Value>, Option<String>) {
    let message = text(&output.stderr);
    let cursor = message.strip_prefix(
        "the list ends at --limit: for more records, repeat the command with --after ",
    );
    let cursor = cursor.map(|cursor| cursor.trim_end().to_owned());
    (serde_json::from_slice(&output.stdout).unwrap(), cursor)
}

/// A page of the keys exceeds the megabyte that DynamoDB returns per request.
#[test]
fn pages_together_contain_every_record_once() {
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
        let mut all = server.records(list);
        let whole = server.output(&format!("{list} --json --limit {}", all.len()));
        assert_eq!(page(&whole).1, None, "{list}");
        let list = format!("{list} --json --limit 4");
        let mut records: Vec<Value> = Vec::new();
        let (mut page, mut next) = page(&server.output(&list));
        loop {
            assert!(page.len() <= 4, "{page:?}");
            records.append(&mut page);
            let Some(cursor) = next else {
                break;
            };
            (page, next) = self::page(&server.output(&format!("{list} --after {cursor}")));
        }
        for records in [&mut records, &mut all] {
            records.sort_by_key(Value::to_string);
        }
        assert_eq!(records, all);
    }

    for cursor in ["nonsense", "W10", "eyJhIjoxfQ"] {
        let invalid = server.output(&format!("list data-stores --limit 3 --after {cursor}"));
        assert_usage_error(&invalid, "use the cursor that the previous page printed");
    }
}

/// The command reads the members of an organization team by team.
#[test]
fn a_page_continues_after_a_team_that_was_deleted_since_the_previous_page() {
    let network = Network::with_team(&["Zoë \"7\""]);
    let put = |table, record| network.dynamodb.put(table, record);
    put(Table::TEAMS, fixtures::team("acme", "apollo", "ops", "Ops"));
    let member = fixtures::member("acme", "apollo", "ops", "ada");
    put(Table::TEAM_MEMBERS, member);
    let list = "list members --json --limit 1 --org";
    let (first, cursor) = page(&network.output(&format!("{list} acme")));
    assert_eq!(first[0]["team_id"], "docs");
    let cursor = cursor.unwrap();
    let is_safe_in_a_shell = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    assert!(cursor.chars().all(is_safe_in_a_shell), "{cursor}");

    let docs = fixtures::team("acme", "apollo", "docs", "Docs");
    network.dynamodb.delete(Table::TEAMS, &docs);
    let second = page(&network.output(&format!("{list} acme --after {cursor}")));

    assert_eq!(second.0[0]["team_id"], "ops");
    assert_eq!(second.1, None, "there is no third page");
    let ops = fixtures::team("acme", "apollo", "ops", "Ops");
    network.dynamodb.delete(Table::TEAMS, &ops);
    let last = network.output(&format!("{list} acme --after {cursor}"));
    assert_eq!(page(&last), (vec![], None));
    let foreign = network.output(&format!("{list} globex --after {cursor}"));
    assert_usage_error(&foreign, "the cursor is from a list with different options");
    let keys = network.output(&format!("keys list --limit 1 --org acme --after {cursor}"));
    assert_usage_error(&keys, "the cursor is from a list with different options");
}
