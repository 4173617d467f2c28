//! A command that is killed at any request loses nothing and revives nothing: the next run finishes its
//! work. Every request is the last one of a run, and DynamoDB handles it or not.

use std::{collections::BTreeSet, fs, process::Output};

use serde_json::{Value, json};
use test_support::fixtures::{self, key_record};
use workspace_management::{api_key::ApiKey, store::Table};

use crate::{network::Network, text};

const USERS: [&str; 3] = ["ada", "grace", "zoe"];

/// Kills a command at each of its requests, runs it again, and checks the result of both runs. `line` has
/// `FILE` instead of a new file, which is another one for the second run.
fn kill_everywhere(line: &str, prepare: fn() -> Network, check: impl Fn(&Network, [&Run; 2])) {
    let mut requests = 0;
    loop {
        let mut is_killed = false;
        for is_handled in [true, false] {
            let network = prepare();
            let folder = tempfile::tempdir().unwrap();
            let files = ["first", "second"].map(|name| folder.path().join(name));
            let [first, second] = files.each_ref().map(|file| {
                let file = file.to_str().unwrap();
                line.replace("FILE", file)
            });
            let first = network.kill_at(requests, is_handled, &first);
            is_killed = !first.status.success();
            let second = network.run(&second, |_, _| true);
            let exported = files.map(|file| fs::read_to_string(file).unwrap_or_default());
            let [first_text, second_text] = exported;
            let [first, second] = [(first, first_text), (second, second_text)]
                .map(|(output, exported)| Run { output, exported });
            check(&network, [&first, &second]);
        }
        if !is_killed {
            break;
        }
        requests += 1;
    }
    assert!(requests > 2, "{line}: {requests} requests");
}

/// What a run printed and exported.
struct Run {
    output: Output,
    exported: String,
}

impl Run {
    fn error(&self) -> &str {
        text(&self.output.stderr)
    }
}

fn with_team() -> Network {
    Network::with_team(&USERS)
}

#[test]
fn a_removal_of_a_team() {
    let line = "remove team --org acme --project apollo docs --wait 0 --yes --export FILE";
    kill_everywhere(line, with_team, |network, runs| {
        let is_done = runs[1].error().contains("does not exist in this project");
        assert!(
            runs[1].output.status.success() || is_done,
            "{}",
            runs[1].error()
        );
        for table in [Table::TEAMS, Table::TEAM_MEMBERS] {
            assert!(network.dynamodb.records(table).is_empty());
        }
        let exported = runs.map(|run| run.exported.as_str()).concat();
        for name in ["Docs"].iter().chain(&USERS) {
            assert!(
                exported.contains(&format!("\"{name}\"")),
                "{name}: {exported}"
            );
        }
        assert!(!exported.contains("removing_"), "{exported}");
    });
}

#[test]
fn a_removal_of_a_member_of_all_teams() {
    let line = "remove member --org acme --all-teams ada --yes --export FILE";
    kill_everywhere(line, with_team, |network, runs| {
        let members = network.dynamodb.records(Table::TEAM_MEMBERS);
        assert_eq!(members.len(), USERS.len() - 1);
        let exported = runs.map(|run| run.exported.as_str()).concat();
        assert!(exported.contains("\"ada\""), "{exported}");
    });
}

#[test]
fn an_erasure() {
    fn prepare() -> Network {
        let network = with_team();
        let acme = fixtures::disabled_organization("acme");
        network.dynamodb.put(Table::ORGANIZATIONS, acme);
        network
    }
    let line = "orgs erase acme --wait 0 --yes --export FILE";
    kill_everywhere(line, prepare, |network, runs| {
        let is_done = runs[1].error().contains("there is no organization acme");
        assert!(
            runs[1].output.status.success() || is_done,
            "{}",
            runs[1].error()
        );
        for table in Table::ALL {
            assert!(network.dynamodb.records(*table).is_empty());
        }
        let exported = runs.map(|run| run.exported.as_str()).concat();
        for name in ["Docs"].iter().chain(&USERS) {
            assert!(
                exported.contains(&format!("\"{name}\"")),
                "{name}: {exported}"
            );
        }
    });
}

#[test]
fn a_restore() {
    let mut lines = vec![
        json!({ "table": "organizations", "record": fixtures::organization("acme") }),
        json!({ "table": "teams", "record": fixtures::team("acme", "apollo", "docs", "Docs") }),
    ];
    for user in USERS {
        let member = fixtures::member("acme", "apollo", "docs", user);
        lines.push(json!({ "table": "members", "record": member }));
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    let text = lines.iter().map(|line| format!("{line}\n"));
    fs::write(file.path(), text.collect::<String>()).unwrap();
    let line = format!("restore --from {}", file.path().display());
    kill_everywhere(&line, Network::new, |network, runs| {
        assert!(runs[1].output.status.success(), "{}", runs[1].error());
        let mut count = 0;
        for table in [Table::ORGANIZATIONS, Table::TEAMS, Table::TEAM_MEMBERS] {
            count += network.dynamodb.records(table).len();
        }
        assert_eq!(count, lines.len());
        network.assert_valid_records();
    });
}

/// Each key is an old one, or was printed, or is named by the next run.
#[test]
fn a_rotation() {
    fn prepare() -> Network {
        let network = Network::with_team(&[]);
        for key in keys() {
            let record = key_record(&key, "acme", "");
            network.dynamodb.put(Table::KEYS, record);
        }
        network
    }
    let [first, second] = keys().map(|key| key[4..16].to_owned());
    let line = format!("keys rotate {first} {second}");
    kill_everywhere(&line, prepare, |network, runs| {
        let printed: BTreeSet<_> = runs
            .iter()
            .flat_map(|run| text(&run.output.stdout).lines())
            .map(|key| key[4..16].to_owned())
            .collect();
        for key in network.dynamodb.records(Table::KEYS) {
            let id = key["key_id"].as_str().unwrap().to_owned();
            let is_old = key["replaces"] == Value::Null;
            let is_named = runs[1].error().contains(&id);
            assert!(
                is_old || printed.contains(&id) || is_named,
                "{id}: {}",
                runs[1].error()
            );
            assert!(!is_old || key["replaced_by"].is_string(), "{key}");
        }
    });
}

fn keys() -> [String; 2] {
    [1, 2].map(|id| ApiKey::generate([id; 8], [[7; 16]; 2]))
}
