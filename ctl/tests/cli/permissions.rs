//! `ctl/permissions.json` lists exactly the permissions that each command needs.
//!
//! The commands run with `--stack`, as on AWS. The network records the permissions that their
//! requests need, and can deny one of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, OpenOptions},
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

use clap::CommandFactory as _;
use serde_json::{Value, json};
use workspace_local::{
    demo::DEMO_KEY,
    fixtures::{self, key_record},
    tables::create_missing,
};
use workspace_management::store::{Table, TableNames};
use workspace_records::schemas;
use workspacectl::Cli;

use self::State::{Disabled, Empty, Full, NoOutput, Nothing, Orphaned, Restored};
use crate::{
    listed_tables,
    network::{Network, needed},
    on_stack, words,
};

/// What a command finds. Each run of a command has its own organization.
#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    /// There is no such organization.
    Nothing,
    /// The organization has no other records.
    Empty,
    /// The organization has a record in each table.
    Full,
    /// As `Full`, but the organization is disabled.
    Disabled,
    /// As `Full`, but the record of the organization is missing.
    Orphaned,
    /// As `Empty`, and the tables `ORG-LOGICAL_ID` contain a record each, as after a restore.
    Restored,
    /// As `Empty`, and standard output cannot be written.
    NoOutput,
}

/// The entries of the file, each with arguments and states that together need all its permissions.
/// `ORG` is the organization, `KEY` the id of its key, and `FILE` an export of its records.
#[rustfmt::skip] // keeps a table short
const RUNS: &[(&str, &str, State)] = &[
    ("doctor", "", Nothing),
    ("env", "", Nothing),
    ("keys check", "KEY", Full),
    ("keys create", "--org ORG", Empty),
    ("keys create", "--org ORG", NoOutput),
    ("keys list", "", Full),
    ("keys list", "--org ORG", Full),
    ("keys list", "--org ORG", Empty),
    ("keys revoke", "KEY", Full),
    ("keys revoke --all", "--org ORG --yes", Full),
    ("keys rotate", "KEY", Full),
    ("keys rotate --all", "--org ORG --yes", Full),
    ("list", "models --org ORG", Empty),
    ("list", "members --org ORG --user ada", Full),
    ("orgs create", "ORG", Nothing),
    ("orgs disable", "ORG --wait 0", Full),
    ("orgs enable", "ORG", Disabled),
    ("orgs erase", "ORG --export FILE.new --wait 0 --yes", Disabled),
    ("orgs erase", "ORG --without-export --wait 0 --yes", Orphaned),
    ("orgs export", "ORG --out FILE.new", Full),
    ("orgs list", "", Full),
    ("orgs show", "ORG", Full),
    ("remove data-store", "--org ORG papers --export FILE", Full),
    ("remove logging-instance", "--org ORG --project apollo", Full),
    ("remove member", "--org ORG --project apollo --team research-team ada", Full),
    ("remove member --all-teams", "--org ORG ada --yes", Full),
    ("remove model", "--org ORG --type chat gpt-4o", Full),
    ("remove team", "--org ORG --project apollo research-team --wait 0 --yes --export FILE", Full),
    ("remove voice", "--org ORG bot-7", Full),
    ("restore", "--from FILE", Nothing),
    ("restore", "--from ORG-ModelsTable --to models --org ORG", Restored),
    ("restore --to keys --keys", "--from ORG-KeysTable --all-orgs", Restored),
];

/// `RUNS`, and those that list the records of each table, by each part of its partition.
fn runs() -> Vec<(&'static str, String, State)> {
    let fixed = RUNS.iter();
    let fixed = fixed.map(|(entry, arguments, state)| (*entry, (*arguments).to_owned(), *state));
    let lists = listed_tables().flat_map(|table| {
        let options = [
            "",
            " --org ORG",
            " --project apollo",
            " --team research-team",
        ];
        let lengths = 1..=table.partition.len() + 1;
        lengths.map(move |length| format!("{}{}", table.noun, options[..length].concat()))
    });
    let lists = lists.map(|arguments| ("list", arguments, Full));
    fixed.chain(lists).collect()
}

