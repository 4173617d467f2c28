//! `restore`.

use std::{
    fs,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use test_support::fixtures;
use workspace_management::records::Table;

use crate::{
    assert_fails, assert_usage_error, export_of, json_lines, keys, new_file, server::Server, text,
};

/// What a restore printed.
struct Restored {
    /// The exit code.
    code: i32,
    /// The numbers of records that were copied, exist, differ, and were skipped.
    counts: [usize; 4],
    /// The entries of `--json`.
    lines: Vec<Value>,
    errors: String,
}

fn restore(server: &Server, options: &str) -> Restored {
    let output = server.output(&format!("restore --json {options}"));
    let errors = text(&output.stderr).to_owned();
    let summary = errors.lines().find(|line| line.contains(" copied, "));
    let summary = summary.unwrap_or_else(|| panic!("{errors}"));
    let (_, numbers) = summary.rsplit_once(": ").unwrap();
    let numbers = numbers.split(|c: char| !c.is_ascii_digit());
    let numbers: Vec<_> = numbers.filter_map(|word| word.parse().ok()).collect();
    Restored {
        code: output.status.code().unwrap(),
        counts: numbers.try_into().unwrap(),
        lines: serde_json::from_slice(&output.stdout).unwrap(),
        errors,
    }
}

/// The counts of a restore. Its exit code is 1 if a record was skipped or differs.
#[track_caller]
fn counts(server: &Server, options: &str) -> [usize; 4] {
    let Restored { code, counts, .. } = restore(server, options);
    assert_eq!(code, i32::from(counts[2] + counts[3] > 0), "{counts:?}");
    counts
}

/// A file in a folder of its own.
struct Input {
    _folder: tempfile::TempDir,
    path: String,
    /// The options to restore it.
    from: String,
}

impl Input {
    fn new(records: &[(Table, Value)]) -> Self {
        let (folder, path) = new_file();
        fs::write(&path, export_of(records)).unwrap();
        Self {
            _folder: folder,
            from: format!("--from {path}"),
            path,
        }
    }

    /// A file with the records of `acme`, which are also returned.
    fn export(server: &Server) -> (Self, Vec<Value>) {
        let input = Self::new(&[]);
        let export = server.run("orgs export acme");
        fs::write(&input.path, &export).unwrap();
        (input, json_lines(&export))
    }

    fn write(&self, lines: &[Value]) {
        let lines = lines.iter().map(|line| format!("{line}\n"));
        fs::write(&self.path, lines.collect::<String>()).unwrap();
    }
}

/// The record, as if it was created after every organization.
fn new(mut record: Value) -> Value {
    record["created_at"] = json!("2099-01-01T00:00:00.000Z");
    record
}

/// A data store of an organization.
fn data_store(org: &str, id: &str) -> (Table, Value) {
    let record = json!({ "org_id": org, "data_store_id": id });
    (Table::DATA_STORES, new(record))
}

/// The export of an erasure has no marks, which would block the restored organization.
#[test]
fn an_erased_organization_is_restored_from_its_export() {
    let server = Server::with_records();
    server.run("orgs disable acme --wait 0");
    let (input, lines) = Input::export(&server);
    let (path, from) = (&input.path, &*input.from);
    let others = lines.len() - 1;

    fs::remove_file(path).unwrap();
    server.run(&format!("orgs erase acme --yes --wait 0 --export {path}"));
    // A byte order mark and an empty line at the end, as editors add them.
    let text = fs::read_to_string(path).unwrap();
    fs::write(path, format!("\u{feff}{text}\n")).unwrap();
    let restored = restore(&server, from);
    assert_eq!((restored.code, restored.counts), (0, [others, 0, 0, 0]));
    let errors = restored.errors;
    assert!(errors.contains("leaving out 1 key,"), "{errors}");
    assert_eq!(counts(&server, from), [0, others, 0, 0]);

    let (_, again) = Input::export(&server);
    assert_eq!(again.len(), others);
    for mut line in again {
        let record = line["record"].as_object_mut().unwrap();
        assert_eq!(record.remove("restored_by").unwrap(), server.operator());
        assert!(record.remove("restored_at").is_some());
        assert!(record.remove("restored_request_id").is_some());
        assert!(lines.contains(&line), "{line}");
    }
    server.run("orgs enable acme");
    let key = server.run("keys create --org acme");
    assert_eq!(server.create_data_store("acme", key.trim(), "New"), 204);
}

/// Even if the file has members before their teams, and teams before their organization.
#[test]
fn a_dry_run_prints_what_a_restore_does_with_each_record() {
    let server = Server::with_records();
    let (input, mut lines) = Input::export(&server);
    let from = &*input.from;
    let dry_run = format!("{from} --dry-run");
    lines.retain(|line| line["table"] != "keys");
    lines.reverse();
    let count = lines.len();
    let orphan = fixtures::member("acme", "apollo", "gone", "ada");
    lines.push(json!({ "table": "members", "record": orphan }));
    // A file can contain several exports, and so the same line twice.
    input.write(&[&lines[..], &lines[..1]].concat());
    server.run("orgs disable acme --wait 0");
    server.run("orgs erase acme --without-export --yes --wait 0");

    let planned = restore(&server, &dry_run);
    assert_eq!((planned.code, planned.counts), (1, [count, 0, 0, 1]));
    assert_eq!(planned.lines.len(), count + 1);
    assert!(server.valid_records().is_empty());
    let skipped = json!({
        "table": "members", "key": { "team": "acme#apollo#gone", "user_id": "ada" },
        "result": "skipped", "reason": "its team does not exist",
    });
    assert!(planned.lines.contains(&skipped), "{:?}", planned.lines);
    let done = restore(&server, from);
    assert_eq!((done.code, done.counts), (1, planned.counts));
    // Without `--dry-run`, only the record that was skipped is printed.
    assert_eq!(done.lines, [skipped]);

    // A restore overwrites nothing.
    let stored = server.valid_records();
    let team = lines.iter_mut().find(|line| line["table"] == "teams");
    team.unwrap()["record"]["team_description"] = json!("other");
    input.write(&lines);
    assert_eq!(counts(&server, from), [0, count - 1, 1, 1]);
    assert_eq!(server.valid_records(), stored);
    let dry_run = server.output(&format!("restore {dry_run}"));
    let printed: Vec<_> = text(&dry_run.stdout).lines().collect();
    for line in [
        "members\tacme#apollo#gone ada\tskipped: its team does not exist",
        "teams\tacme#apollo research-team\tdiffers: team_description",
        "organizations\tacme\texists",
    ] {
        assert!(printed.contains(&line), "{printed:?}");
    }
}

#[test]
fn records_are_skipped_that_belong_to_an_earlier_organization() {
    let server = Server::with_records();
    let organization = server.json("orgs show acme");
    let created = &organization["created_at"];
    let registered_at = humantime::parse_rfc3339(created.as_str().unwrap()).unwrap();
    let older = |id: &str, seconds: u64| {
        let (table, mut record) = data_store("acme", id);
        let time = registered_at - Duration::from_secs(seconds);
        record["created_at"] = json!(humantime::format_rfc3339_millis(time).to_string());
        (table, record)
    };
    let old = older("older", 310);
    // The clock of the operator who registered the organization can be ahead.
    let input = Input::new(&[older("clock", 290), old.clone()]);
    let restored = restore(&server, &input.from);
    assert_eq!((restored.code, restored.counts), (1, [1, 0, 0, 1]));
    assert_eq!(restored.lines[0]["key"]["data_store_id"], "older");
    let reason = restored.lines[0]["reason"].as_str().unwrap();
    assert!(reason.contains("an earlier organization"), "{reason}");

    // The source has a different registration of the organization, and then the existing one.
    let registered = |request_id: &Value| {
        let record = json!({ "org_id": "acme", "created_at": created, "request_id": request_id });
        (Table::ORGANIZATIONS, record)
    };
    let other = Input::new(&[registered(&json!("different")), data_store("acme", "new")]);
    assert_eq!(counts(&server, &other.from), [0, 0, 1, 1]);
    let same = Input::new(&[registered(&organization["request_id"]), old]);
    let of_stores = format!("{} --to data-stores", same.from);
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
        (Table::ORGANIZATIONS, organization),
        (Table::TEAMS, marked(team, "removing")),
        (Table::TEAM_MEMBERS, member),
    ]);
    assert_eq!(counts(&server, &input.from), [3, 0, 0, 0]);
    for (_, record) in server.valid_records() {
        assert!(record["removing_id"].is_null() && record["erasing_id"].is_null());
    }
    // A removal that was cancelled after the export is no difference.
    let key = json!({ "project": { "S": "globex#apollo" }, "team_id": { "S": "docs" } });
    let time = json!({ "S": fixtures::CREATED_AT });
    server.update_item("TeamsTable", key, "SET removal_cancelled_at = :value", time);
    assert_eq!(counts(&server, &input.from), [0, 3, 0, 0]);
    // Records of a team or an organization that has a mark are skipped.
    let key = json!({ "project": { "S": "globex#apollo" }, "team_id": { "S": "docs" } });
    let id = json!({ "S": fixtures::RANDOM_ID });
    server.update_item("TeamsTable", key, "SET removing_id = :value", id.clone());
    let member = new(fixtures::member("globex", "apollo", "docs", "grace"));
    let member = Input::new(&[(Table::TEAM_MEMBERS, member)]);
    let restored = restore(&server, &member.from);
    let reason = &restored.lines[0]["reason"];
    assert_eq!(reason, "its team is being removed");
    let key = json!({ "org_id": { "S": "globex" } });
    server.update_item("OrganizationsTable", key, "SET erasing_id = :value", id);
    let store = Input::new(&[data_store("globex", "new")]);
    let restored = restore(&server, &store.from);
    let reason = &restored.lines[0]["reason"];
    assert_eq!(reason, "its organization is being erased");
}

