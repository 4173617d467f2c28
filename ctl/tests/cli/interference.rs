//! What another operator changes after a command has read it, and before the command writes.

use std::{fs, process::Output, sync::Mutex};

use serde_json::{Value, json};
use workspace_local::{demo::key_record, fixtures};
use workspace_management::{api_key::ApiKey, store::Table};

use self::Change::{Deleted, Stored};
use crate::{assert_fails, network::Network, workspacectl};

/// What changes before the first write of a command.
#[derive(Debug, Clone)]
enum Change {
    Stored((Table, Value)),
    Deleted((Table, Value)),
}

/// A DynamoDB with an organization and a team.
fn network() -> Network {
    let network = Network::new();
    for (table, record) in [organization(None, fixtures::CREATED_AT), team(None)] {
        network.dynamodb.put(table, record);
    }
    network
}

/// Runs a command, and changes something before its first write.
fn run(network: &Network, change: &Option<Change>, arguments: &[&str]) -> Output {
    let (dynamodb, change) = (network.dynamodb.clone(), Mutex::new(change.clone()));
    let url = network.listen(move |action, _| {
        let reads = ["GetItem", "Query", "Scan"].map(|read| format!("dynamodb:{read}"));
        if !reads.contains(&action.to_owned()) {
            match change.lock().unwrap().take() {
                Some(Stored((table, record))) => dynamodb.put(table, record),
                Some(Deleted((table, record))) => dynamodb.delete(table, &record),
                None => {}
            }
        }
        true
    });
    let mut command = workspacectl(arguments);
    let output = command.env("AWS_ENDPOINT_URL_DYNAMODB", url).output();
    network.assert_valid_records();
    output.unwrap()
}

fn organization(mark: Option<&str>, created_at: &str) -> (Table, Value) {
    let mut record = match mark {
        Some("disabled_at") => fixtures::disabled_organization("acme"),
        _ => fixtures::organization("acme"),
    };
    record["created_at"] = json!(created_at);
    if mark == Some("erasing_id") {
        record["erasing_id"] = json!(fixtures::RANDOM_ID);
    }
    (Table::ORGANIZATIONS, record)
}

fn team(removing_id: Option<&str>) -> (Table, Value) {
    let mut record = fixtures::team("acme", "apollo", "docs", "Docs");
    if let Some(id) = removing_id {
        record["removing_id"] = json!(id);
    }
    (Table::TEAMS, record)
}

/// Each condition of a restore's transaction fails if what it checks has changed since it was read.
#[test]
fn a_restore_checks_what_a_record_belongs_to_when_it_writes() {
    let mut member = fixtures::member("acme", "apollo", "docs", "ada");
    member["created_at"] = json!("2026-02-01T00:00:00.000Z");
    let member = json!({ "table": "members", "record": member });
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), member.to_string()).unwrap();
    let restore = ["restore", "--from", file.path().to_str().unwrap()];
    let disabled = organization(Some("disabled_at"), fixtures::CREATED_AT);
    let erased = organization(Some("erasing_id"), fixtures::CREATED_AT);
    let other = organization(None, "2026-03-01T00:00:00.000Z");
    for (change, copied) in [
        (None, 1),
        (Some(Stored(team(Some(fixtures::RANDOM_ID)))), 0),
        (Some(Stored(erased)), 0),
        (Some(Stored(other)), 0),
        // It may be disabled.
        (Some(Stored(disabled)), 1),
    ] {
        let network = network();
        let output = run(&network, &change, &restore);
        let skipped = "members\tacme#apollo#docs ada\tskipped: its organization or team changed \
            meanwhile: run the command again\n";
        let printed = if copied == 1 { "" } else { skipped };
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            printed,
            "{change:?}"
        );
        assert_eq!(output.status.success(), copied == 1, "{change:?}");
        let members = network.dynamodb.records(Table::TEAM_MEMBERS);
        assert_eq!(members.len(), copied, "{change:?}");
    }
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
    let disabled = organization(Some("disabled_at"), fixtures::CREATED_AT);
    let erased = organization(Some("erasing_id"), fixtures::CREATED_AT);
    let mut again = organization(None, fixtures::CREATED_AT);
    again.1["request_id"] = json!("second");
    let mut of_second = record.clone();
    of_second.org_request_id = Some("second".to_owned());
    for (change, is_stored) in [
        (None, true),
        (Some(Stored(again)), false),
        (Some(Stored((Table::KEYS, json!(of_second)))), false),
        (Some(Stored(disabled)), false),
        (Some(Stored(erased)), false),
        (Some(Stored((Table::KEYS, json!(revoked)))), false),
        (Some(Stored((Table::KEYS, replaced))), false),
    ] {
        let network = network();
        network.dynamodb.put(Table::KEYS, &record);
        let output = run(&network, &change, &["keys", "rotate", &record.key_id]);
        assert_eq!(output.status.success(), is_stored, "{change:?}: {output:?}");
        let count = network.dynamodb.records(Table::KEYS).len();
        assert_eq!(count, 1 + usize::from(is_stored), "{change:?}");
    }
}

