//! `deploy/operators.yaml` has two policies: one that reads, and one that operates. The statements
//! that begin with `Workspacectl` contain exactly the permissions that the commands need.
//!
//! The commands run with `--stack`, as on AWS. The network records the permissions that their
//! requests need, and denies what the policies lack.

use std::{
    collections::BTreeSet,
    fs,
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
};

use clap::CommandFactory as _;
use serde_json::{Value, json};
use test_support::fixtures::{self, key_record};
use workspace_local::demo::DEMO_KEY;
use workspace_management::store::Table;
use workspace_records::schemas;
use workspacectl::Cli;

use self::State::{Disabled, Full, Nothing};
use crate::{
    export_of,
    network::{Network, needed},
    new_file, on_stack,
};

/// What a command finds. Each run of a command has its own organization.
#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    /// There is no such organization.
    Nothing,
    /// The organization has a record in each table.
    Full,
    /// As `Full`, but the organization is disabled.
    Disabled,
}

/// The commands of each policy, with arguments and states that together need all its permissions.
/// `ORG` is the organization, `KEY` the id of its key, and `FILE` an export of its records.
#[rustfmt::skip] // keeps a table short
const READS: &[(&str, State)] = &[
    ("doctor", Nothing),
    ("env", Nothing),
    ("keys check KEY", Full),
    ("keys list", Full),
    ("keys list --org ORG", Full),
    ("list members", Full),
    ("list members --org ORG", Full),
    ("list members --org ORG --project apollo --team research-team", Full),
    ("list members --org ORG --user ada", Full),
    ("list models --org ORG", Full),
    ("list teams --org ORG", Full),
    ("list teams --org ORG --project apollo", Full),
    ("orgs export ORG --out FILE.new", Full),
    ("orgs list", Full),
    ("orgs show ORG", Full),
    ("restore --from FILE --dry-run", Nothing),
];

#[rustfmt::skip]
const OPERATIONS: &[(&str, State)] = &[
    ("edit team --org ORG --project apollo research-team --name Manuals --yes", Full),
    ("edit data-store --org ORG papers --name Maps --yes", Full),
    ("edit logging-instance --org ORG --project apollo --project-name Zeus --yes", Full),
    ("keys create --org ORG", Full),
    ("keys revoke KEY", Full),
    ("keys revoke --all --org ORG --yes", Full),
    ("keys rotate KEY", Full),
    ("orgs create ORG", Nothing),
    ("orgs disable ORG --wait 0", Full),
    ("orgs enable ORG", Disabled),
    ("orgs erase ORG --export FILE.new --wait 0 --yes", Disabled),
    ("remove data-store --org ORG papers --export FILE.new", Full),
    ("remove logging-instance --org ORG --project apollo", Full),
    ("remove member --org ORG --project apollo --team research-team ada", Full),
    ("remove member --org ORG --all-teams ada --yes", Full),
    ("remove model --org ORG --type chat gpt-4o", Full),
    ("remove team --org ORG --project apollo research-team --wait 0 --yes", Full),
    ("remove voice --org ORG bot-7", Full),
    ("restore --from FILE", Nothing),
    ("restore --from ModelsTable --to models --org ORG", Full),
];

/// A policy: permissions such as `dynamodb:GetItem TABLES`.
fn policy(name: &str) -> BTreeSet<String> {
    let template = include_str!("../../../../deploy/operators.yaml")
        .replace("!Sub ", "")
        .replace("!Ref ", "");
    let template: Value = yaml_serde::from_str(&template).unwrap();
    let policy = &template["Resources"][name]["Properties"]["PolicyDocument"];
    let mut permissions = BTreeSet::new();
    for statement in policy["Statement"].as_array().unwrap() {
        let text = |name: &str| statement[name].as_str().unwrap();
        if !text("Sid").starts_with("Workspacectl") {
            continue;
        }
        let resource = match text("Resource").rsplit(':').next().unwrap() {
            "stack/${OperatedStack}/*" => "STACK",
            "table/${OperatedStack}-*" => "TABLES",
            "table/${OperatedStack}-*/index/*" => "INDEXES",
            "${OperatedStack}-Function-*" => "Function",
            "${OperatedStack}-AlarmTopic-*" => "AlarmTopic",
            other => panic!("{other}"),
        };
        let actions = &statement["Action"];
        let one = std::slice::from_ref(actions);
        for action in actions.as_array().map_or(one, Vec::as_slice) {
            permissions.insert(format!("{} {resource}", action.as_str().unwrap()));
        }
    }
    permissions
}

