//! `list`.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::{assert_fails, assert_usage_error, listed_tables, server::Server};

#[test]
fn a_list_is_a_table_with_a_header() {
    let server = Server::start(&[]);
    assert_eq!(server.create_data_store("acme", &server.key, "Papers"), 204);

    let list = server.run(&["list", "data-stores", "--org", "acme"]);

    let lines: Vec<_> = list.lines().collect();
    assert_eq!(lines.len(), 2, "{list}");
    let columns: Vec<_> = lines[0].split_whitespace().collect();
    assert_eq!(columns[..2], ["ORG", "DATA_STORE"], "{list}");
    assert!(!columns.contains(&"REQUEST"), "{list}");
    assert!(
        lines[1].contains("papers") && lines[1].contains(" ago"),
        "{list}"
    );
    assert!(!list.contains('\u{1b}'), "{list:?}");
}

#[test]
fn a_scope_selects_exactly_its_records() {
    let server = Server::start(&[]);
    let authorization = format!("Bearer {}", server.key);
    let post = |path: &str, body: Value| {
        let response = server.post(path, Some(&authorization), &body.to_string());
        assert_eq!(response.status, 204, "{path}: {}", response.body);
    };
    for project in ["apollo", "apollo-2"] {
        for team in ["Docs", "Docs 2"] {
            let path = format!("/api/v1/project/acme/{project}/createNewTeamOnProject");
            post(&path, json!({ "teamName": team }));
        }
        let path = format!("/api/v1/project/acme/{project}/docs/addUsersToTheTeam");
        post(
            &path,
            json!({ "usersAddingToTeam": [{ "userid": "ada" }, { "userid": "grace" }] }),
        );
    }
    let count = |arguments: &str| {
        let arguments: Vec<_> = arguments.split(' ').collect();
        server.records(&[&["list"], &arguments[..]].concat()).len()
    };

    assert_eq!(count("teams"), 4);
    assert_eq!(count("teams --org acme"), 4);
    assert_eq!(count("teams --org acme --project apollo"), 2);
    assert_eq!(count("members --org acme"), 4);
    assert_eq!(count("members --org acme --project apollo"), 2);
    assert_eq!(count("members --org acme --project apollo --team docs"), 2);
    assert_eq!(
        count("members --org acme --project apollo --team docs-2"),
        0
    );
    server.run(&["orgs", "create", "acm"]);
    for table in listed_tables() {
        assert_eq!(count(&format!("{} --org acm", table.noun)), 0);
        let output = server.output(&["list", table.noun, "--org", "ac"]);
        assert_fails(&output, "there is no organization ac:");
    }
    let output = server.output(&["list", "voices", "--org", "acme", "--project", "apollo"]);
    assert_usage_error(&output, "voices can only be filtered by --org");
}

#[test]
fn joined_keys_are_split_into_columns() {
    let server = Server::start(&[]);
    server.send_events();
    for (kind, columns, values) in [
        (
            "teams",
            &["ORG", "PROJECT", "TEAM"][..],
            &["acme", "apollo"][..],
        ),
        (
            "members",
            &["ORG", "PROJECT", "TEAM", "USER"],
            &["acme", "apollo"],
        ),
        ("models", &["ORG", "MODEL_TYPE", "MODEL"], &["acme"]),
    ] {
        let list = server.run(&["list", kind]);
        let lines = list.lines().map(|line| line.split_whitespace().collect());
        let lines: Vec<Vec<_>> = lines.collect();
        assert_eq!(lines[0][..columns.len()], *columns, "{list}");
        assert_eq!(lines[1][..values.len()], *values, "{list}");
        assert!(!list.contains('#'), "{list}");
    }
    let team = &server.records(&["list", "teams"])[0];
    assert_eq!(team["org_id"], "acme");
    assert_eq!(team["project"], "acme#apollo");
}

#[test]
fn text_with_line_breaks_is_listed_in_one_line() {
    let server = Server::start(&[]);
    let harmless = "Zoë 市场\u{3000}﷽ é\u{301} 🎉\u{fe0f}";
    let description = format!("one\ntwo\tthree {harmless}");
    let body = json!({ "dataStoreName": "a", "dataStoreDescription": description }).to_string();
    let response = server.post("/api/v1/org/acme/dataStores/create", None, &body);
    assert_eq!(response.status, 204);

    let list = server.run(&["list", "data-stores"]);

    assert_eq!(list.lines().count(), 2, "{list}");
    assert!(
        list.contains(&format!(r"one\ntwo\tthree {harmless}")),
        "{list}"
    );
}

