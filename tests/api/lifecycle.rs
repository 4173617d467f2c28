//! Records that `workspacectl` marks: disabled organizations, and teams that are being removed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use serde_json::{Value, json};
use test_support::{
    TestApp, TestClient, TestResponse, event_with_headers,
    faults::{Fault, Phase},
    fixtures, handle_checking_log, operation_event, send, unique_key,
};
use workspace_local::demo::DEMO_KEY;
use workspace_management::{
    operations::Operation,
    records::{ApiKeyRecord, Table},
};

const MINUTE: Duration = Duration::from_secs(60);

const TEAMS: &str = "/api/v1/project/acme/apollo/createNewTeamOnProject";
pub const DATA_STORES: &str = "/api/v1/org/acme/dataStores/create";
pub const VOICE: &str = "/api/v1/bot/playground/support/voice";
const MEMBERS: &str = "/api/v1/project/acme/apollo/docs/addUsersToTheTeam";

async fn disable(app: &TestApp) {
    let disabled = fixtures::disabled_organization("acme");
    app.insert(Table::ORGANIZATIONS, disabled).await;
}

/// A body that creates a data store, and also sets a voice.
pub fn body() -> Value {
    json!({ "dataStoreName": "Maps", "type": "alloy", "enabled": true })
}

async fn create_data_store(client: &TestClient<'_>) -> TestResponse {
    client.post(DATA_STORES, body()).await
}

#[tokio::test]
async fn no_operation_succeeds_for_a_disabled_or_erased_organization() {
    for is_erased in [false, true] {
        let app = TestApp::new().await;
        app.insert_demo_team().await;
        let before = app.all_records().await;
        if is_erased {
            let acme = json!({ "org_id": "acme" });
            app.remove(Table::ORGANIZATIONS, &acme).await;
        } else {
            disable(&app).await;
        }

        for operation in Operation::ALL {
            let event = event_with_headers(*operation, json!({ "authorization": DEMO_KEY }));
            let response = app.send(event).await;
            response.assert_problem(403, "organization_disabled");
            if operation.is_key_optional() {
                let response = app.send(event_with_headers(*operation, json!({}))).await;
                response.assert_problem(404, "no_such_organization");
            }
        }

        assert_eq!(app.all_records().await, before);
    }
}

#[tokio::test]
async fn a_403_is_for_the_organization_then_for_the_operation_then_for_the_project() {
    let app = TestApp::new().await;
    app.register("globex").await;
    disable(&app).await;
    let elsewhere = |key: &mut ApiKeyRecord| key.projects = Some(vec![]);
    let restricted = |key: &mut ApiKeyRecord| {
        elsewhere(key);
        key.operations = Some(vec![]);
    };
    let restricted = app.client(&app.issue_key("acme", restricted).await);
    let elsewhere = app.client(&app.issue_key("acme", elsewhere).await);
    let earlier = |key: &mut ApiKeyRecord| key.registration_id = Some("earlier".to_owned());
    let earlier = app.client(&app.issue_key("acme", earlier).await);

    for client in [&restricted, &elsewhere, &earlier] {
        let globex = "/api/v1/org/globex/dataStores/create";
        let response = client.post(globex, body()).await;
        response.assert_problem(403, "other_organization");
        for path in [VOICE, DATA_STORES] {
            let response = client.post(path, body()).await;
            response.assert_problem(403, "organization_disabled");
        }
    }
    app.register("acme").await;
    for path in [VOICE, DATA_STORES] {
        let response = restricted.post(path, body()).await;
        response.assert_problem(403, "operation_not_allowed");
        let response = elsewhere.post(path, body()).await;
        response.assert_problem(403, "project_not_allowed");
        let response = earlier.post(path, body()).await;
        response.assert_problem(401, "unauthenticated");
    }
}

#[tokio::test]
async fn a_disabled_organization_is_rejected_after_at_most_a_minute_and_an_enabled_one_at_once() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let anonymous = app.anonymous_client();
    create_data_store(&acme).await.assert_success();
    create_data_store(&anonymous).await.assert_success();
    disable(&app).await;

    app.advance_clock(MINUTE - Duration::from_secs(5));
    create_data_store(&acme).await.assert_success();
    let response = create_data_store(&anonymous).await;
    response.assert_problem(404, "no_such_organization");
    app.advance_clock(Duration::from_secs(5));
    // The second requests show that the service does not cache that an organization is disabled.
    for _ in 0..2 {
        let response = create_data_store(&acme).await;
        response.assert_problem(403, "organization_disabled");
        let response = create_data_store(&anonymous).await;
        response.assert_problem(404, "no_such_organization");
    }

    app.register("acme").await;
    create_data_store(&anonymous).await.assert_success();
    create_data_store(&acme).await.assert_success();
}

