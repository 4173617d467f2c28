//! Keys of an organization that was erased and registered again under the same id.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use test_support::fixtures;
use tokio::sync::Notify;
use workspace_local::{demo::DEMO_KEY, dynamodb::is_read};
use workspace_management::{operations::Operation, store::Table};

use test_support::{
    TestApp, event_with_headers,
    faults::{Fault, Phase},
    send,
};

const DATA_STORE: &str = "/api/v1/org/acme/dataStores/create";
const VOICE: &str = "/api/v1/bot/playground/support/voice";
const MEMBERS: &str = "/api/v1/project/acme/apollo/research-team/addUsersToTheTeam";

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
        for was_cached in [true, false] {
            let app = TestApp::new().await;
            app.insert_demo_key().await;
            if *operation == Operation::AddTeamUsers {
                app.insert_demo_team().await;
            }
            if was_cached {
                app.send(event(*operation)).await.assert_success();
                app.advance_clock(Duration::from_secs(60));
            }
            register(&app, json!("second")).await;
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

/// While the function waits for the organization, the organization is erased and registered again.
#[tokio::test]
async fn a_key_that_was_read_before_another_registration_is_not_accepted() {
    let app = TestApp::new().await;
    app.insert_demo_key().await;
    let (delayed, reads) = (Arc::new(Notify::new()), AtomicUsize::new(0));
    let is_delayed = delayed.clone();
    let service = app.faulty_service(move |request| {
        let is_second = is_read(request) && reads.fetch_add(1, Ordering::Relaxed) == 1;
        is_second.then(|| {
            is_delayed.notify_one();
            (Fault::Late, Phase::BeforeExecution)
        })
    });
    let event = event(Operation::SetBotVoice);
    let request = send(&service, &event, Duration::from_secs(10));

    let (response, ()) = tokio::join!(request, async {
        delayed.notified().await;
        register(&app, json!("second")).await;
    });

    response.assert_problem(401, "unauthenticated");
    assert!(app.records(Table::BOT_VOICES).await.is_empty());
}

/// Keys and teams that are cached belong to the registration of the key.
#[tokio::test]
async fn a_key_of_the_current_registration_is_accepted_at_once_and_finds_no_earlier_team() {
    let app = TestApp::new().await;
    app.insert_demo_key().await;
    app.insert_demo_team().await;
    app.send(event(Operation::AddTeamUsers))
        .await
        .assert_success();
    register(&app, json!("second")).await;
    let team = json!({ "project": "acme#apollo", "team_id": "research-team" });
    app.delete(Table::TEAMS, team).await;

    let second = app.with_key(&issue_second(&app).await);
    for path in [VOICE, DATA_STORE] {
        second.post(path, body()).await.assert_success();
    }
    let users = json!({ "usersAddingToTeam": [{ "userid": "ada" }] });
    let response = second.post(MEMBERS, users).await;
    response.assert_problem(404, "no_such_team");
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
        let app = TestApp::new().await;
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
        let app = TestApp::new().await;
        let key = app.issue_key("acme", |_| {}).await;
        let mut record = app.only_record(Table::KEYS).await;
        record[attribute] = json!(null);
        app.insert(Table::KEYS, record).await;
        let response = app.with_key(&key).post(DATA_STORE, body()).await;
        response.assert_problem(status, code);
    }

    let app = TestApp::new().await;
    let key = app.issue_key("acme", |_| {}).await;
    let mut record = fixtures::organization("acme");
    record["disabled_at"] = json!(null);
    app.insert_foreign(Table::ORGANIZATIONS, record).await;
    for path in [VOICE, DATA_STORE] {
        let response = app.with_key(&key).post(path, body()).await;
        response.assert_problem(403, "organization_disabled");
    }
}
