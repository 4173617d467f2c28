//! `restore`.

use std::{fs, time::Duration};

use serde_json::{Value, json};
use test_support::fixtures::{self, key_record};
use workspace_management::api_key::ApiKey;

use crate::{assert_fails, assert_usage_error, keys, server::Server, text, words};

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

fn json_lines(text: &str) -> Vec<Value> {
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

fn restore(server: &Server, arguments: &[&str]) -> Restored {
    let output = server.output(&[&["restore", "--json"], arguments].concat());
    let errors = text(&output.stderr).to_owned();
    let summary = errors.lines().find(|line| line.contains(" copied, "));
    let numbers = summary.unwrap_or_else(|| panic!("{errors}"));
    let numbers = numbers.split(|c: char| !c.is_ascii_digit());
    let numbers: Vec<_> = numbers.filter_map(|word| word.parse().ok()).collect();
    Restored {
        code: output.status.code().unwrap(),
        counts: numbers.try_into().unwrap(),
        lines: json_lines(text(&output.stdout)),
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
        json_lines(&fs::read_to_string(self.path()).unwrap())
    }
}

fn line(table: &str, record: Value) -> Value {
    json!({ "table": table, "record": record })
}

/// A line with a data store of an organization.
fn data_store(org: &str, id: &str) -> Value {
    let created = "2099-01-01T00:00:00.000Z";
    let record = json!({ "org_id": org, "data_store_id": id, "created_at": created });
    line("data-stores", record)
}

/// The export of an erasure has no marks, which would block the restored organization.
#[test]
fn an_erased_organization_is_restored_from_its_export() {
    let server = Server::with_records();
    server.run(&words("orgs disable acme --wait 0"));
    let input = Input::new(&[]);
    let lines = input.export(&server);
    let path = input.path();
    let from = ["--from", path.as_str()];
    let others = lines.len() as u64 - 1;

    let restored = restore(&server, &from);
    assert_eq!((restored.code, restored.counts), (0, [0, others, 0, 0]));
    let errors = restored.errors;
    assert!(errors.contains("1 key left out"), "{errors}");
    fs::remove_file(&path).unwrap();
    let erase = format!("orgs erase acme --yes --wait 0 --export {path}");
    server.run(&words(&erase));
    // An empty line at the end, as editors add it.
    fs::write(&path, fs::read_to_string(&path).unwrap() + "\n").unwrap();
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
    let user = orphan["record"]["user_id"].as_str().unwrap().to_owned();
    let count = lines.len() as u64;
    lines.push(orphan);
    // An export can have been appended to another one.
    let mut twice = lines.clone();
    twice.push(lines[0].clone());
    input.write(&twice);
    let path = input.path();
    server.erase("acme");

    let planned = restore(&server, &["--from", &path, "--dry-run"]);
    assert_eq!((planned.code, planned.counts), (1, [count, 0, 0, 1]));
    assert_eq!(planned.lines.len() as u64, count + 1);
    assert!(server.valid_records().is_empty());
    let skipped = json!({
        "table": "members", "key": { "team": "acme#apollo#gone", "user_id": user },
        "result": "skipped", "reason": "its team does not exist",
    });
    assert!(planned.lines.contains(&skipped), "{:?}", planned.lines);
    let done = restore(&server, &["--from", &path]);
    assert_eq!((done.code, done.counts), (1, planned.counts));
    // Only what needs attention.
    assert_eq!(done.lines, [skipped]);

    // A restore overwrites nothing.
    let stored = server.valid_records();
    let team = lines.iter_mut().find(|line| line["table"] == "teams");
    team.unwrap()["record"]["team_description"] = json!("other");
    input.write(&lines);
    assert_eq!(counts(&server, &["--from", &path]), [0, count - 1, 1, 1]);
    assert_eq!(server.valid_records(), stored);
    let dry_run = server.output(&["restore", "--from", &path, "--dry-run"]);
    let printed: Vec<_> = text(&dry_run.stdout).lines().collect();
    let skipped = format!("members\tacme#apollo#gone {user}\tskipped: its team does not exist");
    for line in [
        skipped.as_str(),
        "teams\tacme#apollo research-team\tdiffers: team_description",
        "organizations\tacme\texists",
    ] {
        assert!(printed.contains(&line), "{printed:?}");
    }
}

#[test]
fn records_are_skipped_that_belong_to_an_earlier_organization() {
    let server = Server::with_records();
    let organization = server.records(&["orgs", "show", "acme"]).remove(0);
    let created = &organization["created_at"];
    let registered_at = humantime::parse_rfc3339(created.as_str().unwrap()).unwrap();
    let older = |id: &str, seconds: u64| {
        let mut line = data_store("acme", id);
        let time = registered_at - Duration::from_secs(seconds);
        line["record"]["created_at"] = json!(humantime::format_rfc3339_millis(time).to_string());
        line
    };
    // The clock of the operator who registered the organization can be ahead.
    let [clock, old] = [older("clock", 290), older("older", 310)];
    let input = Input::new(&[clock.clone(), old.clone()]);
    let path = input.path();
    let from = ["--from", path.as_str()];
    let restored = restore(&server, &from);
    assert_eq!((restored.code, restored.counts), (1, [1, 0, 0, 1]));
    assert_eq!(restored.lines[0]["key"]["data_store_id"], "older");
    let reason = restored.lines[0]["reason"].as_str().unwrap();
    assert!(reason.contains("an earlier organization"), "{reason}");

    // The same file has another registration of the organization, and then this one.
    let registered = |request_id: &Value| {
        let record = json!({ "org_id": "acme", "created_at": created, "request_id": request_id });
        line("organizations", record)
    };
    let new = data_store("acme", "new");
    input.write(&[registered(&json!("another")), new]);
    assert_eq!(counts(&server, &from), [0, 0, 1, 1]);
    input.write(&[registered(&organization["request_id"]), old]);
    let of_stores = [&from[..], &["--to", "data-stores"]].concat();
    assert_eq!(counts(&server, &of_stores), [1, 0, 0, 0]);
}

/// An interrupted removal or erasure leaves a mark in a backup. A record that is restored has none.
#[test]
fn marks_are_not_restored() {
    let server = Server::with_records();
    let marked = |mut record: Value, mark: &str| {
        record[format!("{mark}_id")] = json!(fixtures::RANDOM_ID);
        record[format!("{mark}_at")] = json!(fixtures::CREATED_AT);
        record
    };
    let organization = marked(fixtures::organization("globex"), "erasing");
    let team = fixtures::team("globex", "apollo", "docs", "Docs");
    let member = fixtures::member("globex", "apollo", "docs", "ada");
    let input = Input::new(&[
        line("organizations", organization),
        line("teams", marked(team, "removing")),
        line("members", member),
    ]);
    assert_eq!(counts(&server, &["--from", &input.path()]), [3, 0, 0, 0]);
    for (_, record) in server.valid_records() {
        assert!(record["removing_id"].is_null() && record["erasing_id"].is_null());
    }
    // Records of a team or an organization that has a mark are skipped.
    let key = json!({ "org_id": { "S": "globex" } });
    let id = json!({ "S": fixtures::RANDOM_ID });
    server.update_item("OrganizationsTable", key, "SET erasing_id = :value", id);
    let store = Input::new(&[data_store("globex", "new")]);
    let restored = restore(&server, &["--from", &store.path()]);
    assert_eq!(
        restored.lines[0]["reason"],
        "its organization is being erased"
    );
}

#[test]
fn only_the_records_in_the_scope_are_restored() {
    let server = Server::start(&["--key-cache", "0"]);
    server.run(&["orgs", "create", "globex"]);
    let mut lines = vec![data_store("acme", "a"), data_store("globex", "b")];
    for (project, team) in [("apollo", "docs"), ("apollo", "ops"), ("zeus", "docs")] {
        let member = fixtures::member("acme", project, team, "ada");
        let new = |mut record: Value| {
            record["created_at"] = json!("2099-01-01T00:00:00.000Z");
            record
        };
        let team = fixtures::team("acme", project, team, team);
        lines.push(line("teams", new(team)));
        lines.push(line("members", new(member)));
    }
    let input = Input::new(&lines);
    let path = input.path();
    let run = |options: &str| counts(&server, &words(options));
    let file = |scope: &str| run(&format!("--from {path} {scope}"));
    let table = |scope: &str| run(&format!("--from DataStoresTable --to data-stores {scope}"));

    assert_eq!(
        file("--org acme --project apollo --team docs"),
        [2, 0, 0, 0]
    );
    assert_eq!(server.count("TeamsTable"), 1);
    assert_eq!(file("--org acme --project apollo"), [2, 2, 0, 0]);
    assert_eq!(file("--org globex"), [1, 0, 0, 0]);
    assert_eq!(file("--org acme --to members --dry-run"), [0, 2, 0, 1]);
    assert_eq!(file("--all-orgs"), [3, 5, 0, 0]);
    assert_eq!(table("--org acme"), [0, 1, 0, 0]);
    assert_eq!(table("--all-orgs"), [0, 2, 0, 0]);

    let output = |line: &str| server.output(&words(line));
    let both = output(&format!("restore --from {path}"));
    assert_usage_error(
        &both,
        "has records of acme and globex: choose one with --org",
    );
    let neither = output(&format!("restore --from {path} --org glbex"));
    assert_fails(&neither, "nothing was restored");
    let without_scope = output("restore --from DataStoresTable --to data-stores");
    assert_usage_error(&without_scope, "choose its records with --org");
    let missing = output("restore --from no/file --to teams --org acme");
    assert_fails(&missing, "there is no file no/file, and the table no/file");
}

/// Each is found before the valid line above it is copied.
#[test]
fn an_invalid_line_stops_the_command_and_is_named() {
    let server = Server::start(&[]);
    let input = Input::new(&[]);
    let path = input.path();
    let good = data_store("acme", "good").to_string();
    let team = || fixtures::team("acme", "apollo", "docs", "Docs");
    let member = fixtures::member("acme", "apollo", "docs", "ada");
    let model = fixtures::model("acme", "chat", "a");
    let key = json!(key_record(
        &ApiKey::generate([1; 8], [[7; 16]; 2]),
        "acme",
        ""
    ));
    #[rustfmt::skip] // keeps tables short
    let changed = [
        ("teams", team(), "org_id", json!("globex"), "org_id and project_id make globex#apollo"),
        ("members", member, "team_id", json!("ops"), "its team is"),
        ("models", model, "model_id", json!("b"), "its model is chat#a"),
        ("teams", team(), "removing_id", json!(null), "its removing_id is null"),
        ("teams", team(), "created_at", json!("now"), "its created_at is \"now\""),
        ("teams", team(), "\u{1b}[31m", json!(1), r"its attribute \u{1b}[31m is not"),
        ("keys", key.clone(), "revoked_at", json!(null), "its revoked_at is null"),
        ("keys", key.clone(), "colour", json!([null]), "its colour is [null]"),
        ("keys", key, "secret_sha256", json!(""), "its secret_sha256 is"),
    ];
    let changed = changed.map(|(table, mut record, name, value, error)| {
        record[name] = value;
        (line(table, record).to_string(), error)
    });
    #[rustfmt::skip]
    let malformed = [
        (&good[..good.len() - 9], "is not complete JSON"),
        ("7", "has no known table"),
        (r#"{"table":"nothing","record":{}}"#, "has no known table"),
        (r#"{"table":"teams"}"#, "has no record"),
        (r#"{"table":"teams","record":{"project":"acme#apollo"}}"#, "it has no team_id"),
        (&good.replace("2099", "2098"), "an earlier line has this record with other values"),
    ];
    let malformed = malformed.map(|(line, error)| (line.to_owned(), error));
    for (line, error) in malformed.into_iter().chain(changed) {
        fs::write(&path, format!("{good}\n{line}\n")).unwrap();
        let output = server.output(&["restore", "--from", &path, "--all-orgs"]);
        assert_fails(&output, error);
    }
    fs::write(&path, [good.as_bytes(), b"\n\xff\n"].concat()).unwrap();
    let output = server.output(&["restore", "--from", &path]);
    assert_fails(&output, "line 2 of");
    assert_eq!(server.count("DataStoresTable"), 0);

    let table = "restore --from OrganizationsTable --to data-stores --org acme";
    let output = server.output(&words(table));
    assert_fails(&output, "OrganizationsTable: data-stores acme : it has no");
}

#[test]
fn a_record_that_dynamodb_rejects_is_skipped_and_the_others_are_copied() {
    let server = Server::start(&[]);
    let key = ApiKey::generate([1; 8], [[7; 16]; 2]);
    let mut record = json!(key_record(&key, "acme", ""));
    record["created_at"] = json!("2099-01-01T00:00:00.000Z");
    record["label"] = json!("x".repeat(400 * 1024));
    let input = Input::new(&[line("keys", record), data_store("acme", "small")]);
    let restored = restore(&server, &["--from", &input.path()]);
    assert_eq!((restored.code, restored.counts), (1, [1, 0, 0, 1]));
    let reason = restored.lines[0]["reason"].as_str().unwrap();
    assert!(
        reason.contains("DynamoDB rejects it: Item size"),
        "{reason}"
    );
}

#[test]
fn keys_are_restored_from_a_table_unless_they_were_revoked() {
    let server = Server::with_records();
    let [kept, lost] = [""; 2].map(|options| keys::create(&server, options));
    let id = |key: &str| json!({ "key_id": { "S": key[4..16] } });
    server.copy_table("KeysTable", "KeysTable-restored");
    server.run(&["keys", "revoke", &kept]);
    server.delete_item("KeysTable", id(&lost));
    let use_key = |key: &str| {
        let path = "/api/v1/project/acme/apollo/createNewTeamOnProject";
        let response = server.post(path, Some(key), r#"{"teamName":"Docs"}"#);
        response.status
    };
    assert_eq!(use_key(&lost), 401);

    let options = words("--from KeysTable-restored --to keys --org acme");
    let restored = restore(&server, &options);

    // The demo key is the same, and the revoked one differs.
    assert_eq!((restored.code, restored.counts), (1, [1, 1, 1, 0]));
    let errors = restored.errors;
    assert!(
        errors.contains("revoked since the backup work again"),
        "{errors}"
    );
    assert_eq!(restored.lines[0]["reason"], "revoked_at, revoked_by");
    assert_eq!([use_key(&lost), use_key(&kept)], [204, 401]);

    // Exports omit the hashes.
    let input = Input::new(&[]);
    input.export(&server);
    let path = input.path();
    let only_keys = server.output(&["restore", "--from", &path, "--to", "keys"]);
    assert_fails(&only_keys, "nothing was restored");
    let all = restore(&server, &["--from", &path]);
    assert_eq!(all.code, 0, "{}", all.errors);
    assert!(all.errors.contains("3 keys left out"), "{}", all.errors);
}
