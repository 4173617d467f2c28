//! The records of operations and commands have the attributes that `records/schemas/` describes.

use std::collections::{BTreeMap, BTreeSet};

use workspace_records::schemas;

use crate::server::Server;

/// The attributes of all records that a test has seen, by the name of their table.
#[derive(Default)]
struct Seen(BTreeMap<&'static str, BTreeSet<String>>);

impl Seen {
    fn add_records(&mut self, server: &Server) {
        for (table, record) in server.valid_records() {
            let names = record.as_object().unwrap().keys().cloned();
            self.0.entry(table.noun).or_default().extend(names);
        }
    }
}

/// Kills a command when it has marked a record: while it waits.
fn kill_when_marked(server: &Server, arguments: &[&str], mark: &str) {
    let mut process = server.start_until_marked(arguments, mark);
    process.kill().unwrap();
    process.wait().unwrap();
}

#[test]
fn the_schemas_have_exactly_the_attributes_that_operations_and_commands_store() {
    let server = Server::with_records();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("export.jsonl");
    let file = file.to_str().unwrap();
    let mut seen = Seen::default();
    seen.add_records(&server);
    server.run(&["orgs", "export", "acme", "--out", file]);
    let disable = ["orgs", "disable", "acme", "--wait", "0"];
    for command in [&disable[..], &["orgs", "enable", "acme"], &disable] {
        server.run(command);
        seen.add_records(&server);
    }

    let erase = ["orgs", "erase", "acme", "--without-export", "--yes"];
    kill_when_marked(&server, &erase, "erasing_id");
    seen.add_records(&server);
    server.run(&[&erase[..], &["--wait", "0"]].concat());
    assert!(server.valid_records().is_empty());
    server.run(&["restore", "--from", file]);
    seen.add_records(&server);
    let team = ["--project", "apollo", "research-team", "--yes"];
    let remove = [&["remove", "team", "--org", "acme"], &team[..]].concat();
    kill_when_marked(&server, &remove, "removing_id");
    seen.add_records(&server);

    for table in schemas::tables() {
        let described = schemas::schema(table)["properties"].as_object();
        let described: BTreeSet<String> = described.unwrap().keys().cloned().collect();
        assert_eq!(seen.0[table.noun], described, "{}", table.noun);
    }
}
