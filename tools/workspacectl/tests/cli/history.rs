//! `history`, and the entries of commands that change something.

use serde_json::{Value, json};
use test_support::fixtures::{self, key_record};
use workspace_local::demo::DEMO_KEY;
use workspace_management::records::Table;
use workspace_records::kinds::{ALL_TABLES, HISTORY};

use crate::{
    AWS, assert_fails, assert_usage_error, network::Network, on_stack, text, workspacectl,
};

const EDIT: &str = "edit team --org acme --project apollo docs --name Manuals --yes";

/// The entries that `history` prints with these options.
fn entries(network: &Network, options: &str) -> Vec<Value> {
    let history = network.json(&format!("history --org acme {options}"));
    history.as_array().unwrap().clone()
}

#[test]
fn entries_say_who_changed_what_when_and_why() {
    let network = Network::with_team(&["ada"]);
    let url = network.listen(|_| None);
    let output = on_stack(&url, &format!("{EDIT} --reason TICKET-7")).output();
    assert!(output.unwrap().status.success());
    let entry = &entries(&network, "")[0];
    assert_eq!(entry["by"], "arn:aws:iam::123456789012:user/ada");
    assert_eq!(entry["action"], "edit team");
    assert_eq!(entry["kind"], "team");
    assert_eq!(
        entry["key"],
        json!({ "project": "acme#apollo", "team_id": "docs" })
    );
    assert_eq!(entry["before"]["team_name"], "Docs");
    assert_eq!(entry["after"]["team_name"], "Manuals");
    assert_eq!(entry["reason"], "TICKET-7");
    let team = network.dynamodb.records(Table::TEAMS).remove(0);
    assert_eq!(entry["run_id"], team["updated_request_id"]);
    let at = humantime::parse_rfc3339(entry["at"].as_str().unwrap()).unwrap();
    let at = at.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    assert_eq!(entry["expires_at"], at + 400 * 86_400);
    let shown = network.output("history --org acme");
    assert!(
        text(&shown.stdout).contains("team_name: Docs → Manuals"),
        "{shown:?}"
    );

    // A repeat changes nothing.
    assert!(network.output(EDIT).status.success());
    assert_eq!(entries(&network, "").len(), 1);
}

#[test]
fn options_select_entries_and_the_newest_are_first() {
    let network = Network::with_team(&["ada", "grace"]);
    for line in [
        EDIT,
        "remove member --org acme --project apollo --team docs ada",
        "remove team --org acme --project apollo docs --wait 0 --yes",
        "orgs create acme2",
    ] {
        assert!(network.output(line).status.success(), "{line}");
    }
    let actions = |options: &str| -> Vec<String> {
        let entries = entries(&network, options);
        let actions = entries
            .iter()
            .map(|entry| entry["action"].as_str().unwrap().to_owned());
        actions.collect()
    };
    let all = ["remove team", "remove team", "remove member", "edit team"];
    assert_eq!(actions(""), all);
    assert_eq!(
        actions("--kind team"),
        ["remove team", "remove team", "edit team"]
    );
    assert_eq!(actions("--key docs"), all);
    assert_eq!(actions("--key ada"), ["remove member"]);
    assert_eq!(actions("--key acme"), [""; 0]);
    assert_eq!(actions("--since 1h"), all);
    assert_eq!(actions("--by nobody"), [""; 0]);
    let by = entries(&network, "")[0]["by"].as_str().unwrap().to_owned();
    let (user, _) = by.split_once('@').unwrap();
    assert_eq!(actions(&format!("--by {by}")), all);
    assert_eq!(actions(&format!("--by {user}")), all);
    let cut = network.output("history --org acme --limit 1");
    assert!(text(&cut.stderr).contains("there are more"), "{cut:?}");
    assert_eq!(actions("--limit 4"), all);
    let end = &entries(&network, "")[0];
    assert_eq!(
        (&end["phase"], &end["counts"]),
        (&json!("end"), &json!({ "members": 1 }))
    );
    assert_usage_error(&network.output("history"), "");
}

