//! `restore`.

use std::fs;

use serde_json::{Value, json};

use crate::{assert_fails, assert_usage_error, server::Server};

/// The report of a restore: copied, existed, differ, skipped.
fn restore(server: &Server, arguments: &[&str]) -> [u64; 4] {
    let report = server
        .records(&[&["restore"], arguments].concat())
        .remove(0);
    assert_eq!(report["restored_by"], server.operator());
    ["copied", "existed", "differ", "skipped"].map(|name| report[name].as_u64().unwrap())
}

/// An export in a file, and its lines.
fn export(server: &Server, folder: &tempfile::TempDir) -> (String, Vec<Value>) {
    let file = folder.path().join("export.jsonl");
    let file = file.to_str().unwrap().to_owned();
    server.run(&["orgs", "export", "acme", "--out", &file]);
    let lines = fs::read_to_string(&file).unwrap();
    let lines = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    (file, lines.collect())
}

#[test]
fn an_export_is_restored_after_an_erasure() {
    let server = Server::with_records();
    let folder = tempfile::tempdir().unwrap();
    let (file, lines) = export(&server, &folder);
    let from = ["--from", file.as_str()];
    let (keys, others) = (1, lines.len() as u64 - 1);

    assert_eq!(restore(&server, &from), [0, others, 0, keys]);
    server.run(&["orgs", "disable", "acme", "--wait", "0"]);
    server.run(&[
        "orgs",
        "erase",
        "acme",
        "--without-export",
        "--yes",
        "--wait",
        "0",
    ]);
    assert_eq!(restore(&server, &from), [others, 0, 0, keys]);
    assert_eq!(restore(&server, &from), [0, others, 0, keys]);

    let (_, restored) = export(&server, &folder);
    assert_eq!(restored.len() as u64, others);
    for mut line in restored {
        let record = line["record"].as_object_mut().unwrap();
        assert_eq!(record.remove("restored_by").unwrap(), server.operator());
        assert!(record.remove("restored_at").is_some());
        assert!(record.remove("restored_request_id").is_some());
        assert!(lines.contains(&line), "{line}");
    }
}

/// The export is written after the mark, which must not block the restored organization.
#[test]
fn the_export_of_an_erasure_is_restored() {
    let server = Server::with_records();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("erased.jsonl");
    let file = file.to_str().unwrap();
    server.run(&["orgs", "disable", "acme", "--wait", "0"]);
    let before = server.run(&["orgs", "export", "acme"]);
    let erase = ["orgs", "erase", "acme", "--export", file];
    server.run(&[&erase[..], &["--yes", "--wait", "0"]].concat());

    let records = before.lines().count() as u64;
    // An empty line at the end, as editors add it.
    fs::write(file, fs::read_to_string(file).unwrap() + "\n").unwrap();
    assert_eq!(restore(&server, &["--from", file]), [records - 1, 0, 0, 1]);

    assert_eq!(
        server.records(&["orgs", "show", "acme"])[0]["state"],
        "disabled"
    );
    server.run(&["orgs", "enable", "acme"]);
    let key = server.run(&["keys", "create", "--org", "acme"]);
    assert_eq!(server.create_data_store("acme", key.trim(), "New"), 204);
}

#[test]
fn a_line_that_occurs_twice_is_restored_once() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("export.jsonl");
    let line = r#"{"table":"models","record":{"org_id":"acme","model":"chat#a","model_type":"chat","model_id":"a","created_at":"2099-01-01T00:00:00.000Z"}}"#;
    fs::write(&file, format!("{line}\n{line}\n")).unwrap();
    let from = ["--from", file.to_str().unwrap()];
    assert_eq!(restore(&server, &from), [1, 1, 0, 0]);
}