/// A run that replaces all keys finds those that are created after it has read them.
#[test]
fn all_keys_includes_those_that_are_created_meanwhile() {
    let keys = [1, 2].map(|id| ApiKey::generate([id; 8], [[7; 16]; 2]));
    let [first, second] = keys.map(|key| key_record(&key, "acme", "test"));
    for (command, expected) in [
        ("rotate", "replaced 2 keys of acme"),
        ("revoke", "revoked 2 keys"),
    ] {
        let network = network();
        network.dynamodb.put(Table::KEYS, &first);
        let created = Some(Stored((Table::KEYS, json!(second))));
        let all = ["keys", command, "--all", "--org", "acme", "--yes"];
        let output = run(&network, &created, &all);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.success() && error.contains(expected),
            "{error}"
        );
    }
}

/// Another program may write a time of revocation that is null.
#[test]
fn a_revoked_key_has_a_time_of_revocation() {
    let network = network();
    let key = ApiKey::generate([1; 8], [[7; 16]; 2]);
    let mut record = json!(key_record(&key, "acme", "test"));
    record["revoked_at"] = json!(null);
    for all in [false, true] {
        network.dynamodb.put(Table::KEYS, &record);
        let id = record["key_id"].as_str().unwrap();
        let revoke = match all {
            true => vec!["keys", "revoke", "--all", "--org", "acme", "--yes"],
            false => vec!["keys", "revoke", id],
        };
        let output = run(&network, &None, &revoke);
        assert!(output.status.success(), "{output:?}");
        let revoked = &network.dynamodb.records(Table::KEYS)[0];
        assert!(revoked["revoked_at"].is_string(), "{revoked}");
    }
}

/// Another program may write a `state_id` that is null.
#[test]
fn an_organization_whose_state_id_is_null_is_disabled_and_enabled() {
    for command in ["disable", "enable"] {
        let network = network();
        let mut record = match command {
            "disable" => fixtures::organization("acme"),
            _ => fixtures::disabled_organization("acme"),
        };
        record["state_id"] = json!(null);
        network.dynamodb.put(Table::ORGANIZATIONS, record);
        let output = run(&network, &None, &["orgs", command, "acme"]);
        assert!(output.status.success(), "{output:?}");
    }
}

/// A condition on an attribute that is missing also holds for a record that is missing, which the
/// update would then create.
#[test]
fn a_record_that_was_deleted_meanwhile_is_not_created_by_its_mark() {
    let acme = organization(None, fixtures::CREATED_AT);
    for command in ["disable", "enable"] {
        let network = network();
        if command == "enable" {
            let disabled = fixtures::disabled_organization("acme");
            network.dynamodb.put(Table::ORGANIZATIONS, disabled);
        }
        let change = Some(Deleted(acme.clone()));
        let output = run(&network, &change, &["orgs", command, "acme"]);
        assert_fails(&output, "there is no organization acme");
        assert!(network.dynamodb.records(Table::ORGANIZATIONS).is_empty());
    }

    let network = network();
    let team = team(None);
    let remove = "remove team --org acme --project apollo docs --wait 0 --yes";
    let remove: Vec<_> = remove.split(' ').collect();
    let output = run(&network, &Some(Deleted(team)), &remove);
    assert!(!output.status.success(), "{output:?}");
    assert!(network.dynamodb.records(Table::TEAMS).is_empty());
}
