//! A command that is killed at any request loses nothing and revives nothing: the next run finishes
//! its work. Each test kills a command at each of its requests, before and after DynamoDB handles
//! the request.

use std::{collections::BTreeMap, fs, process::Output};

use serde_json::{Map, Value, json};
use test_support::{
    faults::Phase,
    fixtures::{self, key_record},
};
use workspace_management::{api_key::ApiKey, records::Table};
use workspace_records::{kinds::HISTORY, schemas};

use crate::{network::Network, text};

const USERS: [&str; 3] = ["ada", "grace", "zoe"];

/// What the second run of a command printed, and what both runs wrote.
struct Runs {
    second: Output,
    printed: String,
    exported: String,
}

impl Runs {
    /// Asserts that the second run has finished the work. If the first run had finished it, the
    /// second run may fail with this error.
    #[track_caller]
    fn assert_done(&self, error_if_done: Option<&str>) {
        let error = text(&self.second.stderr);
        let is_done = error_if_done.is_some_and(|text| error.contains(text));
        assert!(self.second.status.success() || is_done, "{error}");
    }

    /// Asserts that these names were exported, and no mark.
    #[track_caller]
    fn assert_exported(&self, names: &[&str]) {
        let exported = &self.exported;
        for name in names {
            assert!(
                exported.contains(&format!("\"{name}\"")),
                "{name}: {exported}"
            );
        }
        assert!(!exported.contains("removing_"), "{exported}");
    }
}

/// Kills a command at each of its requests, runs it again, and checks the result of both runs. In
/// `line`, `FILE` stands for a new file. Each run has a different file.
fn kill_everywhere(line: &str, prepare: fn() -> Network, check: impl Fn(&Network, &Runs)) {
    let mut requests = 0;
    loop {
        let mut is_killed = false;
        for phase in [Phase::AfterExecution, Phase::BeforeExecution] {
            let network = prepare();
            let before = records(&network);
            let folder = tempfile::tempdir().unwrap();
            let files = ["first", "second"].map(|name| folder.path().join(name));
            let lines = files
                .each_ref()
                .map(|file| line.replace("FILE", file.to_str().unwrap()));
            let first = network.kill_at(requests, phase, &lines[0]);
            is_killed = !first.status.success();
            let second = network.output(&lines[1]);
            let exported = files.map(|file| fs::read_to_string(file).unwrap_or_default());
            let runs = Runs {
                printed: [text(&first.stdout), text(&second.stdout)].concat(),
                exported: exported.concat(),
                second,
            };
            check(&network, &runs);
            assert_complete_history(&before, &network);
        }
        if !is_killed {
            break;
        }
        requests += 1;
    }
    assert!(requests > 1, "{line}: {requests} requests");
}

/// The attributes of records, by the primary key.
type Records = BTreeMap<String, Map<String, Value>>;

/// All records, without secrets and marks.
fn records(network: &Network) -> Records {
    let mut records = Records::new();
    for table in Table::ALL {
        for mut record in network.dynamodb.records(*table) {
            let record = record.as_object_mut().unwrap();
            let key = table.primary_key_attributes.iter();
            let key: Value = key.map(|name| (*name, record.remove(*name))).collect();
            record.retain(|name, _| {
                !["secret_sha256", "last_four"].contains(&&**name)
                    && !name.starts_with("removing_")
                    && !name.starts_with("erasing_")
            });
            records.insert(key.to_string(), record.clone());
        }
    }
    records
}

/// Asserts that each change has its entry and each entry its change: the entries of single changes
/// turn the earlier records into the present ones. An entry of a long change allows all changes of
/// its record and of what is in it.
fn assert_complete_history(before: &Records, network: &Network) {
    let mut replayed = before.clone();
    let mut after = records(network);
    let mut entries = network.dynamodb.records(HISTORY);
    entries.sort_by_key(|entry| entry["entry_id"].to_string());
    for entry in &entries {
        assert_eq!(schemas::errors(HISTORY, entry), [""; 0]);
        let key = &entry["key"];
        if entry["phase"].is_string() {
            let parts = [&key["project"], &key["team_id"], &key["org_id"]];
            let parts: Vec<_> = parts.into_iter().filter_map(Value::as_str).collect();
            let (key, parts) = (key.to_string(), parts.join("#"));
            let is_outside = |record: &String| !record.contains(&parts) && *record != key;
            replayed.retain(|record, _| is_outside(record));
            after.retain(|record, _| is_outside(record));
            continue;
        }
        let record = replayed.entry(key.to_string()).or_default();
        for (name, value) in entry["before"].as_object().unwrap() {
            assert_eq!(record.remove(name).as_ref(), Some(value), "{entry}");
        }
        record.extend(entry["after"].as_object().unwrap().clone());
    }
    replayed.retain(|_, record| !record.is_empty());
    assert_eq!(replayed, after, "{entries:#?}");
}