#[test]
fn a_restore_overwrites_nothing_and_skips_what_belongs_to_nothing() {
    let server = Server::with_records();
    let folder = tempfile::tempdir().unwrap();
    let (file, lines) = export(&server, &folder);
    let change = |table: &str, name: &str, value: &str| {
        let changed = lines.iter().map(|line| {
            let mut line = line.clone();
            if line["table"] == table {
                line["record"][name] = json!(value);
            }
            format!("{line}\n")
        });
        fs::write(&file, changed.collect::<String>()).unwrap();
    };
    let teams = ["--from", file.as_str(), "--to", "teams"];
    let stores = ["--from", file.as_str(), "--to", "data-stores"];

    change("teams", "team_description", "other");
    assert_eq!(restore(&server, &teams), [0, 0, 1, 0]);
    change("data-stores", "org_id", "nope");
    assert_eq!(restore(&server, &stores), [0, 0, 0, 1]);
    // A record of an organization that had this id before.
    change("data-stores", "created_at", "2020-01-01T00:00:00.000Z");
    server.run(&["remove", "data-store", "--org", "acme", "papers"]);
    assert_eq!(restore(&server, &stores), [0, 0, 0, 1]);
    change("data-stores", "data_store_description", "restored");
    assert_eq!(restore(&server, &stores), [1, 0, 0, 0]);

    let stored = &server.records(&["list", "data-stores"])[0];
    assert_eq!(stored["data_store_description"], "restored");
    assert_eq!(
        server.records(&["list", "teams"])[0]["team_description"],
        lines.iter().find(|line| line["table"] == "teams").unwrap()["record"]["team_description"]
    );
    // Members need their team.
    let remove = [
        "remove",
        "team",
        "--org",
        "acme",
        "--project",
        "apollo",
        "research-team",
    ];
    server.run(&[&remove[..], &["--wait", "0", "--yes"]].concat());
    let members = ["--from", file.as_str(), "--to", "members"];
    assert_eq!(restore(&server, &members), [0, 0, 0, 2]);
}

#[test]
fn a_line_that_is_not_of_an_export_is_named() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("export.jsonl");
    for (line, message) in [
        ("nonsense", "line 2 of"),
        (r#"{"table":"nothing","record":{}}"#, "line 2 of"),
        (
            r#"{"table":"teams","record":{"project":"acme#apollo"}}"#,
            "has no record with the key of its table",
        ),
    ] {
        let good = r#"{"table":"organizations","record":{"org_id":"acme"}}"#;
        fs::write(&file, format!("{good}\n{line}\n")).unwrap();
        let output = server.output(&["restore", "--from", file.to_str().unwrap()]);
        assert_fails(&output, message);
    }
}

#[test]
fn keys_are_restored_from_a_table_unless_they_were_revoked() {
    let server = Server::with_records();
    let [kept, lost] = [0, 1].map(|_| {
        server
            .run(&["keys", "create", "--org", "acme"])
            .trim()
            .to_owned()
    });
    server.copy_table("KeysTable", "KeysTable-restored");
    server.run(&["keys", "revoke", &kept]);
    server.delete_item("KeysTable", json!({ "key_id": { "S": &lost[4..16] } }));
    let from = ["--from", "KeysTable-restored", "--to", "keys"];
    let use_key = |key: &str| {
        let path = "/api/v1/project/acme/apollo/createNewTeamOnProject";
        server
            .post(path, Some(key), r#"{"teamName":"Docs"}"#)
            .status
    };

    assert_usage_error(
        &server.output(&[&["restore"], &from[..]].concat()),
        "keys are only restored with --keys",
    );
    assert_eq!(use_key(&lost), 401);
    let report = server
        .records(&[&["restore"], &from[..], &["--keys"]].concat())
        .remove(0);

    assert_eq!(report["keys"], json!([&lost[4..16]]));
    // The demo key is the same, and the revoked one differs.
    assert_eq!(report["existed"], 1);
    assert_eq!(report["differ"], 1);
    assert_eq!(use_key(&lost), 204);
    assert_eq!(use_key(&kept), 401);
}
