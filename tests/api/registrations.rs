//! API keys of an organization that was erased and then registered again with the same id.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use test_support::{
    TestApp, event_with_headers,
    faults::{Fault, Phase},
    fixtures, send,
};
use tokio::sync::Notify;
use workspace_local::demo::DEMO_KEY;
use workspace_management::{operations::Operation, records::Table};

use crate::lifecycle::{DATA_STORES, VOICE, body};

/// Replaces the record of the organization with the record of a different registration.
async fn register(app: &TestApp, request_id: Value) {
    let mut record = fixtures::organization("acme");
    record["request_id"] = request_id;
    app.insert(Table::ORGANIZATIONS, record).await;
}

/// Changes an attribute of the record of the demo key.
async fn change_key(app: &TestApp, attribute: &str, value: Value) {
    let mut record = app.only_record(Table::API_KEYS).await;
    record[attribute] = value;
    app.insert(Table::API_KEYS, record).await;
}

/// The event of an operation with the demo key.
fn event(operation: Operation) -> Value {
    event_with_headers(operation, json!({ "authorization": DEMO_KEY }))
}

/// While the function waits for the organization, the organization is erased and registered again.
#[tokio::test]
async fn a_key_that_was_read_before_a_second_registration_is_not_accepted() {
    let app = TestApp::new().await;
    let second_read = Arc::new(Notify::new());
    let notifier = second_read.clone();
    let service = app.hooked_service(move |request| {
        if request.number == 1 {
            notifier.notify_one();
            return Some((Fault::Late, Phase::BeforeExecution));
        }
        None
    });
    let event = event(Operation::SetBotVoice);
    let request = send(&service, &event, Duration::from_secs(10));

    let (response, ()) = tokio::join!(request, async {
        second_read.notified().await;
        register(&app, json!("second")).await;
    });

    response.assert_problem(401, "unauthenticated");
    assert!(app.records(Table::BOT_VOICES).await.is_empty());
}

/// The service caches keys and teams for the registration to which the key belongs.
#[tokio::test]
async fn a_key_of_the_current_registration_is_accepted_at_once_and_finds_no_earlier_team() {
    let app = TestApp::new().await;
    app.insert_demo_team().await;
    app.send(event(Operation::AddTeamUsers))
        .await
        .assert_success();
    register(&app, json!("second")).await;
    app.remove(Table::TEAMS, &app.only_record(Table::TEAMS).await)
        .await;

    let second = Some("second".to_owned());
    let key = app
        .issue_key("acme", |key| key.registration_id = second)
        .await;
    let second = app.client(&key);
    for path in [VOICE, DATA_STORES] {
        second.post(path, body()).await.assert_success();
    }
    let users = json!({ "usersAddingToTeam": [{ "userid": "ada" }] });
    let members = "/api/v1/project/acme/apollo/research-team/addUsersToTheTeam";
    let response = second.post(members, users).await;
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
        // The record of the organization is malformed.
        (json!(1), Some(json!("1")), 500),
    ] {
        let app = TestApp::new().await;
        register(&app, organization.clone()).await;
        app.insert_key(DEMO_KEY, "acme", |key| key.registration_id = None)
            .await;
        if let Some(id) = &in_key {
            change_key(&app, "org_request_id", id.clone()).await;
        }
        for path in [VOICE, DATA_STORES] {
            let response = app.client(DEMO_KEY).post(path, body()).await;
            assert_eq!(response.status, status, "{organization} {in_key:?} {path}");
        }
    }
}

/// The service and the operator's tool write no null attributes, but a different program could.
#[tokio::test]
async fn a_null_attribute_that_restricts_access_counts_as_set() {
    for (attribute, status, code) in [
        ("revoked_at", 401, "unauthenticated"),
        ("expires_at", 401, "unauthenticated"),
        ("operations", 403, "operation_not_allowed"),
        ("projects", 403, "project_not_allowed"),
    ] {
        let app = TestApp::new().await;
        change_key(&app, attribute, json!(null)).await;
        let response = app.client(DEMO_KEY).post(DATA_STORES, body()).await;
        response.assert_problem(status, code);
    }

    for attribute in ["disabled_at", "erasing_id"] {
        let app = TestApp::new().await;
        let mut record = fixtures::organization("acme");
        record[attribute] = json!(null);
        app.insert(Table::ORGANIZATIONS, record).await;
        for path in [VOICE, DATA_STORES] {
            let response = app.client(DEMO_KEY).post(path, body()).await;
            response.assert_problem(403, "organization_disabled");
        }
    }
}

/// Only a list of strings limits a key to projects. Nothing else allows more than that.
#[tokio::test]
async fn a_key_with_malformed_projects_is_not_accepted() {
    for (projects, status) in [
        (json!(["zeus", "apollo"]), 204),
        (json!([]), 403),
        (json!(""), 500),
        (json!("apollo"), 500),
        (json!(true), 500),
        (json!({ "apollo": "apollo" }), 500),
        (json!(["apollo", 1]), 500),
        (json!(["apollo", null]), 500),
        (json!([["apollo"]]), 500),
    ] {
        let app = TestApp::new().await;
        change_key(&app, "projects", projects.clone()).await;
        let response = app.send(event(Operation::CreateTeam)).await;
        assert_eq!(response.status, status, "{projects}: {response:?}");
    }
}
