//! `restore`.

use std::fs;

use serde_json::{Value, json};
use workspace_local::{demo::key_record, fixtures};
use workspace_management::api_key::ApiKey;

use crate::{assert_fails, assert_usage_error, server::Server};

/// What a restore printed.
struct Restored {
    /// The exit code.
    code: i32,
    /// The numbers of records that were copied, exist, differ, and were skipped.
    counts: [u64; 4],
    /// The lines of `--json`.
    lines: Vec<Value>,
    errors: String,
}

fn restore(server: &Server, arguments: &[&str]) -> Restored {
    let output = server.output(&[&["restore", "--json"], arguments].concat());
    let errors = String::from_utf8(output.stderr).unwrap();
    let summary = errors.lines().find(|line| line.contains(" copied, "));
    let numbers = summary.unwrap_or_else(|| panic!("{errors}"));
    let numbers = numbers.split(|c: char| !c.is_ascii_digit());
    let numbers: Vec<_> = numbers.filter_map(|word| word.parse().ok()).collect();
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    Restored {
        code: output.status.code().unwrap(),
        counts: numbers.try_into().unwrap(),
        lines: lines.collect(),
        errors,
    }
}

/// The counts of a restore. Its exit code is 1 if a record was skipped or differs.
#[track_caller]
fn counts(server: &Server, arguments: &[&str]) -> [u64; 4] {
    let Restored { code, counts, .. } = restore(server, arguments);
    assert_eq!(code, i32::from(counts[2] + counts[3] > 0), "{counts:?}");
    counts
}

/// A file in a folder of its own.
struct Input(tempfile::TempDir);

impl Input {
    fn new(lines: &[Value]) -> Self {
        let input = Self(tempfile::tempdir().unwrap());
        input.write(lines);
        input
    }

    fn path(&self) -> String {
        let path = self.0.path().join("export.jsonl");
        path.to_str().unwrap().to_owned()
    }

    fn write(&self, lines: &[Value]) {
        let lines = lines.iter().map(|line| format!("{line}\n"));
        fs::write(self.path(), lines.collect::<String>()).unwrap();
    }

