//! `remove`. The tests of `--export` are in `exports`.

use std::{fs, sync::Arc, thread};

use serde_json::{Value, json};
use test_support::{faults::DENIED, fixtures};
use workspace_management::records::Table;

use crate::{
    assert_fails, assert_usage_error, json_lines, network::Network, new_file, text, unused_url,
    workspacectl,
};

/// Zoe, whose id also exists in a different case, and Grace are in three teams of two organizations.
fn with_two_organizations() -> Network {
    let network = Network::new();
    for (org, team) in [("acme", "a"), ("acme", "b"), ("globex", "a")] {
        let put = |table, record| network.dynamodb.put(table, record);
        put(Table::ORGANIZATIONS, fixtures::organization(org));
        put(Table::TEAMS, fixtures::team(org, "apollo", team, team));
        for user in ["zoe", "Zoe", "grace"] {
            let member = fixtures::member(org, "apollo", team, user);
            put(Table::TEAM_MEMBERS, member);
        }
    }
    network
}

#[test]
fn a_user_is_removed_from_all_teams_of_one_organization() {
    let network = with_two_organizations();
    let shown = network.json("orgs show acme");
    assert_eq!(
        (&shown["records"]["members"], &shown["users"]),
        (&json!(6), &json!(3))
    );
    let listed = network.json("list members --org acme --user zoe");
    assert_eq!(listed.as_array().unwrap().len(), 2);
    let remove = "remove member --all-teams zoe --org acme";

    assert_usage_error(&network.output(remove), "pass --yes");
    let output = network.output(&format!("{remove} --yes --json"));
    assert!(output.status.success(), "{output:?}");
    let removed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(removed["teams"], json!(["acme#apollo#a", "acme#apollo#b"]));
    let message = text(&output.stderr);
    let expected = "zoe was removed from 2 teams of acme\n";
    assert!(message.contains(expected), "{message}");
    let again = network.output(&format!("{remove} --yes"));
    assert_fails(&again, "zoe is not in any team of acme");
    let left = network.dynamodb.records(Table::TEAM_MEMBERS);
    assert_eq!(left.len(), 7);
    let is_left = |member: &Value| member["user_id"] != "zoe" || member["org_id"] == "globex";
    assert!(left.iter().all(is_left), "{left:?}");
}