fn with_team() -> Network {
    Network::with_team(&USERS)
}

#[test]
fn a_change_of_one_record() {
    for line in [
        "edit team --org acme --project apollo docs --name Manuals --yes",
        "keys create --org acme",
        "keys revoke --all --org acme --yes",
        "orgs create globex",
        "orgs disable acme --no-wait",
        "remove member --org acme --project apollo --team docs ada",
    ] {
        kill_everywhere(line, with_keys, |_, _| {});
    }
}

#[test]
fn a_removal_of_a_team() {
    let line = "remove team --org acme --project apollo docs --wait 0 --yes --export FILE";
    kill_everywhere(line, with_team, |network, runs| {
        runs.assert_done(Some("does not exist in this project"));
        for table in [Table::TEAMS, Table::TEAM_MEMBERS] {
            assert!(network.dynamodb.records(table).is_empty());
        }
        runs.assert_exported(&["Docs", "ada", "grace", "zoe"]);
    });
}

#[test]
fn a_removal_of_a_member_of_all_teams() {
    let line = "remove member --org acme --all-teams ada --yes --export FILE";
    kill_everywhere(line, with_team, |network, runs| {
        let members = network.dynamodb.records(Table::TEAM_MEMBERS);
        assert_eq!(members.len(), USERS.len() - 1);
        runs.assert_exported(&["ada"]);
    });
}

#[test]
fn a_cancel() {
    let line = "remove team --org acme --project apollo docs --cancel";
    let prepare = || {
        let network = with_team();
        let mut team = network.dynamodb.records(Table::TEAMS).remove(0);
        team["removing_id"] = json!(fixtures::RANDOM_ID);
        network.dynamodb.put(Table::TEAMS, team);
        network
    };
    kill_everywhere(line, prepare, |network, runs| {
        runs.assert_done(None);
        let teams = network.dynamodb.records(Table::TEAMS);
        assert_eq!(teams[0]["removing_id"], Value::Null);
        network.assert_valid_records();
    });
}

#[test]
fn an_erasure() {
    let prepare = || {
        let network = with_team();
        network.disable_acme();
        network
    };
    let line = "orgs erase acme --wait 0 --yes --export FILE";
    kill_everywhere(line, prepare, |network, runs| {
        runs.assert_done(Some("there is no organization acme"));
        for table in Table::ALL {
            assert!(network.dynamodb.records(*table).is_empty());
        }
        let entries = network.dynamodb.records(HISTORY);
        assert_eq!(entries.len(), 1, "{entries:?}");
        assert_eq!(entries[0]["phase"], "end");
        runs.assert_exported(&["Docs", "ada", "grace", "zoe"]);
    });
}

#[test]
fn a_restore() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let export = with_team().output("orgs export acme");
    fs::write(file.path(), export.stdout).unwrap();
    let line = format!("restore --from {}", file.path().display());
    kill_everywhere(&line, Network::new, |network, runs| {
        runs.assert_done(None);
        let tables = [Table::ORGANIZATIONS, Table::TEAMS, Table::TEAM_MEMBERS];
        let counts = tables.map(|table| network.dynamodb.records(table).len());
        assert_eq!(counts, [1, 1, USERS.len()]);
        network.assert_valid_records();
    });
}

/// Each new key was printed, or the next run names it.
#[test]
fn a_rotation() {
    let [first, second] = keys().map(|key| key[4..16].to_owned());
    let line = format!("keys rotate {first} {second}");
    kill_everywhere(&line, with_keys, |network, runs| {
        let error = text(&runs.second.stderr);
        for key in network.dynamodb.records(Table::API_KEYS) {
            let id = key["key_id"].as_str().unwrap();
            let is_old = key["replaces"] == Value::Null;
            let is_named = runs.printed.contains(id) || error.contains(id);
            assert!(is_old || is_named, "{id}: {error}");
            assert!(!is_old || key["replaced_by"].is_string(), "{key}");
            // The old key expires, or the next run says that it does not.
            let is_interrupted = is_old && key["replaced_at"] == Value::Null;
            let end = format!("run `workspacectl keys revoke {id}`");
            assert!(!is_interrupted || error.contains(&end), "{id}: {error}");
        }
    });
}

fn with_keys() -> Network {
    let network = with_team();
    for key in keys() {
        let record = key_record(&key, "acme", "");
        network.dynamodb.put(Table::API_KEYS, record);
    }
    network
}

fn keys() -> [String; 2] {
    [1, 2].map(|id| ApiKey::encode([id; 8], [[7; 16]; 2]))
}
