//! What another operator changes after a command has read it, and before the command writes.

use std::{fs, process::Output, sync::Mutex};

use serde_json::{Value, json};
use workspace_local::fixtures::{self, key_record};
use workspace_management::{api_key::ApiKey, store::Table};

use crate::{assert_fails, network::Network};

/// A record and its table.
type Record = (Table, Value);

const REMOVE_TEAM: &str = "remove team --org acme --project apollo docs --wait 0 --yes";

/// Runs a command, and stores a record before its first write.
fn run(network: &Network, change: Option<&Record>, line: &str) -> Output {
    let (dynamodb, change) = (network.dynamodb.clone(), Mutex::new(change.cloned()));
    let output = network.run(line, move |action, _| {
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

/// Each condition of a restore's transaction fails if what it checks has changed since it was read.
#[test]
fn a_restore_checks_what_a_record_belongs_to_when_it_writes() {
    let mut member = fixtures::member("acme", "apollo", "docs", "ada");
    member["created_at"] = json!("2026-02-01T00:00:00.000Z");
    let member = json!({ "table": "members", "record": member });
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), member.to_string()).unwrap();
    let restore = format!("restore --from {}", file.path().display());
    let mut removed = fixtures::team("acme", "apollo", "docs", "Docs");
    removed["removing_id"] = json!(fixtures::RANDOM_ID);
    let other = organization("created_at", "2026-03-01T00:00:00.000Z");
    for (change, copied) in [
        (None, 1),
        (Some((Table::TEAMS, removed)), 0),
        (Some(organization("erasing_id", fixtures::RANDOM_ID)), 0),
        (Some(other), 0),
        // It may be disabled.
        (Some(disabled()), 1),
    ] {
        let network = Network::with_team(&[]);
        let output = run(&network, change.as_ref(), &restore);
        let skipped = "members\tacme#apollo#docs ada\tskipped: its organization or team changed \
            meanwhile: run the command again\n";
        let printed = if copied == 1 { "" } else { skipped };
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert_eq!(stdout, printed, "{change:?}");
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

/// A run that replaces all keys finds those that are created after it has read them.
#[test]
fn all_keys_includes_those_that_are_created_meanwhile() {
    let keys = [1, 2].map(|id| ApiKey::generate([id; 8], [[7; 16]; 2]));
    let [first, second] = keys.map(|key| key_record(&key, "acme", "test"));
    for (command, expected) in [
        ("rotate", "replaced 2 keys of acme"),
        ("revoke", "revoked 2 keys"),
    ] {
        let network = Network::with_team(&[]);
        network.dynamodb.put(Table::KEYS, &first);
        let created = (Table::KEYS, json!(second));
        let all = format!("keys {command} --all --org acme --yes");
        let output = run(&network, Some(&created), &all);
        assert!(output.status.success(), "{output:?}");
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains(expected), "{message}");
    }
}

/// Other programs may write nulls. Commands replace them, or compare them as they are.
#[test]
fn records_that_other_programs_have_changed_are_changed_and_removed() {
    let acme = fixtures::organization("acme");
    let mut disabled_by_hand = acme.clone();
    disabled_by_hand["disabled_at"] = json!(fixtures::CREATED_AT);
    let team = fixtures::team("acme", "apollo", "docs", "Docs");
    let member = fixtures::member("acme", "apollo", "docs", "ada");
    let key = ApiKey::generate([1; 8], [[7; 16]; 2]);
    let key = json!(key_record(&key, "acme", "test"));
    let revoke = format!("keys revoke {}", key["key_id"].as_str().unwrap());
    let [acme, disabled_by_hand] =
        [acme, disabled_by_hand].map(|record| (Table::ORGANIZATIONS, record));
    let member = (Table::TEAM_MEMBERS, member);
    let (team, key) = ((Table::TEAMS, team), (Table::KEYS, key));
    let remove_member = "remove member --org acme --project apollo --team docs ada";
    let erase = "orgs erase acme --without-export --wait 0 --yes";
    for (line, (table, record), name) in [
        ("orgs disable acme --no-wait", &acme, "state_id"),
        ("orgs enable acme", &disabled(), "state_id"),
        (&revoke, &key, "revoked_at"),
        ("keys revoke --all --org acme --yes", &key, "revoked_at"),
        (remove_member, &member, "created_at"),
        (REMOVE_TEAM, &team, "removing_id"),
        (erase, &disabled_by_hand, "erasing_id"),
    ] {
        let network = Network::with_team(&[]);
        let mut record = record.clone();
        record[name] = json!(null);
        network.dynamodb.put(*table, record);
        let output = run(&network, None, line);
        assert!(output.status.success(), "{line}: {output:?}");
        let records = network.dynamodb.records(*table);
        let is_changed = records.iter().all(|record| record[name].is_string());
        assert!(is_changed, "{line}: {records:?}");
        let is_removal = line.starts_with("remove") || line == erase;
        assert_eq!(records.is_empty(), is_removal, "{line}: {records:?}");
    }
}

/// A condition on an attribute that is missing also holds for a record that is missing, which the
/// update would then create.
#[test]
fn a_record_that_was_deleted_meanwhile_is_not_created_by_its_mark() {
    let acme = (Table::ORGANIZATIONS, fixtures::organization("acme"));
    let team = fixtures::team("acme", "apollo", "docs", "Docs");
    let team = (Table::TEAMS, team);
    for (line, (table, record), error) in [
        ("orgs disable acme", &acme, "there is no organization acme"),
        (
            "orgs enable acme",
            &disabled(),
            "there is no organization acme",
        ),
        (REMOVE_TEAM, &team, "the team docs has changed"),
    ] {
        let network = Network::with_team(&[]);
        network.dynamodb.put(*table, record);
        let (dynamodb, table, key) = (network.dynamodb.clone(), *table, record.clone());
        let output = network.run(line, move |action, _| {
            if action == "dynamodb:UpdateItem" {
                dynamodb.delete(table, &key);
            }
            true
        });
        assert_fails(&output, error);
        assert!(network.dynamodb.records(table).is_empty());
    }
}