/// The age of a cached value counts from before the first of two reads. `Fault::Late` delays each
/// read by 300 ms.
#[tokio::test]
async fn slow_reads_do_not_extend_the_life_of_a_cached_value() {
    let app = TestApp::new().await;
    let service = app.hooked_service(|request| {
        let late = (Fault::Late, Phase::AfterExecution);
        request.is_read().then_some(late)
    });
    let event = operation_event(Operation::SetBotVoice);
    let start = SystemTime::now();
    let almost_a_minute = MINUTE - Duration::from_millis(1);
    for (age, status) in [(Duration::ZERO, 204), (almost_a_minute, 204), (MINUTE, 403)] {
        let now = start + age;
        let response = handle_checking_log(&service, &event, now, Duration::from_secs(10)).await;
        assert_eq!(response["statusCode"], status, "{age:?}");
        disable(&app).await;
    }
}

#[tokio::test]
async fn a_key_that_is_not_accepted_is_not_cached() {
    for path in [DATA_STORES, VOICE] {
        let app = TestApp::new().await;
        let key = unique_key();
        let client = app.client(&key);
        let response = client.post(path, body()).await;
        response.assert_problem(401, "unauthenticated");
        app.revoke_key(&key).await;
        let response = client.post(path, body()).await;
        response.assert_problem(401, "unauthenticated");
        // The service accepts the key as soon as the record is valid.
        app.insert_key(&key, "acme", |_| {}).await;
        client.post(path, body()).await.assert_success();
    }
}

/// The wait before the second read is 50 ms. The wait before the third read is 100 ms.
#[tokio::test]
async fn the_service_reads_again_what_dynamodb_leaves_unprocessed_after_a_wait_that_doubles() {
    for first in [0, 1] {
        let app = TestApp::new().await;
        let reads = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&reads);
        let service = app.hooked_service(move |request| {
            if !request.is_read() {
                return None;
            }
            let index = match counter.fetch_add(1, Ordering::Relaxed) {
                0 => first,
                // The second read is for one table only.
                1 => 0,
                _ => return None,
            };
            Some((Fault::Unprocessed(index), Phase::AfterExecution))
        });
        let event = event_with_headers(
            Operation::CreateDataStore,
            json!({ "authorization": DEMO_KEY }),
        );
        let start = Instant::now();

        send(&service, &event, Duration::from_secs(10))
            .await
            .assert_success();
        assert_eq!(reads.load(Ordering::Relaxed), 3);
        assert!(start.elapsed() >= Duration::from_millis(150));
        app.only_record(Table::DATA_STORES).await;
    }
}

/// Stores the team `docs`. A team with a `removing_id` is being removed, even if the id is null, as
/// a different program could write it.
async fn insert_team(app: &TestApp, removing_id: Option<Value>) {
    let mut team = fixtures::team("acme", "apollo", "docs", "Docs");
    if let Some(id) = removing_id {
        team["removing_id"] = id;
    }
    app.insert(Table::TEAMS, team).await;
}

#[tokio::test]
async fn a_team_that_is_being_removed_is_not_created_accepts_no_users_and_is_not_cached() {
    let app = TestApp::new().await;
    let acme = app.client_with_new_key("acme").await;
    let second_key = app.client_with_new_key("acme").await;
    let add = async |client: &TestClient<'_>| {
        let body = json!({ "usersAddingToTeam": [{ "userid": "ada" }] });
        client.post(MEMBERS, body).await
    };
    for id in [json!("00000000000000a1"), json!(null)] {
        insert_team(&app, Some(id)).await;
        let before = app.records(Table::TEAMS).await;
        for team in ["docs", "Docs"] {
            let team = json!({ "teamName": team, "teamDescription": "x" });
            let response = acme.post(TEAMS, team).await;
            response.assert_problem(409, "being_removed");
            assert_eq!(response.headers["retry-after"], "60");
        }
        add(&acme).await.assert_problem(404, "no_such_team");
        assert_eq!(app.records(Table::TEAMS).await, before);
        assert!(app.records(Table::TEAM_MEMBERS).await.is_empty());
    }

    insert_team(&app, None).await;
    add(&acme).await.assert_success();
    insert_team(&app, Some(json!("00000000000000a2"))).await;
    // The team is cached only for the first key.
    add(&second_key).await.assert_problem(404, "no_such_team");
    app.advance_clock(MINUTE - Duration::from_secs(5));
    add(&acme).await.assert_success();
    app.advance_clock(Duration::from_secs(5));

    add(&acme).await.assert_problem(404, "no_such_team");
}