/// The names of the tables in a group, or the name itself if there is no such group.
fn resources(word: &str) -> Vec<String> {
    let is_client = |table: &Table| listed_tables().any(|listed| listed == *table);
    let has_index = |table: &Table| [Table::TEAMS, Table::TEAM_MEMBERS].contains(table);
    let is_in_group: &dyn Fn(&Table) -> bool = match word {
        "ALL_TABLES" => &|_| true,
        "CLIENT_TABLES" => &is_client,
        // Of these, those whose partition key is the organization.
        "ORG_TABLES" => &|table| is_client(table) && table.partition == ["org"],
        // The others, unless the teams' index says which partitions they have.
        "PROJECT_TABLES" => {
            &|table| is_client(table) && table.partition != ["org"] && !has_index(table)
        }
        _ => return vec![word.to_owned()],
    };
    let tables = Table::ALL.iter().filter(|table| is_in_group(table));
    tables.map(|table| table.logical_id.to_owned()).collect()
}

/// The permissions of each entry of the file, such as `dynamodb:GetItem KeysTable`.
fn permissions() -> BTreeMap<String, BTreeSet<String>> {
    type File = BTreeMap<String, BTreeMap<String, Vec<String>>>;
    let file: File = serde_json::from_str(include_str!("../../permissions.json")).unwrap();
    let mut permissions: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for (entry, actions) in file {
        let listed = permissions.entry(entry).or_default();
        for (action, words) in actions {
            for word in words {
                let names = resources(&word).into_iter();
                listed.extend(names.map(|name| format!("{action} {name}")));
            }
        }
    }
    permissions
}

#[test]
fn every_command_has_permissions() {
    let entries = permissions();
    for command in Cli::command().get_subcommands() {
        let name = command.get_name();
        let subcommands = command.get_subcommands().map(|sub| sub.get_name());
        let mut commands: Vec<_> = subcommands.map(|sub| format!("{name} {sub}")).collect();
        // Two commands send no requests to AWS.
        if commands.is_empty() && !["completions", "serve"].contains(&name) {
            commands.push(name.to_owned());
        }
        for command in commands {
            let is_listed = |entry: &String| entry.split(" --").next() == Some(&command);
            assert!(entries.keys().any(is_listed), "{command}");
        }
    }
}

#[test]
fn every_command_needs_exactly_its_permissions() {
    let entries: Vec<_> = permissions().into_iter().collect();
    let network = Network::with_api();
    thread::scope(|scope| {
        for entries in entries.chunks(entries.len().div_ceil(4)) {
            let check = |(entry, listed): &(String, _)| check(&network, entry, listed);
            scope.spawn(move || entries.iter().for_each(check));
        }
    });
    network.assert_valid_records();
}

/// Runs a command with all permissions, and then without each of them.
fn check(network: &Network, entry: &str, listed: &BTreeSet<String>) {
    let mut used = BTreeMap::new();
    let runs: Vec<_> = runs().into_iter().filter(|run| run.0 == entry).collect();
    for case in &runs {
        let (code, text, permissions) = run(network, case, "");
        let is_as_expected = match case.2 {
            NoOutput => text.contains("cannot print the key, so it was revoked"),
            _ => code == Some(0) && !text.contains("AccessDenied"),
        };
        assert!(is_as_expected, "{case:?}: {text}");
        for permission in permissions {
            used.entry(permission).or_insert(case);
        }
    }
    let needed: BTreeSet<_> = used.keys().cloned().collect();
    assert_eq!(needed, *listed, "{entry}: needed, listed");

    // Commands handle the tables of clients in the same way, so one of them is enough.
    let mut kinds = BTreeSet::new();
    for (denied, case) in used {
        let kind = listed_tables().fold(denied.clone(), |kind, table| {
            kind.replace(table.logical_id, "CLIENT_TABLE")
        });
        if !kinds.insert(kind) {
            continue;
        }
        let (code, text, _) = run(network, case, &denied);
        let is_as_expected = match (entry, &*denied) {
            ("doctor", "dynamodb:Scan KeysTable" | "sns:ListSubscriptionsByTopic AlarmTopic") => {
                code == Some(0) && text.contains("skipped")
            }
            _ => code == Some(1) && text.contains("hint: Your AWS identity lacks a permission."),
        };
        assert!(is_as_expected, "{case:?} without {denied:?}: {text}");
    }
}

