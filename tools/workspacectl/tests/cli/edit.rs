//! `edit`.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use test_support::{
    faults::{Fault, Phase},
    fixtures,
};
use workspace_local::demo::DEMO_KEY;
use workspace_management::records::Table;

use crate::{
    assert_fails, assert_usage_error, interference, network::Network, on_stack, server::Server,
    text,
};

const TEAM: &str = "edit team --org acme --project apollo research-team";

/// Renames the team of [`Network::with_team`].
const RENAME: &str = "edit team --org acme --project apollo docs --name Manuals --yes";

#[test]
fn a_renamed_team_keeps_its_id_and_members_and_its_old_name_gets_a_409() {
    let server = Server::with_records();
    let members = server.records("list members");
    let rename = format!("{TEAM} --name Manuals --description Rewritten");

    assert_usage_error(&server.output(&rename), "pass --yes");
    let output = server.output(&format!("{rename} --yes --json"));

    let message = text(&output.stderr);
    assert!(output.status.success(), "{message}");
    let local = format!("local DynamoDB at {}: ", server.dynamodb_url);
    for part in [
        "the team research-team: team_name changes from \"Research Team\" to \"Manuals\", and ",
        "team_description changes from \"Reads papers\" to \"Rewritten\".",
        "with the old values will get a 409. A create request with the new name will create a different record, with the id manuals.",
        "the team research-team was changed\n",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert_eq!(message.matches(&local).count(), 2, "{message}");
    let team: Value = serde_json::from_slice(&output.stdout).unwrap();
    let teams = server.records("list teams");
    assert_eq!(json!(teams), json!([team]));
    assert_eq!(team["team_id"], "research-team");
    assert_eq!(
        (&team["team_name"], &team["team_description"]),
        (&json!("Manuals"), &json!("Rewritten"))
    );
    assert_eq!(team["updated_by"], server.operator());
    assert_eq!(server.records("list members"), members);
    assert_eq!(server.create_team("acme", DEMO_KEY, "Research Team"), 409);
    assert_eq!(server.create_team("acme", DEMO_KEY, "Manuals"), 204);
    assert_eq!(server.records("list teams").len(), 2);
    // A second rename finds nothing to change, although a different team has the name now.
    server.run(&format!("{rename} --yes"));
    let back =
        server.output("edit team --org acme --project apollo manuals --name Research-Team --yes");
    assert_fails(&back, "research-team already has this name, or the id");
}

#[test]
fn data_stores_and_logging_instances_change_in_place() {
    let server = Server::with_records();
    let description = [
        "edit data-store --org acme papers --yes --description",
        "\u{3000}Maps\r\n",
    ];
    let store = server.json(&description.join(" "));
    assert_eq!(store["data_store_description"], "Maps");
    assert_eq!(store["data_store_name"], "Papers");
    let zeus = "edit logging-instance --org acme --project apollo --yes --project-name Zeus";
    assert_eq!(server.json(zeus)["project_name"], "Zeus");
    let unchanged = server.json(zeus);
    assert_eq!(unchanged, server.records("list logging-instances")[0]);
}

#[test]
fn the_number_of_a_model_and_a_voice_change_in_place() {
    let server = Server::with_records();
    let edit = "edit model --org acme --type chat gpt-4o --yes --id";
    let model = server.json(&format!("{edit} -7"));
    assert_eq!(
        (&model["id"], &model["model_id"]),
        (&json!(-7), &json!("gpt-4o"))
    );
    assert_eq!(server.json(&format!("{edit} -7")), model);
    assert!(server.records("list models").contains(&model));
    let edit = "edit voice --org acme bot-7 --yes";
    let before = &server.records("list voices")[0];
    let is_enabled = before["enabled"].as_bool().unwrap();

    let output = server.output(&format!("{edit} --type nova --enabled {}", !is_enabled));

    let message = text(&output.stderr);
    let change = format!(
        "enabled changes from {is_enabled} to {}. A client that sets",
        !is_enabled
    );
    assert!(message.contains(&change), "{message}");
    let after = &server.records("list voices")[0];
    assert_eq!(after["type"], "nova");
    assert_eq!(after["enabled"], !is_enabled);
    assert_eq!(after["updated_by"], server.operator());
    assert_eq!(after["created_by"], before["created_by"]);
    assert_ne!(after["updated_request_id"], before["updated_request_id"]);
}

#[test]
fn values_have_the_rules_of_the_api_and_a_record_must_exist() {
    let server = Server::with_records();
    let before = server.valid_records();
    for (options, error) in [
        (
            "--name 🎉",
            "--name <NAME>': must contain a letter or a digit",
        ),
        (
            "--description a\u{7}",
            "--description <DESCRIPTION>': must not contain control characters",
        ),
        ("", "required"),
    ] {
        assert_usage_error(&server.output(&format!("{TEAM} {options} --yes")), error);
    }
    for (line, error) in [
        (
            "edit model --org acme --type chat gpt-4o --id 9007199254740992",
            "is not in -9",
        ),
        (
            "edit model --org acme --type chat gpt-4o --id 1.5",
            "invalid",
        ),
        (
            "edit voice --org acme bot-7 --type \u{7}",
            "must not contain control characters",
        ),
        (
            "edit voice --org acme bot-7 --enabled yes",
            "possible values: true, false",
        ),
        ("edit voice --org acme bot-7", "required"),
    ] {
        assert_usage_error(&server.output(&format!("{line} --yes")), error);
    }
    let missing = TEAM.replace("research-team", "nobody");
    let missing = server.output(&format!("{missing} --name Docs --yes"));
    assert_fails(&missing, "the team nobody does not exist");
    assert_eq!(server.valid_records(), before);
}

/// DynamoDB executes the first attempt, and the retry finds the result.
#[test]
fn a_lost_response_is_no_failure() {
    let network = Network::with_team(&["ada"]);
    let was_lost = AtomicBool::new(false);
    let lost = (
        Fault::Status(500, "InternalServerError"),
        Phase::AfterExecution,
    );
    let url = network.listen(move |request| {
        let is_lost = request.writes("Update") && !was_lost.swap(true, Ordering::Relaxed);
        is_lost.then_some(lost)
    });
    let output = on_stack(&url, RENAME).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        network.dynamodb.records(Table::TEAMS)[0]["team_name"],
        "Manuals"
    );
}

#[test]
fn a_team_that_changes_or_is_being_removed_is_not_edited() {
    let team = || fixtures::team("acme", "apollo", "docs", "Docs");
    for (name, value) in [
        ("removing_id", fixtures::RANDOM_ID),
        ("request_id", "different"),
        ("updated_at", fixtures::CREATED_AT),
    ] {
        let mut changed = team();
        changed[name] = json!(value);
        let network = Network::with_team(&["ada"]);
        let output = interference::run(&network, RENAME, Table::TEAMS, changed.clone());
        assert_fails(&output, "the team docs has changed since it was read");
        assert_eq!(network.dynamodb.records(Table::TEAMS), [changed.clone()]);
        if name == "removing_id" {
            assert_fails(&network.output(RENAME), "the team docs is being removed");
        }
    }
}
