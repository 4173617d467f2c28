//! The text of records cannot control the terminal, even if a different program has stored it.

use serde_json::{Value, json};
use workspace_management::{store::Table, text::is_visible};
use workspace_records::columns::api_tables;

use crate::server::Server;

/// Colors, a cleared screen, reordered and hidden text, and a second line.
const HOSTILE: &str = "a\u{1b}[31m\u{9b}2J\r\n\u{7f}\u{202e}\u{2066}\u{2069}\u{200b}\u{61c}\u{feff}\u{2028}\u{e0041}\u{2800}";

/// Stores a copy of a record with this primary key. All further strings of the copy are hostile.
fn put_hostile(server: &Server, table: Table, record: &Value, key: &[&str]) {
    let is_id = |name: &str| name == "org_id" || name == "project_id";
    let mut item = record.as_object().unwrap().clone();
    for (name, value) in &mut item {
        if value["S"].is_string() && !is_id(name) {
            *value = json!({ "S": HOSTILE });
        }
    }
    for name in ["operations", HOSTILE] {
        item.insert(name.to_owned(), json!({ "L": [{ "S": HOSTILE }] }));
    }
    for (name, value) in table.primary_key_attributes.iter().zip(key) {
        item.insert((*name).to_owned(), json!({ "S": value }));
    }
    let put = json!({ "TableName": table.logical_id, "Item": item });
    server.dynamodb("PutItem", &put);
}

#[test]
fn no_command_prints_text_of_records_unescaped() {
    let server = Server::with_records();
    for table in Table::ALL {
        let scan = json!({ "TableName": table.logical_id });
        let record = &server.dynamodb("Scan", &scan)["Items"][0];
        let value = |name: &&str| record[*name]["S"].as_str().unwrap();
        let key: Vec<_> = table.primary_key_attributes.iter().map(value).collect();
        put_hostile(&server, *table, record, &key);
        if let [partition, sort] = &key[..] {
            let sort = format!("{sort}{HOSTILE}");
            put_hostile(&server, *table, record, &[partition, &sort]);
        }
    }
    let members = server.dynamodb("Scan", &json!({ "TableName": "TeamMembersTable" }));
    let hidden = format!("a\u{200b}da{HOSTILE}");
    for team in ["", HOSTILE] {
        let team = format!("acme#apollo#research-team{team}");
        for user in ["ada", "a\u{200b}da", &hidden] {
            let record = &members["Items"][0];
            put_hostile(&server, Table::TEAM_MEMBERS, record, &[&team, user]);
        }
    }
    let reads = [
        "orgs list",
        "orgs show acme",
        "orgs export acme",
        "keys list",
        "keys list --org acme",
        "keys check acmeDemoKey1",
        "list members --org acme --user ada",
        "list members --limit 1",
    ];
    let writes = [
        "keys rotate acmeDemoKey1",
        "keys create --org acme --json --label a\u{202e}b",
        "remove member --org acme --project apollo --team research-team ada --json",
        "remove member --org acme --all-teams ada --yes --json",
        "remove team --org acme --project apollo research-team --wait 0 --yes",
        "remove voice --org acme bot-7 --json",
    ];
    let lists = api_tables().map(|table| format!("list {}", table.record_kind));
    let doctor = format!("doctor --url {}", server.url);
    let reads = lists.chain(reads.map(str::to_owned)).chain([doctor]);
    // Also as JSON. The writes come last, because they remove what the reads show.
    let reads = reads.flat_map(|line| [line.clone(), format!("{line} --json")]);
    for line in reads.chain(writes.map(str::to_owned)) {
        let output = server.command(&line).output().unwrap();
        assert_ne!(output.status.code(), Some(2), "{line}: {output:?}");
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        let is_shown = |character| " \n".contains(character) || is_visible(character);
        assert!(text.chars().all(is_shown), "{line}: {text:?}");
        let is_escaped = text.contains(r"\u");
        assert!(is_escaped || line.contains("doctor"), "{line}: {text}");
    }
}
