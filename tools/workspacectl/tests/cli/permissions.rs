//! `deploy/operators.yaml` has two policies: one that reads, and one that operates. The statements
//! that begin with `Workspacectl` contain exactly the permissions that the commands need.
//!
//! The commands run with `--stack`, as on AWS, and requests that the policies do not allow are denied.

use std::{collections::BTreeSet, fs, sync::mpsc};

use clap::CommandFactory as _;
use serde_json::{Value, json};
use test_support::{
    faults::DENIED,
    fixtures::{self, key_record},
    hook::Request,
    iam,
};
use workspace_local::demo::DEMO_KEY;
use workspace_management::records::Table;
use workspace_records::{kinds::ALL_TABLES, schemas};
use workspacectl::Cli;
use yaml_serde::Value as Yaml;

use crate::{export_of, network::Network, new_file, on_stack};

/// The commands of each policy, which together need all its permissions. They run one after the
/// other. `EXPORT` is an export of all records, and `NEW` a new file.
const READS: &[&str] = &[
    "doctor",
    "env",
    "keys check acmeDemoKey1",
    "keys list",
    "keys list --org acme",
    "keys usage",
    "list members",
    "list members --org acme",
    "list members --org acme --project apollo --team research-team",
    "list members --org acme --user ada",
    "list models --org acme",
    "list teams --org acme",
    "list teams --org acme --project apollo",
    "logs --org acme",
    "logs --request throttled=",
    "orgs export acme --out NEW",
    "orgs list",
    "orgs show acme",
    "history --org acme",
    "restore --from EXPORT --dry-run",
];

const OPERATIONS: &[&str] = &[
    "edit team --org acme --project apollo research-team --name Manuals --yes",
    "edit data-store --org acme papers --name Maps --yes",
    "edit logging-instance --org acme --project apollo --project-name Zeus --yes",
    "edit model --org acme --type chat gpt-4o --id 7 --yes",
    "edit voice --org acme bot-7 --enabled false --yes",
    "keys create --org acme",
    "keys rotate acmeDemoKey1",
    "keys revoke acmeDemoKey1",
    "keys revoke --all --org acme --yes",
    "orgs create globex",
    "orgs edit globex --name Globex",
    "orgs disable acme --wait 0",
    "orgs enable acme",
    "remove data-store --org acme papers --export NEW",
    "remove logging-instance --org acme --project apollo",
    "remove member --org acme --project apollo --team research-team ada",
    "remove member --org acme --all-teams grace --yes",
    "remove model --org acme --type chat gpt-4o",
    "remove team --org acme --project apollo research-team --wait 0 --yes",
    "remove voice --org acme bot-7",
    "orgs disable acme --wait 0",
    "orgs erase acme --export NEW --wait 0 --yes",
    "restore --from EXPORT",
    "restore --from ModelsTable --to models --org acme",
];

/// The statements of a policy.
fn statements(policy: &str) -> Vec<Yaml> {
    let template = include_str!("../../../../deploy/operators.yaml");
    let template: Yaml = yaml_serde::from_str(template).unwrap();
    let policy = &template["Resources"][policy]["Properties"]["PolicyDocument"];
    policy["Statement"].as_sequence().unwrap().clone()
}

/// The permissions that a policy grants to the commands. `TABLE` is every table: ci/tests/test_names.py checks that
/// the statements name all.
fn granted(policy: &str) -> BTreeSet<String> {
    let mut statements = statements(policy);
    statements.retain(|it| it["Sid"].as_str().unwrap().starts_with("Workspacectl"));
    let granted = iam::granted(&statements);
    let tables = ALL_TABLES.map(|table| format!("-{}-", table.logical_id));
    let general = |it: String| {
        tables
            .iter()
            .fold(it, |it, table| it.replace(table, "-TABLE-"))
    };
    granted.into_iter().map(general).collect()
}

/// Whether a statement forbids a request. Statements with a condition allow transactions.
fn is_forbidden(request: &Request) -> bool {
    let mut statements = statements("Operate");
    statements.retain(|it| it["Effect"] == "Deny");
    statements.retain(|it| it.get("Condition").is_none() || request.action != "TransactWriteItems");
    let forbidden = iam::listed(&statements);
    let needed = iam::needed(request, |table, _| {
        format!("table/${{OperatedStack}}-{table}-*")
    });
    !needed.is_disjoint(&forbidden)
}

