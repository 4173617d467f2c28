//! What another operator changes after a command has read it, and before the command writes.

use std::{process::Output, sync::Mutex};

use serde_json::{Value, json};
use test_support::fixtures::{self, key_record};
use workspace_management::{api_key::ApiKey, store::Table};

use crate::{assert_fails, network::Network};

/// A record and its table.
type Record = (Table, Value);

const REMOVE_TEAM: &str = "remove team --org acme --project apollo docs --wait 0 --yes";

/// Runs a command, and stores a record before its first write.
fn run(network: &Network, change: Option<&Record>, line: &str) -> Output {
    let (dynamodb, change) = (network.dynamodb.clone(), Mutex::new(change.cloned()));
    let output = network.output_if(line, move |action, _| {
        let reads = ["GetItem", "Query", "Scan"].map(|read| format!("dynamodb:{read}"));
        if !reads.contains(&action.to_owned())
            && let Some((table, record)) = change.lock().unwrap().take()
        {
            dynamodb.put(table, record);
        }
        true
    });
    network.assert_valid_records();
    output
}

/// An organization whose record has this value.
fn organization(name: &str, value: &str) -> Record {
    let mut record = fixtures::organization("acme");
    record[name] = json!(value);
    (Table::ORGANIZATIONS, record)
}

fn disabled() -> Record {
    let record = fixtures::disabled_organization("acme");
    (Table::ORGANIZATIONS, record)
}

/// A key that is created just before its organization is disabled is stored before, or not at all. It
/// does not belong to an organization that was registered after the command had read the erased one.
#[test]
fn a_new_key_checks_the_organization_and_the_key_that_it_replaces() {
    let old = ApiKey::generate([1; 8], [[7; 16]; 2]);
    let record = key_record(&old, "acme", "test");
    let mut revoked = record.clone();
    revoked.revoked_at = Some("2026-01-02T00:00:00Z".to_owned());
    let mut replaced = json!(record);
    replaced["replaced_by"] = json!("otherNewKey1");
    let mut of_second = record.clone();
    of_second.org_request_id = Some("second".to_owned());
    for (change, is_stored) in [
        (None, true),
        (Some(organization("request_id", "second")), false),
        (Some((Table::KEYS, json!(of_second))), false),
        (Some(disabled()), false),
        (Some(organization("erasing_id", fixtures::RANDOM_ID)), false),
        (Some((Table::KEYS, json!(revoked))), false),
        (Some((Table::KEYS, replaced)), false),
    ] {
        let network = Network::with_team(&[]);
        network.dynamodb.put(Table::KEYS, &record);
        let rotate = format!("keys rotate {}", record.key_id);
        let output = run(&network, change.as_ref(), &rotate);
        assert_eq!(output.status.success(), is_stored, "{change:?}: {output:?}");
        let count = network.dynamodb.records(Table::KEYS).len();
        assert_eq!(count, 1 + usize::from(is_stored), "{change:?}");
    }
}

/// The command deletes the record that it has read, and no other.
#[test]
fn a_record_that_changes_before_it_is_removed_stays() {
    let network = Network::with_team(&[]);
    let mut model = fixtures::model("acme", "chat", "gpt-4o");
    network.dynamodb.put(Table::MODELS, &model);
    model["request_id"] = json!("another");
    let change = (Table::MODELS, model);
    let remove = "remove model --org acme --type chat gpt-4o";
    let output = run(&network, Some(&change), remove);
    assert_fails(&output, "has changed since it was read");
    assert_eq!(network.dynamodb.records(Table::MODELS).len(), 1);
}

/// A condition on an attribute that is missing also holds for a record that is missing, which the
/// update would then create.
#[test]
fn a_record_that_was_deleted_meanwhile_is_not_created_by_its_mark() {
    let acme = (Table::ORGANIZATIONS, fixtures::organization("acme"));
    let team = fixtures::team("acme", "apollo", "docs", "Docs");
    let team = (Table::TEAMS, team);
    let gone = "there is no organization acme";
    for (line, (table, record), error) in [
        ("orgs disable acme", &acme, gone),
        ("orgs enable acme", &disabled(), gone),
        (REMOVE_TEAM, &team, "the team docs has changed"),
    ] {
        let network = Network::with_team(&[]);
        network.dynamodb.put(*table, record);
        let (dynamodb, table, key) = (network.dynamodb.clone(), *table, record.clone());
        let output = network.output_if(line, move |action, _| {
            if action == "dynamodb:UpdateItem" {
                dynamodb.delete(table, &key);
            }
            true
        });
        assert_fails(&output, error);
        assert!(network.dynamodb.records(table).is_empty());
    }
}
