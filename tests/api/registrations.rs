//! Keys of an organization that was erased and registered again under the same id.

use std::time::Duration;

use serde_json::{Value, json};
use test_support::fixtures;
use workspace_local::demo::DEMO_KEY;
use workspace_management::{operation::Operation, store::Table};

use test_support::{TestApp, TestConfig, event_with_headers};

const DATA_STORE: &str = "/api/v1/org/acme/dataStores/create";
const VOICE: &str = "/api/v1/bot/playground/support/voice";

/// An app that caches keys for the longest time.
async fn app() -> TestApp {
    TestApp::with_config(TestConfig::LONG_KEY_CACHE).await
}

/// Replaces the record of the organization by that of another registration.
async fn register(app: &TestApp, request_id: Value) {
    let mut record = fixtures::organization("acme");
    record["request_id"] = request_id;
    app.insert_foreign(Table::ORGANIZATIONS, record).await;
}

/// Issues a key for the second registration.
async fn issue_second(app: &TestApp) -> String {
    let second = Some("second".to_owned());
    app.issue_key("acme", |key| key.org_request_id = second)
        .await
}

/// The body of a data store and of a voice.
fn body() -> Value {
    json!({ "dataStoreName": "Maps", "type": "male", "enabled": true })
}

/// The event of an operation with the demo key.
fn event(operation: Operation) -> Value {
    event_with_headers(operation, json!({ "authorization": DEMO_KEY }))
}

#[tokio::test]
async fn no_operation_accepts_a_key_of_an_earlier_registration() {
    for operation in Operation::ALL {
        // What the function has cached when the key is used for the second registration.
        for (caches_key, caches_organization) in
            [(true, true), (true, false), (false, true), (false, false)]
        {
            let app = app().await;
            app.insert_demo_key().await;
            if *operation == Operation::AddTeamUsers {
                app.insert_demo_team().await;
            }
            if caches_key {
                app.send(event(*operation)).await.assert_success();
                app.advance_clock(Duration::from_secs(60));
            }
            register(&app, json!("second")).await;
            if caches_organization {
                let anonymous = app.anonymous();
                anonymous.post(DATA_STORE, body()).await.assert_success();
            }
            let before = app.all_records().await;

            // The second time shows that nothing was cached that helps.
            for _ in 0..2 {
                let response = app.send(event(*operation)).await;
                response.assert_problem(401, "unauthenticated");
            }

            assert_eq!(app.all_records().await, before);
            let new = app.with_key(&issue_second(&app).await);
            for path in [VOICE, DATA_STORE] {
                new.post(path, body()).await.assert_success();
            }
        }
    }
}

/// Without waiting until the cached organization is read again.
#[tokio::test]
async fn a_key_of_the_current_registration_is_accepted_at_once() {
    for path in [VOICE, DATA_STORE] {
        let app = app().await;
        let first = app.client_with_new_key("acme").await;
        first.post(DATA_STORE, body()).await.assert_success();
        register(&app, json!("second")).await;

        let second = app.with_key(&issue_second(&app).await);
        second.post(path, body()).await.assert_success();

        let response = first.post(path, body()).await;
        response.assert_problem(401, "unauthenticated");
    }
}

#[tokio::test]
async fn a_key_and_its_organization_must_have_the_same_request_id() {
    for (organization, in_key, status) in [
        (json!("first"), Some(json!("first")), 204),
        (json!("first"), Some(json!("First")), 401),
        (json!("first"), Some(json!(null)), 401),
        (json!("first"), None, 401),
        (json!(null), Some(json!("first")), 401),
        (json!(null), Some(json!(null)), 401),
        (json!(null), None, 401),
        (json!(1), Some(json!("1")), 401),
    ] {
        let app = app().await;
        register(&app, organization.clone()).await;
        let key = app.issue_key("acme", |key| key.org_request_id = None).await;
        if let Some(id) = &in_key {
            let mut record = app.only_record(Table::KEYS).await;
            record["org_request_id"] = id.clone();
            app.insert(Table::KEYS, record).await;
        }
        for path in [VOICE, DATA_STORE] {
            let response = app.with_key(&key).post(path, body()).await;
            assert_eq!(response.status, status, "{organization} {in_key:?} {path}");
        }
    }
}

/// Only other programs write null attributes.
#[tokio::test]
async fn a_null_attribute_of_a_key_or_an_organization_counts_as_set() {
    for (attribute, status, code) in [
        ("revoked_at", 401, "unauthenticated"),
        ("expires_at", 401, "unauthenticated"),
        ("operations", 403, "operation_not_allowed"),
    ] {
        let app = app().await;
        let key = app.issue_key("acme", |_| {}).await;
        let mut record = app.only_record(Table::KEYS).await;
        record[attribute] = json!(null);
        app.insert(Table::KEYS, record).await;
        let response = app.with_key(&key).post(DATA_STORE, body()).await;
        response.assert_problem(status, code);
    }

    let app = app().await;
    let key = app.issue_key("acme", |_| {}).await;
    let mut record = fixtures::organization("acme");
    record["disabled_at"] = json!(null);
    app.insert_foreign(Table::ORGANIZATIONS, record).await;
    for path in [VOICE, DATA_STORE] {
        let response = app.with_key(&key).post(path, body()).await;
        response.assert_problem(403, "organization_disabled");
    }
}