#[test]
fn only_the_records_in_the_scope_are_restored() {
    let server = Server::start();
    server.run("orgs create globex");
    let mut records = vec![data_store("acme", "a"), data_store("globex", "b")];
    for (project, team) in [("apollo", "docs"), ("apollo", "ops"), ("zeus", "docs")] {
        let member = fixtures::member("acme", project, team, "ada");
        let team = fixtures::team("acme", project, team, team);
        records.push((Table::TEAMS, new(team)));
        records.push((Table::TEAM_MEMBERS, new(member)));
    }
    let input = Input::new(&records);
    let from = &input.from;
    let file = |scope: &str| counts(&server, &format!("{from} {scope}"));
    let from_table = "--from DataStoresTable --to data-stores";
    let table = |scope: &str| counts(&server, &format!("{from_table} {scope}"));

    assert_eq!(file("--org acme --to teams"), [3, 0, 0, 0]);
    assert_eq!(file("--org globex"), [1, 0, 0, 0]);
    assert_eq!(file("--org acme --to members --dry-run"), [3, 0, 0, 0]);
    assert_eq!(file("--all-orgs"), [4, 4, 0, 0]);
    assert_eq!(table("--org acme"), [0, 1, 0, 0]);
    assert_eq!(table("--all-orgs"), [0, 2, 0, 0]);

    let output = |options: &str| server.output(&format!("restore {options}"));
    let error = "such as acme and globex: choose one with --org";
    assert_usage_error(&output(from), error);
    let neither = output(&format!("{from} --org glbex"));
    assert_fails(&neither, "nothing was restored");
    assert_usage_error(&output(from_table), "pass --to KIND, and --org ORG");
    let missing = output("--from no/file --to teams --org acme");
    assert_fails(&missing, "there is no file no/file, and the table no/file");
}