/// Anyone who knows an organization's id can store text that an operator lists.
#[test]
fn stored_text_cannot_control_the_terminal() {
    let server = Server::start(&[]);
    let name = "a\u{202e}b\u{2066}c\u{200b}d\u{e0041}";
    assert_eq!(server.create_data_store("acme", &server.key, name), 204);

    let list = server.run(&["list", "data-stores"]);
    let json = server.run(&["list", "data-stores", "--json"]);

    let escaped = r"a\u{202e}b\u{2066}c\u{200b}d\u{e0041}";
    assert!(list.contains(escaped), "{list}");
    assert!(list.is_ascii() && json.is_ascii(), "{list:?}, {json:?}");
    let records: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(records[0]["data_store_name"], name);
}

#[test]
fn pages_together_contain_every_record_once() {
    let server = Server::start(&[]);
    for number in 0..7 {
        let name = format!("Store {number}");
        assert_eq!(server.create_data_store("acme", &server.key, &name), 204);
    }
    let all = server.records(&["list", "data-stores"]);
    for scope in [&[][..], &["--org", "acme"]] {
        let mut records: Vec<Value> = Vec::new();
        let mut cursor = None::<String>;
        loop {
            let mut arguments = vec!["list", "data-stores", "--limit", "3", "--json"];
            arguments.extend(scope);
            if let Some(cursor) = &cursor {
                arguments.extend(["--after", cursor]);
            }
            let output = server.output(&arguments);
            assert!(output.status.success(), "{output:?}");
            let page: Value = serde_json::from_slice(&output.stdout).unwrap();
            let found = page["records"].as_array().unwrap();
            assert!(found.len() <= 3, "{page}");
            records.extend(found.iter().cloned());
            let Some(next) = page["next"].as_str() else {
                break;
            };
            cursor = Some(next.to_owned());
        }
        records.sort_by_key(|record| record["data_store_id"].to_string());
        assert_eq!(records, all);
    }

    for cursor in ["", "nonsense", "W10", "eyJhIjoxfQ"] {
        let invalid = server.output(&["list", "data-stores", "--limit", "3", "--after", cursor]);
        assert_usage_error(&invalid, "use the cursor that the previous page printed");
    }
}

/// DynamoDB returns at most a megabyte at once. The index has a longer key than the table.
#[test]
fn pages_of_large_records_in_an_index_contain_every_record_once() {
    let server = Server::start(&[]);
    let scan = server.dynamodb("Scan", &json!({ "TableName": "KeysTable" }));
    let mut key = scan["Items"][0].clone();
    key["label"] = json!({ "S": "x".repeat(300_000) });
    for number in 0..8 {
        key["key_id"] = json!({ "S": format!("key{number}") });
        server.dynamodb("PutItem", &json!({ "TableName": "KeysTable", "Item": key }));
    }
    let list = "keys list --org acme --limit 5";
    let list: Vec<_> = list.split(' ').collect();
    let first = server.json(&list);
    let after = ["--after", first["next"].as_str().unwrap()];
    let second = server.json(&[&list[..], &after].concat());
    let pages = [&first, &second].map(|page| page["records"].as_array().unwrap());
    assert_eq!(pages.map(Vec::len), [5, 4]);
    let ids: HashSet<_> = pages
        .into_iter()
        .flatten()
        .map(|key| key["key_id"].to_string())
        .collect();
    assert_eq!(ids.len(), 9);
}

/// The members of an organization are read team by team.
#[test]
fn a_page_continues_after_a_team_that_was_deleted_meanwhile() {
    let server = Server::start(&[]);
    let users = json!({ "usersAddingToTeam": [{ "userid": "Zoë \"7\"" }] }).to_string();
    for team in ["a", "b"] {
        let project = "/api/v1/project/acme/apollo";
        let body = json!({ "teamName": team }).to_string();
        let path = format!("{project}/createNewTeamOnProject");
        assert_eq!(server.post(&path, Some(&server.key), &body).status, 204);
        let path = format!("{project}/{team}/addUsersToTheTeam");
        assert_eq!(server.post(&path, Some(&server.key), &users).status, 204);
    }
    let members = ["list", "members", "--org", "acme", "--limit", "1"];
    let first = server.json(&members);
    assert_eq!(first["records"][0]["team_id"], "a");

    server.delete_item(
        "TeamsTable",
        json!({ "project": { "S": "acme#apollo" }, "team_id": { "S": "a" } }),
    );
    let second =
        server.json(&[&members[..], &["--after", first["next"].as_str().unwrap()]].concat());

    assert_eq!(second["records"][0]["team_id"], "b");
    let cursor = first["next"].as_str().unwrap();
    let is_safe_in_a_shell = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    assert!(cursor.chars().all(is_safe_in_a_shell), "{cursor}");
    let list = [
        "list", "members", "--limit", "1", "--after", cursor, "--org",
    ];
    let foreign = server.output(&[&list[..], &["globex"]].concat());
    assert_usage_error(&foreign, "the cursor is of another list");
}