/// Runs a command without a permission, which is empty if nothing is denied. Returns the exit code,
/// what the command printed, and the permissions that it used.
fn run(
    network: &Network,
    (command, arguments, state): &(&str, String, State),
    denied: &str,
) -> (Option<i32>, String, BTreeSet<String>) {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let (org, key) = (format!("org{number:09}"), format!("key{number:09}"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("export.jsonl");
    let file = file.to_str().unwrap();
    prepare(network, *state, &org, &key, file);
    let (sender, used) = mpsc::channel();
    let denied = denied.to_owned();
    let url = network.listen(move |action, body| {
        let needed = needed(action, body);
        let is_allowed = !needed.contains(&denied);
        sender.send(needed).unwrap();
        is_allowed
    });

    let line = format!("{command} {arguments}");
    let line = line.replace("ORG", &org).replace("KEY", &key);
    let line = line.replace("FILE", file);
    let mut process = on_stack(&url, &words(&line));
    if *state == NoOutput {
        let full = OpenOptions::new().write(true).open("/dev/full");
        process.stdout(full.unwrap());
    }
    let output = process.output().unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    let used: Vec<_> = used.try_iter().flatten().collect();
    // The response to the first request shows whether the clock is wrong.
    let first = used.iter().find(|used| used.starts_with("dynamodb:"));
    let reads = ["Describe", "GetItem", "Query", "Scan"];
    let is_read = |used: &String| reads.iter().any(|read| used.contains(read));
    assert!(first.is_none_or(is_read), "{line}: {first:?}");
    (output.status.code(), text, used.into_iter().collect())
}

/// Brings the records of an organization into a state, and writes an export of them.
fn prepare(network: &Network, state: State, org: &str, key: &str, file: &str) {
    let records = records(org, key);
    let export = records.iter().map(|(table, record)| {
        let line = json!({ "table": table.noun, "record": record });
        format!("{line}\n")
    });
    fs::write(file, export.collect::<String>()).unwrap();
    let dynamodb = &network.dynamodb;
    for (table, record) in &records {
        match (state, *table == Table::ORGANIZATIONS) {
            (Nothing, _) | (Orphaned, true) | (Empty | NoOutput | Restored, false) => {}
            (Disabled, true) => dynamodb.put(*table, fixtures::disabled_organization(org)),
            _ => dynamodb.put(*table, record),
        }
    }
    if state == Restored {
        let name = |table: Table| Ok::<_, ()>(format!("{org}-{}", table.logical_id));
        let (client, tables) = (dynamodb.client(), TableNames::new(name).unwrap());
        network.runtime.block_on(async {
            create_missing(&client, &tables).await.unwrap();
            for (table, record) in &records {
                let item = serde_dynamo::to_item(record).unwrap();
                let put = client.put_item().table_name(tables.name(*table));
                put.set_item(Some(item)).send().await.unwrap();
            }
        });
    }
}

/// A record in each table.
fn records(org: &str, key: &str) -> Vec<(Table, Value)> {
    let record = |table: &Table| {
        let record = schemas::example(*table).unwrap_or_else(|| {
            let mut record = json!(key_record(DEMO_KEY, "acme", "ci"));
            record["key_id"] = json!(key);
            let organization = schemas::example(Table::ORGANIZATIONS).unwrap();
            record["org_request_id"] = organization["request_id"].clone();
            record
        });
        let text = record.to_string().replace("acme", org);
        (*table, serde_json::from_str(&text).unwrap())
    };
    Table::ALL.iter().map(record).collect()
}