/// The command finds the invalid line before it copies the valid line above.
#[test]
fn an_invalid_line_stops_the_command_and_is_named() {
    let server = Server::start();
    let input = Input::new(&[]);
    let good = export_of(&[data_store("acme", "good")]);
    let check = |line: &str, error: &str| {
        fs::write(&input.path, [&good, line].concat()).unwrap();
        let output = server.output(&format!("restore {} --all-orgs", input.from));
        assert_fails(&output, error);
    };
    let check_changed = |table, mut record: Value, name: &str, value, error: &str| {
        record[name] = value;
        check(&export_of(&[(table, record)]), error);
    };
    let check_team = |name: &str, value, error: &str| {
        let team = fixtures::team("acme", "apollo", "docs", "Docs");
        check_changed(Table::TEAMS, team, name, value, error);
    };
    let member = fixtures::member("acme", "apollo", "docs", "ada");
    let model = fixtures::model("acme", "chat", "a");
    let (table, name, value) = (Table::TEAM_MEMBERS, "team_id", json!("ops"));
    check_changed(table, member, name, value, "its team is");
    let (table, name, value) = (Table::MODELS, "model_id", json!("b"));
    check_changed(table, model, name, value, "its model is chat#a");
    check_team("org_id", json!("globex"), "project_id make globex#apollo");
    check_team("removing_id", json!(null), "its removing_id is null");
    check_team("created_at", json!("now"), "its created_at is \"now\"");
    check_team("\u{1b}[31m", json!(1), r"its attribute \u{1b}[31m is not");
    check(&good[..good.len() - 9], "line 2 of");
    check(&good[..good.len() - 9], "is not valid JSON");
    check(r#"{"table":"nothing","record":{}}"#, "an unknown kind");
    check(r#"{"table":"teams"}"#, "has no record");
    let other = good.replace("2099", "2098");
    check(
        &other,
        "an earlier line has this record with different values",
    );
    assert_eq!(server.count("DataStoresTable"), 0);

    let table = "restore --from OrganizationsTable --to data-stores --org acme";
    let error = "OrganizationsTable: data-stores acme : it has no";
    assert_fails(&server.output(table), error);
}

#[test]
fn an_empty_table_is_restored_and_named() {
    let server = Server::start();
    let from = "restore --json --from ModelsTable --to models";
    let output = server.output(&format!("{from} --all-orgs"));
    assert!(output.status.success(), "{output:?}");
    let message = "nothing to restore: ModelsTable is empty";
    let errors = text(&output.stderr);
    assert!(errors.contains(message), "{errors}");
    assert_eq!(text(&output.stdout), "[]\n");
    // A run that changes nothing has no entry.
    assert_eq!(server.count("HistoryTable"), 0);
}

/// Each of these records needs 2 units. The last one is written after 20 units.
#[test]
fn write_units_limit_the_speed_of_a_restore() {
    let server = Server::start();
    let large = |index| {
        let (table, mut record) = data_store("acme", &format!("a{index}"));
        record["data_store_description"] = json!("x".repeat(1000));
        (table, record)
    };
    let input = Input::new(&(0..11).map(large).collect::<Vec<_>>());
    let start = Instant::now();
    let restored = counts(&server, &format!("{} --write-units 20", input.from));
    assert_eq!(restored, [11, 0, 0, 0]);
    let duration = start.elapsed();
    assert!(duration >= Duration::from_secs(1), "{duration:?}");
    let none = server.output(&format!("restore {} --write-units 0", input.from));
    assert_usage_error(&none, "--write-units");
}

#[test]
fn keys_are_restored_from_a_table_unless_they_were_revoked() {
    let server = Server::with_records();
    let [kept, lost] = ["--project apollo"; 2].map(|options| keys::create(&server, options));
    let id = |key: &str| json!({ "key_id": { "S": key[4..16] } });
    let table = "KeysTable-restored";
    let key = json!({ "AttributeName": "key_id", "KeyType": "HASH" });
    let attribute = json!({ "AttributeName": "key_id", "AttributeType": "S" });
    let create = json!({ "TableName": table, "KeySchema": [key],
        "AttributeDefinitions": [attribute], "BillingMode": "PAY_PER_REQUEST" });
    server.dynamodb("CreateTable", &create);
    let scan = server.dynamodb("Scan", &json!({ "TableName": "KeysTable" }));
    for item in scan["Items"].as_array().unwrap() {
        server.dynamodb("PutItem", &json!({ "TableName": table, "Item": item }));
    }
    server.run(&format!("keys revoke {kept}"));
    server.dynamodb(
        "DeleteItem",
        &json!({ "TableName": "KeysTable", "Key": id(&lost) }),
    );
    let use_key = |key: &str| server.create_team("acme", key, "Docs");
    assert_eq!(use_key(&lost), 401);

    let options = "--from KeysTable-restored --to keys --org acme";
    let restored = restore(&server, options);

    // The demo key is the same, and the revoked one differs.
    assert_eq!((restored.code, restored.counts), (1, [1, 1, 1, 0]));
    let errors = restored.errors;
    let warning = "copying a key that was revoked after the backup makes it valid again";
    assert!(errors.contains(warning), "{errors}");
    assert_eq!(restored.lines[0]["reason"], "revoked_at, revoked_by");
    assert_eq!([use_key(&lost), use_key(&kept)], [204, 401]);

    // Exports omit the hashes.
    let (input, _) = Input::export(&server);
    let only_keys = server.output(&format!("restore {} --to keys", input.from));
    assert_fails(&only_keys, "nothing was restored");
    let all = restore(&server, &input.from);
    assert_eq!(all.code, 0, "{}", all.errors);
    assert!(all.errors.contains("leaving out 3 keys,"), "{}", all.errors);
}
