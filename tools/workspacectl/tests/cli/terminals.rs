//! The text of records cannot control the terminal, even if a different program has stored it.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    os::fd::OwnedFd,
    process::{Child, Command},
};

use rustix::{
    fs::{Mode, OFlags},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{tcgetwinsize, tcsetwinsize},
};
use serde_json::{Value, json};
use workspace_management::{records::Table, text::is_visible};
use workspace_records::kinds::{Kind, api_tables};

use crate::{server::Server, unused_url};

/// A pseudo-terminal.
pub(crate) struct Terminal {
    /// What reads and types.
    user: File,
    path: String,
}

impl Terminal {
    /// A terminal with this number of columns. 0 means that it is unknown.
    pub(crate) fn new(columns: u16) -> Self {
        let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&user).unwrap();
        unlockpt(&user).unwrap();
        let mut size = tcgetwinsize(&user).unwrap();
        (size.ws_row, size.ws_col) = (24, columns);
        tcsetwinsize(&user, size).unwrap();
        let path = ptsname(&user, vec![]).unwrap().into_string().unwrap();
        let user = user.into();
        Self { user, path }
    }

    /// Starts a command in the terminal.
    pub(crate) fn start(&self, mut command: Command) -> Child {
        let flags = OFlags::RDWR | OFlags::NOCTTY;
        let open = || -> OwnedFd { rustix::fs::open(&*self.path, flags, Mode::empty()).unwrap() };
        let command = command.stdin(open()).stdout(open()).stderr(open());
        command.spawn().unwrap()
    }

    /// Reads what the command has written until this text.
    pub(crate) fn read_until(&self, end: &str) -> String {
        let mut text = Vec::new();
        let mut bytes = [0; 4096];
        // Fails when the command has ended.
        while let Ok(count) = (&self.user).read(&mut bytes) {
            text.extend_from_slice(&bytes[..count]);
            if !end.is_empty() && String::from_utf8_lossy(&text).contains(end) {
                break;
            }
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    pub(crate) fn write(&self, text: &[u8]) {
        (&self.user).write_all(text).unwrap();
    }

    /// Runs a command and returns what it has written.
    fn run(&self, command: Command) -> String {
        let mut process = self.start(command);
        let text = self.read_until("");
        process.wait().unwrap();
        text
    }
}

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
    let lists = api_tables().map(|table| format!("list {}", Kind::of(table).plural));
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

#[test]
fn ids_are_whole_in_a_terminal_of_any_width() {
    let server = Server::with_records();
    let long_org = "o".repeat(128);
    server.run(&format!("orgs create {long_org}"));
    let key = server.run(&format!(
        "keys create --org {long_org} --label data-team-ci"
    ));
    let user = format!("{}@example.com", "市u".repeat(100));
    let members = server.dynamodb("Scan", &json!({ "TableName": "TeamMembersTable" }));
    let (record, team) = (&members["Items"][0], "acme#apollo#research-team");
    put_hostile(&server, Table::TEAM_MEMBERS, record, &[team, &user]);
    let doctor = format!("doctor --url {}", unused_url());
    for (line, texts) in [
        ("orgs list", vec!["acme", &*long_org]),
        (&format!("orgs show {long_org}"), vec![&long_org]),
        ("keys list", vec!["acmeDemoKey1", &key[4..16], &long_org]),
        ("keys check acmeDemoKey1", vec!["acmeDemoKey1"]),
        (
            "list members --org acme",
            vec!["apollo", "research-team", "ada", &user],
        ),
        ("list models", vec!["gpt-4o", "chat"]),
        ("list voices", vec!["bot-7"]),
        (
            &doctor,
            vec!["start the service, or pass its URL with --url"],
        ),
    ] {
        let shown = |columns| Terminal::new(columns).run(server.command(line));
        for columns in [1, 40, 80, 400, 0] {
            let text = shown(columns);
            let has = |part: &&str| text.contains(part);
            assert!(texts.iter().all(has), "{line}, {columns} columns: {text}");
            let is_cut = text.contains("the terminal is too narrow for ");
            assert!(
                columns != 1 || is_cut || line.contains("doctor"),
                "{line}: {text}"
            );
            assert!(columns != 0 || !is_cut, "{line}: {text}");
        }
    }
}
