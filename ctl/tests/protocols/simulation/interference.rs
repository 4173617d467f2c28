//! What another operator changes after a command has read it, and before the command writes.

use std::{fmt, fs, sync::Arc, sync::Mutex};

use aws_sdk_dynamodb::{Client, config::http::HttpRequest};
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
use serde_json::{Value, json};
use workspace_local::{
    demo::key_record,
    dynamodb::{DynamoDb, http_client, is_read},
    fixtures, schemas,
    tables::sdk_config,
};
use workspace_management::{api_key::ApiKey, store::Table};
use workspacectl::{
    commands::{
        keys::{NewKey, insert},
        orgs::state::change,
        remove::team::{Key, remove},
        restore::{copy::restore, source::Source},
    },
    deployment::Deployment,
    wait::Wait,
};

use self::Change::{Deleted, Stored};
use super::operator;

/// A DynamoDB in which something changes before the first write.
#[derive(Clone)]
struct Interference {
    dynamodb: DynamoDb,
    change: Arc<Mutex<Option<Change>>>,
}

/// What changes.
#[derive(Debug, Clone)]
enum Change {
    Stored((Table, Value)),
    Deleted((Table, Value)),
}

impl fmt::Debug for Interference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Interference")
    }
}

impl HttpConnector for Interference {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        if !is_read(&request) {
            match self.change.lock().expect("a lock").take() {
                Some(Change::Stored((table, record))) => self.dynamodb.put(table, record),
                Some(Change::Deleted((table, record))) => self.dynamodb.delete(table, &record),
                None => {}
            }
        }
        HttpConnectorFuture::ready(Ok(self.dynamodb.handle(&request)))
    }
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

/// Checks all records against their schemas.
fn assert_valid(dynamodb: &DynamoDb) {
    for table in schemas::tables() {
        for record in dynamodb.records(table) {
            assert_eq!(schemas::errors(table, &record), [""; 0]);
        }
    }
}

async fn deployment(change: Option<Change>) -> (Deployment, DynamoDb) {
    let dynamodb = DynamoDb::with_tables().await.expect("a DynamoDB");
    for (table, record) in [organization(None, fixtures::CREATED_AT), team(None)] {
        dynamodb.put(table, record);
    }
    let connector = Interference {
        dynamodb: dynamodb.clone(),
        change: Arc::new(Mutex::new(change)),
    };
    let config = sdk_config("http://dynamodb").http_client(http_client(connector));
    let mut deployment = Deployment::local("http://dynamodb");
    deployment.client = Client::from_conf(config.build());
    (deployment, dynamodb)
}

/// Each condition of a restore's transaction fails if what it checks has changed since it was read.
#[tokio::test]
async fn a_restore_checks_what_a_record_belongs_to_when_it_writes() {
    let mut member = fixtures::member("acme", "apollo", "docs", "ada");
    member["created_at"] = json!("2026-02-01T00:00:00.000Z");
    let member = json!({ "table": "members", "record": member });
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), member.to_string()).expect("a file");
    let source = Source::new(file.path().to_str().expect("a path"), None).expect("a source");
    for (change, copied) in [
        (None, 1),
        (Some(Stored(team(Some(fixtures::RANDOM_ID)))), 0),
        (
            Some(Stored(organization(
                Some("erasing_id"),
                fixtures::CREATED_AT,
            ))),
            0,
        ),
        (
            Some(Stored(organization(None, "2026-03-01T00:00:00.000Z"))),
            0,
        ),
        // It may be disabled.
        (
            Some(Stored(organization(
                Some("disabled_at"),
                fixtures::CREATED_AT,
            ))),
            1,
        ),
    ] {
        let (deployment, dynamodb) = deployment(change.clone()).await;
        let report = restore(&deployment, &operator(0), &source, false).await;
        let report = report.expect("a report");
        assert_eq!(report.copied, copied, "{change:?}");
        assert_eq!(
            report.skipped.values().sum::<usize>(),
            1 - copied,
            "{change:?}"
        );
        assert_eq!(
            dynamodb.records(Table::TEAM_MEMBERS).len(),
            copied,
            "{change:?}"
        );
        assert_valid(&dynamodb);
    }
}

/// A key that is created just before its organization is disabled is stored before, or not at all.
#[tokio::test]
async fn a_new_key_checks_the_organization_and_the_key_that_it_replaces() {
    let old = ApiKey::generate([1; 8], [[7; 16]; 2]);
    let mut revoked = key_record(&old, "acme", "test");
    revoked.revoked_at = Some("2026-01-02T00:00:00Z".to_owned());
    for (change, is_stored) in [
        (None, true),
        (
            Some(Stored(organization(
                Some("disabled_at"),
                fixtures::CREATED_AT,
            ))),
            false,
        ),
        (
            Some(Stored(organization(
                Some("erasing_id"),
                fixtures::CREATED_AT,
            ))),
            false,
        ),
        (Some(Stored((Table::KEYS, json!(revoked)))), false),
    ] {
        let (deployment, dynamodb) = deployment(change.clone()).await;
        dynamodb.put(Table::KEYS, key_record(&old, "acme", "test"));
        let mut new = NewKey::generate("acme", "new", None, None).expect("a key");
        new.replaces = Some(revoked.key_id.clone());
        let stored = insert(&deployment, &new, &operator(0)).await;
        assert_eq!(stored.is_ok(), is_stored, "{change:?}: {stored:?}");
        let count = dynamodb.records(Table::KEYS).len();
        assert_eq!(count, 1 + usize::from(is_stored), "{change:?}");
        assert_valid(&dynamodb);
    }
}

/// A condition on an attribute that is missing also holds for a record that is missing, which the
/// update would then create.
#[tokio::test]
async fn a_record_that_was_deleted_meanwhile_is_not_created_by_its_mark() {
    let acme = organization(None, fixtures::CREATED_AT);
    for wanted in ["disabled", "enabled"] {
        let (deployment, dynamodb) = deployment(Some(Deleted(acme.clone()))).await;
        if wanted == "enabled" {
            let disabled = fixtures::disabled_organization("acme");
            dynamodb.put(Table::ORGANIZATIONS, disabled);
        }
        let changed = change(&deployment, &operator(0), "acme", wanted).await;
        assert!(changed.is_err(), "{changed:?}");
        assert!(dynamodb.records(Table::ORGANIZATIONS).is_empty());
    }

    let (deployment, dynamodb) = deployment(Some(Deleted(team(None)))).await;
    let key = Key {
        project: "acme#apollo".to_owned(),
        team: "docs".to_owned(),
    };
    let wait = Wait::seconds(0);
    let removed = remove(&deployment, &operator(0), &key, wait, |_| Ok(())).await;
    assert!(removed.is_err(), "{removed:?}");
    assert!(dynamodb.records(Table::TEAMS).is_empty());
}