    /// Writes an export of `acme`, and returns its lines.
    fn export(&self, server: &Server) -> Vec<Value> {
        // An export replaces no file.
        let _ = fs::remove_file(self.path());
        server.run(&["orgs", "export", "acme", "--out", &self.path()]);
        let lines = fs::read_to_string(self.path()).unwrap();
        let lines = lines.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

fn line(table: &str, record: Value) -> Value {
    json!({ "table": table, "record": record })
}

/// A line with a data store of an organization.
fn data_store(org: &str, id: &str) -> Value {
    let created = "2099-01-01T00:00:00.000Z";
    line(
        "data-stores",
        json!({ "org_id": org, "data_store_id": id, "created_at": created }),
    )
}

fn erase(server: &Server) {
    server.run(&["orgs", "disable", "acme", "--wait", "0"]);
    let erase = "orgs erase acme --without-export --yes --wait 0";
    server.run(&erase.split(' ').collect::<Vec<_>>());
}

#[test]
fn an_export_is_restored_after_an_erasure() {
    let server = Server::with_records();
    let input = Input::new(&[]);
    let lines = input.export(&server);
    let path = input.path();
    let from = ["--from", path.as_str()];
    let others = lines.len() as u64 - 1;

    let restored = restore(&server, &from);
    assert_eq!(restored.counts, [0, others, 0, 0]);
    assert_eq!(restored.code, 0, "{}", restored.errors);
    assert!(
        restored.errors.contains("1 key left out"),
        "{}",
        restored.errors
    );
    erase(&server);
    assert_eq!(counts(&server, &from), [others, 0, 0, 0]);
    assert_eq!(counts(&server, &from), [0, others, 0, 0]);

    let again = input.export(&server);
    assert_eq!(again.len() as u64, others);
    for mut line in again {
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
    assert_eq!(counts(&server, &["--from", file]), [records - 1, 0, 0, 0]);

    assert_eq!(
        server.records(&["orgs", "show", "acme"])[0]["state"],
        "disabled"
    );
    server.run(&["orgs", "enable", "acme"]);
    let key = server.run(&["keys", "create", "--org", "acme"]);
    assert_eq!(server.create_data_store("acme", key.trim(), "New"), 204);
}

/// Also if members come before their teams, and teams before their organization.
#[test]
fn a_dry_run_prints_what_a_restore_does_with_each_record() {
    let server = Server::with_records();
    let input = Input::new(&[]);
    let mut lines = input.export(&server);
    lines.retain(|line| line["table"] != "keys");
    lines.reverse();
    let member = lines.iter().find(|line| line["table"] == "members");
    let mut orphan = member.unwrap().clone();
    orphan["record"]["team"] = json!("acme#apollo#gone");
    orphan["record"]["team_id"] = json!("gone");
    let count = lines.len() as u64;
    lines.extend([orphan, lines[0].clone()]);
    input.write(&lines);
    let path = input.path();
    erase(&server);

    let dry_run = ["--from", path.as_str(), "--dry-run"];
    let planned = restore(&server, &dry_run);
    assert_eq!((planned.code, planned.counts), (1, [count, 1, 0, 1]));
    assert_eq!(planned.lines.len() as u64, count + 2);
    assert!(server.valid_records().is_empty());
    let skipped = planned
        .lines
        .iter()
        .find(|line| line["result"] == "skipped");
    let user = &member_user(&lines);
    assert_eq!(
        *skipped.unwrap(),
        json!({
            "table": "members", "key": { "team": "acme#apollo#gone", "user_id": user },
            "result": "skipped", "reason": "its team does not exist",
        })
    );

    let done = restore(&server, &["--from", &path]);
    assert_eq!((done.code, done.counts), (1, planned.counts));
    // Only what needs attention.
    assert_eq!(done.lines, [skipped.unwrap().clone()]);
    assert_eq!(counts(&server, &dry_run), [0, count + 1, 0, 1]);
    let text = server.output(&[&["restore"], &dry_run[..]].concat());
    let text = String::from_utf8(text.stdout).unwrap();
    let line = format!("members\tacme#apollo#gone {user}\tskipped: its team does not exist");
    assert!(text.lines().any(|other| other == line), "{text}");
    assert!(
        text.lines()
            .any(|line| line == "organizations\tacme\texists"),
        "{text}"
    );
}

/// The user of the member whose team does not exist.
fn member_user(lines: &[Value]) -> String {
    let mut lines = lines.iter().map(|line| &line["record"]);
    let orphan = lines.find(|record| record["team_id"] == "gone").unwrap();
    orphan["user_id"].as_str().unwrap().to_owned()
}

#[test]
fn a_restore_overwrites_nothing() {
    let server = Server::with_records();
    let input = Input::new(&[]);
    let mut lines = input.export(&server);
    let path = input.path();
    let stored = server.json(&["list", "teams"]);
    let team = lines.iter_mut().find(|line| line["table"] == "teams");
    team.unwrap()["record"]["team_description"] = json!("other");
    input.write(&lines);

    let restored = restore(&server, &["--from", &path, "--to", "teams"]);
    assert_eq!((restored.code, restored.counts), (1, [0, 0, 1, 0]));
    assert_eq!(restored.lines[0]["key"]["team_id"], "research-team");
    assert_eq!(restored.lines[0]["result"], "differs");
    assert_eq!(server.json(&["list", "teams"]), stored);
}

#[test]
fn records_are_skipped_that_belong_to_an_earlier_organization() {
    let server = Server::with_records();
    let organization = server.records(&["orgs", "show", "acme"]).remove(0);
    let created = organization["created_at"].as_str().unwrap();
    let created = humantime::parse_rfc3339(created).unwrap();
    let older = |id: &str, seconds: u64| {
        let mut line = data_store("acme", id);
        let time = created - std::time::Duration::from_secs(seconds);
        line["record"]["created_at"] = json!(humantime::format_rfc3339_millis(time).to_string());
        line
    };
    // The clock of the operator who registered the organization can be ahead.
    let stores = [older("clock", 290), older("older", 310)];
    let input = Input::new(&stores);
    let path = input.path();
    let restored = restore(&server, &["--from", &path]);
    assert_eq!((restored.code, restored.counts), (1, [1, 0, 0, 1]));
    assert_eq!(restored.lines[0]["key"]["data_store_id"], "older");
    let reason = restored.lines[0]["reason"].as_str().unwrap();
    assert!(reason.contains("--force-older"), "{reason}");

    // The same file has another registration of the organization, and then this one.
    let registered = |request_id: &Value| {
        let created = &organization["created_at"];
        line(
            "organizations",
            json!({ "org_id": "acme", "created_at": created, "request_id": request_id }),
        )
    };
    let [clock, old] = stores;
    input.write(&[registered(&json!("another")), old.clone()]);
    assert_eq!(counts(&server, &["--from", &path]), [0, 0, 1, 1]);
    input.write(&[registered(&organization["request_id"]), old]);
    let of_stores = ["--from", path.as_str(), "--to", "data-stores"];
    assert_eq!(counts(&server, &of_stores), [1, 0, 0, 0]);
    input.write(&[older("forced", 9_999_999), clock]);
    let forced = ["--from", path.as_str(), "--force-older"];
    assert_eq!(counts(&server, &forced), [1, 1, 0, 0]);
}

#[test]
fn only_the_records_in_the_scope_are_restored() {
    let server = Server::start(&["--key-cache", "0"]);
    server.run(&["orgs", "create", "globex"]);
    let mut lines = vec![data_store("acme", "a"), data_store("globex", "b")];
    for (project, team) in [("apollo", "docs"), ("apollo", "ops"), ("zeus", "docs")] {
        lines.push(line("teams", fixtures::team("acme", project, team, team)));
        lines.push(line(
            "members",
            fixtures::member("acme", project, team, "ada"),
        ));
    }
    let input = Input::new(&lines);
    let path = input.path();
    let all = ["--from", path.as_str(), "--force-older"];
    let run = |scope: &str| {
        let scope = scope.split_whitespace().collect();
        counts(&server, &[all.to_vec(), scope].concat())
    };
    let output = server.output(&[&["restore"], &all[..]].concat());
    assert_usage_error(
        &output,
        "has records of acme and globex: choose one with --org",
    );

    assert_eq!(run("--org acme --project apollo --team docs"), [2, 0, 0, 0]);
    assert_eq!(server.count("TeamsTable"), 1);
    assert_eq!(run("--org acme --project apollo"), [2, 2, 0, 0]);
    assert_eq!(run("--org globex"), [1, 0, 0, 0]);
    assert_eq!(run("--org acme --to members --dry-run"), [0, 2, 0, 1]);
    assert_eq!(run("--all-orgs"), [3, 5, 0, 0]);
    let output = server.output(&["restore", "--from", &path, "--org", "glbex"]);
    assert_fails(&output, "nothing was restored");

    let table = [
        "restore",
        "--from",
        "DataStoresTable",
        "--to",
        "data-stores",
    ];
    assert_usage_error(&server.output(&table), "choose its records with --org");
    let missing = "restore --from no/file --to teams --org acme";
    let missing = server.output(&missing.split(' ').collect::<Vec<_>>());
    assert_fails(&missing, "there is no file no/file, and the table no/file");
    let table = &table[1..];
    assert_eq!(
        counts(&server, &[table, &["--org", "acme"]].concat()),
        [0, 1, 0, 0]
    );
    assert_eq!(
        counts(&server, &[table, &["--all-orgs"]].concat()),
        [0, 2, 0, 0]
    );
}

/// Each is found before the valid line above it is copied.
#[test]
fn an_invalid_line_stops_the_command_and_is_named() {
    let server = Server::start(&[]);
    let input = Input::new(&[]);
    let path = input.path();
    let good = data_store("acme", "good").to_string();
    let changed = |table: &str, mut record: Value, name: &str, value: Value| {
        record[name] = value;
        line(table, record).to_string()
    };
    let team = || fixtures::team("acme", "apollo", "docs", "Docs");
    let member = || fixtures::member("acme", "apollo", "docs", "ada");
    let model = || fixtures::model("acme", "chat", "a");
    let key = key_record(&ApiKey::generate([1; 8], [[7; 16]; 2]), "acme", "");
    for (line, message) in [
        ("nonsense".to_owned(), "line 2 of"),
        (good[..good.len() - 9].to_owned(), "is not complete JSON"),
        ("7".to_owned(), "has no known table"),
        (line("nothing", json!({})).to_string(), "has no known table"),
        (r#"{"table":"teams"}"#.to_owned(), "has no record"),
        (
            line("teams", json!({ "project": "acme#apollo" })).to_string(),
            "it has no team_id",
        ),
        (
            changed("teams", team(), "org_id", json!("globex")),
            "teams acme#apollo docs: its project is acme#apollo, but its org_id and project_id make globex#apollo",
        ),
        (
            changed("members", member(), "team_id", json!("ops")),
            "its team is",
        ),
        (
            changed("models", model(), "model_id", json!("b")),
            "its model is chat#a",
        ),
        (
            changed("teams", team(), "removing_id", json!(null)),
            "its removing_id is null",
        ),
        (
            changed("teams", team(), "created_at", json!("now")),
            "its created_at is \"now\"",
        ),
        (
            changed("teams", team(), "\u{1b}[31m", json!(1)),
            r"its attribute \u{1b}[31m is not",
        ),
        (
            line("organizations", data_store("x", "y")["record"].clone()).to_string(),
            "data_store_id",
        ),
        (
            changed("keys", json!(key), "revoked_at", json!(null)),
            "its revoked_at is null",
        ),
        (
            changed("keys", json!(key), "colour", json!([null])),
            "its colour is [null]",
        ),
        (
            changed("keys", json!(key), "secret_sha256", json!("")),
            "its secret_sha256 is",
        ),
    ] {
        fs::write(&path, format!("{good}\n{line}\n")).unwrap();
        let output = server.output(&["restore", "--from", &path, "--all-orgs", "--keys"]);
        assert_fails(&output, message);
    }
    fs::write(&path, [good.as_bytes(), b"\n\xff\n"].concat()).unwrap();
    let output = server.output(&["restore", "--from", &path]);
    assert_fails(&output, "line 2 of");
    assert_eq!(server.count("DataStoresTable"), 0);

    server.run(&["orgs", "create", "globex"]);
    let table = "restore --from OrganizationsTable --to data-stores --org globex";
    let output = server.output(&table.split(' ').collect::<Vec<_>>());
    assert_fails(
        &output,
        "OrganizationsTable: data-stores globex : it has no data_store_id",
    );
}

#[test]
fn a_record_that_dynamodb_rejects_is_skipped_and_the_others_are_copied() {
    let server = Server::start(&[]);
    let registration = server.records(&["orgs", "show", "acme"])[0]["request_id"].clone();
    let key = |number: u8, size: usize| {
        let key = ApiKey::generate([number; 8], [[7; 16]; 2]);
        let mut record = json!(key_record(&key, "acme", ""));
        record["org_request_id"] = registration.clone();
        let missing = size - record.to_string().len();
        record["label"] = json!("x".repeat(missing));
        line("keys", record)
    };
    // More than the 4 MB of a transaction, and one that exceeds 400 KB with the marks of a restore.
    let mut lines: Vec<_> = (0..12).map(|number| key(number, 390_000)).collect();
    lines.push(key(12, 400 * 1024));
    lines.push(data_store("acme", "small"));
    let mut large = data_store("acme", "large");
    large["record"]["data_store_description"] = json!("x".repeat(1_000_000));
    lines.push(large);
    let input = Input::new(&lines);
    let restored = restore(&server, &["--from", &input.path(), "--keys"]);
    assert_eq!((restored.code, restored.counts), (1, [13, 0, 0, 2]));
    let skipped = restored
        .lines
        .iter()
        .filter(|line| line["result"] == "skipped");
    let reasons: Vec<_> = skipped
        .map(|line| line["reason"].as_str().unwrap())
        .collect();
    assert!(
        reasons
            .iter()
            .any(|reason| reason.starts_with("DynamoDB rejects it: Item size")),
        "{reasons:?}"
    );
    assert!(
        reasons
            .iter()
            .any(|reason| reason.contains("larger than 400 KB")),
        "{reasons:?}"
    );
}

#[test]
fn keys_are_restored_from_a_table_unless_they_were_revoked() {
    let server = Server::with_records();
    let [kept, lost, other] = [0, 1, 2].map(|_| {
        let key = server.run(&["keys", "create", "--org", "acme"]);
        key.trim().to_owned()
    });
    let registration = server.records(&["orgs", "show", "acme"])[0]["request_id"].clone();
    for (key, registration) in [
        ("acmeDemoKey1", &registration),
        (&kept[4..16], &registration),
        (&lost[4..16], &registration),
        (&other[4..16], &json!("another")),
    ] {
        let update = json!({
            "TableName": "KeysTable", "Key": { "key_id": { "S": key } },
            "UpdateExpression": "SET org_request_id = :id",
            "ExpressionAttributeValues": { ":id": { "S": registration } },
        });
        server.dynamodb("UpdateItem", &update);
    }
    server.copy_table("KeysTable", "KeysTable-restored");
    server.run(&["keys", "revoke", &kept]);
    for key in [&lost, &other] {
        server.delete_item("KeysTable", json!({ "key_id": { "S": &key[4..16] } }));
    }
    let from = "--from KeysTable-restored --to keys --org acme";
    let from: Vec<_> = from.split(' ').collect();
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
    let restored = restore(&server, &[&from[..], &["--keys"]].concat());
    // The demo key is the same, and the revoked one differs.
    assert_eq!((restored.code, restored.counts), (1, [1, 1, 1, 1]));
    let line = |key: &str| {
        let mut lines = restored.lines.iter();
        lines.find(|line| line["key"]["key_id"] == key[4..16])
    };
    assert_eq!(line(&lost).unwrap()["reason"], "it can be used again");
    assert_eq!(line(&kept).unwrap()["result"], "differs");
    assert_eq!(
        line(&other).unwrap()["reason"],
        "it belongs to another registration of its organization"
    );
    assert_eq!(use_key(&lost), 204);
    assert_eq!(use_key(&kept), 401);
    assert_eq!(use_key(&other), 401);

    // Exports omit the hashes.
    let input = Input::new(&[]);
    input.export(&server);
    let path = input.path();
    let restored = restore(&server, &["--from", &path, "--keys", "--to", "keys"]);
    assert_eq!((restored.code, restored.counts), (1, [0, 0, 0, 3]));
}