#[test]
fn a_user_is_removed_from_all_teams_of_all_organizations() {
    let network = with_two_organizations();
    let listed = network.json("list members --user zoe");
    assert_eq!(listed.as_array().unwrap().len(), 3);
    let (_folder, file) = new_file();
    let remove = format!("remove member --user zoe --all-orgs --export {file}");
    assert_usage_error(&network.output(&remove), "pass --yes");
    assert_usage_error(&network.output("remove member --all-orgs --yes"), "USER");
    let both = network.output("remove member --all-orgs --org acme zoe --yes");
    assert_usage_error(&both, "cannot be used with");

    let output = network.output(&format!("{remove} --yes"));

    let message = text(&output.stderr);
    for part in [
        "(found so far: acme#apollo#a, acme#apollo#b, globex#apollo#a)",
        "zoe was removed from 3 teams\n",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert_eq!(json_lines(&fs::read_to_string(file).unwrap()).len(), 3);
    let left = network.dynamodb.records(Table::TEAM_MEMBERS);
    assert_eq!(left.len(), 6);
    assert!(
        left.iter().all(|member| member["user_id"] != "zoe"),
        "{left:?}"
    );
    for (org, count) in [("acme", 2), ("globex", 1)] {
        let entries = network.json(&format!("history --org {org} --kind member"));
        assert_eq!(entries.as_array().unwrap().len(), count, "{entries}");
    }
    let again = network.output("remove member --all-orgs zoe --yes");
    assert_fails(&again, "zoe is not in any team\n");
}

/// The export has all of them, before any is deleted.
#[test]
fn several_teams_are_removed_after_one_wait_and_one_that_does_not_exist_is_named() {
    let network = Network::with_team(&["ada"]);
    let put = |table, record| network.dynamodb.put(table, record);
    put(Table::TEAMS, fixtures::team("acme", "apollo", "ops", "Ops"));
    let member = fixtures::member("acme", "apollo", "ops", "grace");
    put(Table::TEAM_MEMBERS, member);
    put(Table::TEAMS, fixtures::team("acme", "apollo", "lab", "Lab"));
    let (_folder, file) = new_file();
    let remove = "remove team --org acme --project apollo --wait 1 --yes";
    let unconfirmed = network.output("remove team --org acme --project apollo docs");
    assert_usage_error(&unconfirmed, "pass --yes");

    let output = network.output(&format!("{remove} docs nobody ops docs --export {file}"));

    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    for part in [
        "of the project apollo of acme will be removed: ",
        "the team docs was removed with 1 member\n",
        "the team ops was removed with 1 member\n",
        "error: the team nobody does not exist in this project\n",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert_eq!(message.matches("waiting").count(), 1, "{message}");
    assert_eq!(network.dynamodb.records(Table::TEAMS).len(), 1);
    assert!(network.dynamodb.records(Table::TEAM_MEMBERS).is_empty());
    assert_eq!(json_lines(&fs::read_to_string(file).unwrap()).len(), 4);
}

#[test]
fn a_team_with_a_malformed_attribute_is_removed() {
    let network = Network::with_team(&["ada"]);
    let mut team = network.dynamodb.records(Table::TEAMS).remove(0);
    team["team_name"] = Value::Null;
    team["team_description"] = json!(1);
    network.dynamodb.put(Table::TEAMS, team);
    let removed = network.json("remove team --org acme --project apollo docs --wait 0 --yes");
    assert_eq!(removed[0]["members"], 1);
    assert!(network.dynamodb.records(Table::TEAMS).is_empty());
}

#[test]
fn a_removal_that_fails_halfway_prints_what_it_has_removed() {
    let network = Network::with_team(&["ada"]);
    let ops = fixtures::team("acme", "apollo", "ops", "Ops");
    network.dynamodb.put(Table::TEAMS, ops);
    let member = fixtures::member("acme", "apollo", "ops", "ada");
    network.dynamodb.put(Table::TEAM_MEMBERS, member);
    let removed = |line: &str, denied: &'static str| -> Value {
        let line = format!("{line} --org acme --yes --json");
        let output = network.hooked_output(&line, move |request| {
            let is_denied = request.writes("Delete") && request.body.to_string().contains(denied);
            is_denied.then_some(DENIED)
        });
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
    };
    let member = "remove member --all-teams ada";
    assert_eq!(removed(member, "ops")["teams"], json!(["acme#apollo#docs"]));
    let teams = "remove team --project apollo docs ops --wait 0";
    assert_eq!(removed(teams, "docs"), json!([]));
    assert_eq!(removed(teams, "ops")[0]["team_id"], "docs");
}

/// The cancel arrives before the run begins to delete, before it deletes the member, or after.
#[test]
fn a_cancelled_removal_fails_and_what_is_left_stays() {
    let cancel = "remove team --org acme --project apollo docs --cancel";
    for (action, number, cancel_says, removed) in [
        (
            "Update",
            4,
            "no longer being removed. Nothing was deleted\n",
            0,
        ),
        (
            "ConditionCheck",
            6,
            "members may have been deleted: they were not exported",
            0,
        ),
        (
            "Delete",
            8,
            "members may have been deleted: they were not exported",
            1,
        ),
    ] {
        let network = Network::with_team(&["ada"]);
        let twin = Arc::new(network.twin());
        let remove = "remove team --org acme --project apollo docs --wait 0 --yes";
        let output = network.hooked_output(remove, move |request| {
            if request.number == number {
                assert!(request.writes(action), "{request:?}");
                let twin = twin.clone();
                let output = thread::spawn(move || twin.output(cancel)).join().unwrap();
                let message = text(&output.stderr);
                assert!(message.contains(cancel_says), "{message}");
            }
            None
        });
        let expected =
            format!("the removal of the team docs was cancelled, after {removed} member");
        assert_fails(&output, &expected);
        let teams = network.dynamodb.records(Table::TEAMS);
        assert_eq!(teams[0]["removing_id"], Value::Null);
        let members = network.dynamodb.records(Table::TEAM_MEMBERS);
        assert_eq!(members.len(), 1 - removed);
        network.assert_valid_records();
        let again = network.output(cancel);
        assert!(again.status.success() && text(&again.stderr).contains("is not being removed"));
        assert!(network.output(remove).status.success());
        assert_fails(&network.output(cancel), "the team docs does not exist");
    }
}

#[test]
fn teams_of_every_size_are_removed() {
    for count in [0, 1, 99, 100, 1_000] {
        let users: Vec<_> = (0..count).map(|number| format!("user-{number}")).collect();
        let network = Network::with_team(&users);
        let other = fixtures::member("acme", "apollo", "docs-2", "ada");
        network.dynamodb.put(Table::TEAM_MEMBERS, &other);
        let remove = "remove team --org acme --project apollo docs --wait 0 --yes";
        let removed = network.json(remove);
        assert_eq!(removed[0]["members"], count);
        assert!(network.dynamodb.records(Table::TEAMS).is_empty());
        let left = network.dynamodb.records(Table::TEAM_MEMBERS);
        assert_eq!(left, [other]);
    }
}

#[test]
fn an_invalid_argument_is_reported_before_anything_is_contacted() {
    let unreachable = unused_url();
    for line in [
        "remove team --org no/org --project apollo docs --yes",
        "remove team --org acme --project .. docs --yes",
        "remove member --org acme --project apollo ada",
        "remove model --org acme gpt-4o",
        "remove voice --org acme a/b",
        "orgs show .",
        "orgs disable acme --wait soon",
        "list teams --org acme --project a#b",
        "orgs erase acme --yes",
        "orgs erase acme --without-export",
        "orgs erase acme --yes --export a --without-export",
        "keys revoke --all --yes",
        "keys revoke acmeDemoKey1 --all --org acme",
        "restore --from no-such-file.jsonl",
        "restore --from Table --to nothing",
    ] {
        let mut command = workspacectl(line);
        command.env("AWS_ENDPOINT_URL_DYNAMODB", &unreachable);
        assert_usage_error(&command.output().unwrap(), "");
    }
}
