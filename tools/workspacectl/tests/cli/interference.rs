//! A different operator changes a record after a command has read it, and before the command
//! writes.

use std::{process::Output, sync::Once};

use serde_json::{Value, json};
use test_support::fixtures::{self, key_record};
use workspace_local::demo::DEMO_KEY;
use workspace_management::records::Table;

use crate::{assert_fails, network::Network, text};

/// Runs a command, and stores a record before the first write of the command.
pub(crate) fn run(network: &Network, line: &str, table: Table, record: Value) -> Output {
    let (dynamodb, change) = (network.dynamodb.clone(), Once::new());
    let output = network.hooked_output(line, move |request| {
        if !request.is_read() {
            change.call_once(|| dynamodb.put(table, &record));
        }
        None
    });
    network.assert_valid_records();
    output
}

/// A new key is not stored after its organization was disabled, or for a registration that the
/// command has not read.
#[test]
fn a_new_key_checks_the_organization_and_the_key_that_it_replaces() {
    let acme = fixtures::organization("acme");
    let mark = fixtures::RANDOM_ID;
    let disabled = fixtures::disabled_organization("acme");
    let key = json!(key_record(DEMO_KEY, "acme", "test"));
    for (table, record, name, value) in [
        (Table::ORGANIZATIONS, &acme, "request_id", "second"),
        (Table::ORGANIZATIONS, &acme, "erasing_id", mark),
        (Table::ORGANIZATIONS, &disabled, "disabled_by", "ada"),
        (Table::API_KEYS, &key, "org_request_id", "second"),
        (Table::API_KEYS, &key, "revoked_at", fixtures::CREATED_AT),
        (Table::API_KEYS, &key, "replaced_by", "otherNewKey1"),
    ] {
        let network = Network::with_team(&[""; 0]);
        network.dynamodb.put(Table::API_KEYS, &key);
        let mut changed = record.clone();
        changed[name] = json!(value);
        let output = run(&network, "keys rotate acmeDemoKey1", table, changed);
        assert!(!output.status.success(), "{name}: {output:?}");
        assert_eq!(network.dynamodb.records(Table::API_KEYS).len(), 1, "{name}");
    }
}

/// The command deletes only the record that it has read.
#[test]
fn a_record_that_changes_before_it_is_removed_stays() {
    let network = Network::with_team(&[""; 0]);
    let mut model = fixtures::model("acme", "chat", "gpt-4o");
    network.dynamodb.put(Table::MODELS, &model);
    model["request_id"] = json!("different");
    let remove = "remove model --org acme --type chat gpt-4o";
    let output = run(&network, remove, Table::MODELS, model);
    assert_fails(&output, "has changed since it was read");
    assert_eq!(network.dynamodb.records(Table::MODELS).len(), 1);
}

/// The operator must not read that nothing was deleted.
#[test]
fn a_cancel_notices_that_the_deletion_has_begun() {
    let network = Network::with_team(&["ada"]);
    let mut team = fixtures::team("acme", "apollo", "docs", "Docs");
    team["removing_id"] = json!(fixtures::RANDOM_ID);
    team["removing_at"] = json!(fixtures::CREATED_AT);
    team["removing_by"] = json!("ada");
    network.dynamodb.put(Table::TEAMS, &team);
    team["removing_deleting_at"] = json!(fixtures::CREATED_AT);
    let cancel = "remove team --org acme --project apollo docs --cancel";
    let output = run(&network, cancel, Table::TEAMS, team);
    let message = text(&output.stderr);
    assert!(message.contains("may have been deleted"), "{message}");
}

/// The operator has confirmed a different team, or an organization in a different state.
#[test]
fn a_record_that_changes_before_it_is_marked_stays() {
    let mut new_team = fixtures::team("acme", "apollo", "docs", "Docs");
    new_team["request_id"] = json!("different");
    let mut cancelled = fixtures::team("acme", "apollo", "docs", "Docs");
    cancelled["removal_cancelled_at"] = json!(fixtures::CREATED_AT);
    let mut disabled_again = fixtures::disabled_organization("acme");
    disabled_again["disabled_at"] = json!("2026-02-02T00:00:00.000Z");
    let remove = "remove team --org acme --project apollo docs --wait 0 --yes";
    let erase = "orgs erase acme --without-export --wait 0 --yes";
    for (line, table, record) in [
        (remove, Table::TEAMS, new_team),
        (remove, Table::TEAMS, cancelled),
        (erase, Table::ORGANIZATIONS, disabled_again),
    ] {
        let network = Network::with_team(&["ada"]);
        network.disable_acme();
        let output = run(&network, line, table, record);
        assert_fails(&output, "has changed since it was read");
        assert_eq!(network.dynamodb.records(Table::TEAM_MEMBERS).len(), 1);
        for record in network.dynamodb.records(table) {
            assert!(record["removing_id"].is_null() && record["erasing_id"].is_null());
        }
    }
}