#[test]
fn expired_entries_are_hidden_and_no_entry_has_a_secret() {
    let network = Network::with_team(&["ada"]);
    network
        .dynamodb
        .put(Table::API_KEYS, key_record(DEMO_KEY, "acme", "ci"));
    for line in [
        "keys create --org acme --label new",
        "keys rotate acmeDemoKey1",
        "keys revoke --all --org acme --yes",
    ] {
        assert!(network.output(line).status.success(), "{line}");
    }
    let stored = json!(entries(&network, "")).to_string();
    for secret in ["secret_sha256", "last_four", "wsk_"] {
        assert!(!stored.contains(secret), "{stored}");
    }
    for key in network.dynamodb.records(Table::API_KEYS) {
        let digest = key["secret_sha256"].as_str().unwrap();
        assert!(!stored.contains(digest), "{stored}");
    }
    for mut entry in network.dynamodb.records(HISTORY) {
        entry["expires_at"] = json!(1);
        network.dynamodb.put(HISTORY, entry);
    }
    assert_eq!(entries(&network, ""), [Value::Null; 0]);
    let key = format!("{EDIT} --reason {DEMO_KEY}");
    assert_usage_error(&network.output(&key), "");
    let long = format!("{EDIT} --reason {}", "a".repeat(501));
    assert_usage_error(&network.output(&long), "500 characters");
}

#[test]
fn without_a_history_nothing_is_changed() {
    let network = Network::with_team(&["ada"]);
    let url = network.listen(|_| None);
    let on_tables = |line: &str, variables: &[(&str, &str)]| {
        let mut command = workspacectl(line);
        let tables = ALL_TABLES.map(|table| (table.env_variable, table.logical_id));
        command.envs(tables).env_remove("HISTORY_TABLE").envs(AWS);
        command.env("AWS_ENDPOINT_URL_DYNAMODB", &url);
        command.envs(variables.to_vec()).output().unwrap()
    };
    let team = || network.dynamodb.records(Table::TEAMS).remove(0);
    let before = team();
    assert_usage_error(&on_tables(EDIT, &[]), "HISTORY_TABLE is not set");
    assert_usage_error(
        &on_tables("history --org acme", &[]),
        "HISTORY_TABLE is not set",
    );
    assert_eq!(team(), before);
    assert!(on_tables("list teams", &[]).status.success());
    let table = ("HISTORY_TABLE", "HistoryTable");
    assert_fails(
        &on_tables(EDIT, &[table, ("HISTORY_DAYS", "x")]),
        "HISTORY_DAYS must be",
    );
    assert_eq!(team(), before);
    assert!(
        on_tables(EDIT, &[table, ("HISTORY_DAYS", "7")])
            .status
            .success()
    );

    let mut old = Network::with_team(&["ada"]);
    old.stack.has_history = false;
    let url = old.listen(|_| None);
    let output = on_stack(&url, EDIT).output().unwrap();
    assert_fails(&output, "the stack stack has no HistoryTable");
    let doctor = on_stack(&url, "doctor").output().unwrap();
    assert!(
        text(&doctor.stdout).contains("failed  HistoryTable"),
        "{doctor:?}"
    );
}

#[test]
fn an_erasure_leaves_one_entry_and_an_export_can_have_all() {
    let network = Network::with_team(&["ada"]);
    network
        .dynamodb
        .put(Table::API_KEYS, key_record(DEMO_KEY, "acme", "ci"));
    for line in [
        EDIT,
        "remove member --org acme --project apollo --team docs ada",
    ] {
        assert!(network.output(line).status.success(), "{line}");
    }
    let lines = |options: &str| {
        let output = network.output(&format!("orgs export acme {options}"));
        text(&output.stdout)
            .lines()
            .filter(|line| line.contains("entry_id"))
            .count()
    };
    assert_eq!((lines(""), lines("--history")), (0, 2));
    let acme = fixtures::disabled_organization("acme");
    network.dynamodb.put(Table::ORGANIZATIONS, acme);
    let erase = "orgs erase acme --without-export --wait 0 --yes --reason contract-ended";
    assert!(network.output(erase).status.success());
    let left = entries(&network, "");
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(left[0]["counts"], json!({ "keys": 1, "teams": 1 }));
    assert_eq!(left[0]["erased_keys"], json!(["acmeDemoKey1"]));
    assert_eq!(left[0]["reason"], "contract-ended");
    assert!(!left[0].to_string().contains("ada"), "{left:?}");
}

#[test]
fn a_restore_leaves_out_the_history_and_has_entries_with_counts() {
    let network = Network::with_team(&["ada"]);
    assert!(network.output(EDIT).status.success());
    let export = network.output("orgs export acme --history");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), export.stdout).unwrap();
    let copy = Network::new();
    let output = copy.output(&format!("restore --from {}", file.path().display()));
    assert!(
        text(&output.stderr).contains("leaving out the history"),
        "{output:?}"
    );
    let entries = entries(&copy, "");
    assert_eq!(entries.len(), 2, "{entries:?}");
    assert_eq!(entries[0]["action"], "restore organization");
    assert_eq!(entries[0]["counts"]["copied"], 3);
}