/// The permissions that a request needs.
fn needed(request: &Request) -> BTreeSet<String> {
    let resource = match &*request.service {
        "sts" => return BTreeSet::new(),
        "cloudformation" => "stack/${OperatedStack}/*",
        "lambda" => "${OperatedStack}-Function-*",
        "sns" => "${OperatedStack}-AlarmTopic-*",
        "logs" => return needed_for_logs(request),
        _ => {
            return iam::needed(request, |_, _| "table/${OperatedStack}-TABLE-*".into());
        }
    };
    [format!("{}:{} {resource}", request.service, request.action)].into()
}

/// The permissions that a request to CloudWatch Logs needs, for each log group that it names.
fn needed_for_logs(request: &Request) -> BTreeSet<String> {
    let mut groups = vec![request.body["logGroupName"].clone()];
    if let Some(names) = request.body["logGroupNames"].as_array() {
        groups.clone_from(names);
    }
    let resource = |group: &Value| match group.as_str() {
        Some("LogGroup") => "${OperatedStack}-LogGroup-*",
        Some(_) => "/aws/vendedlogs/${OperatedStack}-ApiLogGroup-*",
        // Only the results of a query, which has an id.
        None => "*",
    };
    let permission = |group| format!("logs:{} {}", request.action, resource(group));
    groups.iter().map(permission).collect()
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
            let is_tried = tried.any(|line| line.starts_with(&command));
            assert!(is_tried, "{command}");
        }
    }
}

#[test]
fn the_history_is_neither_changed_nor_written_alone() {
    let history = |action| Request::new(action, json!({ "TableName": "HistoryTable" }));
    for action in ["PutItem", "UpdateItem", "DeleteItem"] {
        assert!(is_forbidden(&history(action)), "{action}");
    }
    assert!(!is_forbidden(&history("Query")));
    let teams = Request::new("DeleteItem", json!({ "TableName": "TeamsTable" }));
    assert!(!is_forbidden(&teams));
}

#[test]
fn the_policies_have_exactly_the_permissions_that_commands_need() {
    let network = Network::with_api();
    // A request that is only in the API's log.
    let message = json!({ "request_id": "throttled=" }).to_string();
    let event = json!({ "timestamp": u32::MAX as u64 * 1000, "message": message });
    let mut logs = network.stack.logs.lock().unwrap();
    logs.pages.insert("ApiLogGroup", vec![vec![event]]);
    drop(logs);
    let records = records();
    for (table, record) in &records {
        network.dynamodb.put(*table, record);
    }
    let (_folder, export) = new_file();
    fs::write(&export, export_of(&records)).unwrap();
    let (mut permissions, mut used) = (BTreeSet::new(), BTreeSet::new());
    for (commands, policy) in [(READS, "Read"), (OPERATIONS, "Operate")] {
        permissions.extend(granted(policy));
        for line in commands {
            let line = line.replace("EXPORT", &export);
            used.extend(run(&network, &line, permissions.clone()));
        }
        assert_eq!(used, permissions, "used, granted");
    }
    network.assert_valid_records();
}

/// Runs a command that has some permissions. Returns the permissions that it used.
fn run(network: &Network, line: &str, permissions: BTreeSet<String>) -> Vec<String> {
    let (sender, used) = mpsc::channel();
    let url = network.listen(move |request| {
        let needed = needed(request);
        let is_forbidden = request.service == "dynamodb" && is_forbidden(request);
        let is_denied = !needed.is_subset(&permissions) || is_forbidden;
        sender.send(needed).unwrap();
        is_denied.then_some(DENIED)
    });
    let (_folder, file) = new_file();
    let output = on_stack(&url, &line.replace("NEW", &file))
        .output()
        .unwrap();
    let printed = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    let is_allowed = output.status.success() && !printed.contains("AccessDenied");
    assert!(is_allowed, "{line}: {printed}");
    used.try_iter().flatten().collect()
}

/// A record of `acme` in each table, and a second member.
fn records() -> Vec<(Table, Value)> {
    let organization = schemas::example(Table::ORGANIZATIONS).unwrap();
    let mut key = json!(key_record(DEMO_KEY, "acme", "ci"));
    key["org_request_id"] = organization["request_id"].clone();
    key["created_at"] = organization["created_at"].clone();
    let grace = fixtures::member("acme", "apollo", "research-team", "grace");
    let mut records = vec![(Table::API_KEYS, key), (Table::TEAM_MEMBERS, grace)];
    records.extend(schemas::tables().map(|table| (table, schemas::example(table).unwrap())));
    records
}