/// The permission of a policy that grants a needed permission such as `dynamodb:GetItem KeysTable`.
fn granting<'a>(policy: &'a BTreeSet<String>, needed: &str) -> Option<&'a String> {
    let (action, resource) = needed.split_once(' ').unwrap();
    let is_index = resource.contains("/index/");
    let group = if is_index { "INDEXES" } else { "TABLES" };
    let exact = policy.get(needed);
    exact.or_else(|| policy.get(&format!("{action} {group}")))
}

#[test]
fn every_command_is_in_a_policy() {
    for command in Cli::command().get_subcommands() {
        let name = command.get_name();
        let subcommands = command.get_subcommands().map(|sub| sub.get_name());
        let mut commands: Vec<_> = subcommands.map(|sub| format!("{name} {sub}")).collect();
        // It sends no requests.
        if commands.is_empty() && name != "completions" {
            commands.push(name.to_owned());
        }
        for command in commands {
            let mut tried = READS.iter().chain(OPERATIONS);
            let is_tried = tried.any(|(line, _)| line.starts_with(&command));
            assert!(is_tried, "{command}");
        }
    }
}

#[test]
fn the_policies_have_exactly_the_permissions_that_commands_need() {
    let network = Network::with_api();
    let (read, operate) = (policy("Read"), policy("Operate"));
    let both: BTreeSet<_> = read.union(&operate).cloned().collect();
    let mut used = BTreeSet::new();
    for (line, state) in READS {
        used.extend(check(&network, line, *state, &read));
    }
    assert_eq!(used, read, "used, listed");
    for (line, state) in OPERATIONS {
        used.extend(check(&network, line, *state, &both));
    }
    assert_eq!(used, both, "used, listed");
    network.assert_valid_records();
}

/// Runs a command with the permissions of a policy. Returns the permissions that the command used.
#[track_caller]
fn check(network: &Network, line: &str, state: State, policy: &BTreeSet<String>) -> Vec<String> {
    let (code, text, needed) = run(network, line, state, policy.clone());
    let is_allowed = code == Some(0) && !text.contains("AccessDenied");
    assert!(is_allowed, "{line}: {text}");
    let used = |needed: &String| granting(policy, needed).unwrap().clone();
    needed.iter().map(used).collect()
}

#[test]
fn a_missing_permission_is_an_error_with_a_hint() {
    let network = Network::with_api();
    let read = policy("Read");
    for (line, state) in OPERATIONS {
        let (code, text, _) = run(&network, line, *state, read.clone());
        let has_hint = text.contains("hint: Your AWS identity lacks a permission.");
        assert!(code == Some(1) && has_hint, "{line}: {text}");
    }
}

/// Runs a command with some permissions. Returns the exit code, what the command printed, and the
/// permissions that it needed.
fn run(
    network: &Network,
    line: &str,
    state: State,
    allowed: BTreeSet<String>,
) -> (Option<i32>, String, BTreeSet<String>) {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let (org, key) = (format!("org{number:09}"), format!("key{number:09}"));
    let (_folder, file) = new_file();
    prepare(network, state, &org, &key, &file);
    let (sender, used) = mpsc::channel();
    let url = network.listen(move |action, body| {
        let needed = needed(action, body);
        let is_granted = |needed: &String| granting(&allowed, needed).is_some();
        let is_allowed = needed.iter().all(is_granted);
        sender.send(needed).unwrap();
        is_allowed
    });

    let line = line.replace("ORG", &org).replace("KEY", &key);
    let line = line.replace("FILE", &file);
    let output = on_stack(&url, &line).output().unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    let used = used.try_iter().flatten().collect();
    (output.status.code(), text, used)
}

/// Brings the records of an organization into a state, and writes an export of them.
fn prepare(network: &Network, state: State, org: &str, key: &str, file: &str) {
    let records = records(org, key);
    fs::write(file, export_of(&records)).unwrap();
    let dynamodb = &network.dynamodb;
    for (table, record) in records.iter().filter(|_| state != Nothing) {
        dynamodb.put(*table, record);
    }
    if state == Disabled {
        let disabled = fixtures::disabled_organization(org);
        dynamodb.put(Table::ORGANIZATIONS, disabled);
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
            record["created_at"] = organization["created_at"].clone();
            record
        });
        let text = record.to_string().replace("acme", org);
        (*table, serde_json::from_str(&text).unwrap())
    };
    Table::ALL.iter().map(record).collect()
}
