//! API keys: which credentials are accepted, for how long, and how many DynamoDB reads they cause.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use workspace_management::store::Table;

use crate::support::{
    TestApp, TestClient, TestConfig, TestResponse, event, keys_with_same_id, unique_key,
};

const TEAM: &str = "/api/v1/project/acme/apollo/createNewTeamOnProject";
const DATA_STORE: &str = "/api/v1/org/acme/dataStores/create";

async fn create_team(client: &TestClient<'_>) -> TestResponse {
    client.post(TEAM, json!({ "teamName": "Research" })).await
}

#[tokio::test]
async fn a_key_is_accepted_with_the_bearer_scheme_or_without_a_scheme() {
    let app = TestApp::new().await;
    let key = app.issue_key("acme", |_| {}).await;

    for credential in [
        format!("Bearer {key}"),
        format!("bearer {key}"),
        format!("BEARER   {key} "),
        key.clone(),
    ] {
        let client = app.anonymous().header("Authorization", &credential);
        create_team(&client).await.assert_success();
    }
}

#[tokio::test]
async fn a_request_without_a_key_gets_a_challenge_and_causes_no_read() {
    let app = TestApp::new().await;
    let anonymous = app.anonymous();
    let with = |credential| anonymous.clone().header("authorization", credential);

    for client in [
        anonymous.clone(),
        with(""),
        with(" "),
        with("Bearer"),
        with("bearer "),
    ] {
        let response = create_team(&client).await;

        response.assert_problem(401, "unauthenticated");
        let challenge = &response.headers["www-authenticate"];
        assert_eq!(challenge, r#"Bearer realm="workspace-management""#);
        let detail = &response.body.as_ref().unwrap()["detail"];
        assert_eq!(
            detail,
            "No API key was sent. Send `Authorization: Bearer <key>`."
        );
    }

    assert!(app.dynamodb_requests.take().is_empty());
}

#[tokio::test]
async fn a_request_with_an_empty_credential_is_anonymous() {
    let app = TestApp::new().await;

    for credential in ["", "Bearer", "Bearer "] {
        let client = app.anonymous().header("authorization", credential);
        let response = client
            .post(DATA_STORE, json!({ "dataStoreName": "Papers" }))
            .await;
        response.assert_success();
    }

    assert_eq!(
        app.only_record(Table::DATA_STORES).await["created_by"],
        "anonymous"
    );
}

/// Credentials that are rejected, each with a description.
async fn rejected_credentials(app: &TestApp) -> Vec<(&'static str, String)> {
    let [valid, key_with_other_secret] = keys_with_same_id();
    app.insert_key(&valid, "acme", |_| {}).await;
    let expiring = async |date: &str| {
        app.issue_key("acme", |key| key.expires_at = Some(date.to_owned()))
            .await
    };
    let expired = expiring("2001-01-01T00:00:00Z").await;
    let unreadable = expiring("tomorrow").await;
    let revoked = app.issue_key("acme", |_| {}).await;
    app.revoke_key(&revoked).await;
    let first = Some("an earlier registration".to_owned());
    let earlier = app
        .issue_key("acme", |key| key.org_request_id = first)
        .await;
    let (all_but_last, last) = valid.split_at(valid.len() - 1);
    let wrong_last = if last == "A" { "B" } else { "A" };
    vec![
        ("another scheme", format!("Basic {valid}")),
        ("another scheme without a credential", "Basic".to_owned()),
        ("two keys", format!("Bearer {valid} {valid}")),
        ("two credentials", format!("Bearer {valid},Bearer {valid}")),
        ("not a key", "Bearer secret".to_owned()),
        ("a missing character", format!("Bearer {all_but_last}")),
        ("an additional character", format!("Bearer {valid}0")),
        (
            "a wrong checksum",
            format!("Bearer {all_but_last}{wrong_last}"),
        ),
        ("upper case", format!("Bearer {}", valid.to_uppercase())),
        ("a character outside ASCII", format!("Bearer {valid}é")),
        ("10 KB", format!("Bearer wsk_{}", "x".repeat(10_240))),
        ("an unknown key", format!("Bearer {}", unique_key())),
        ("another secret", format!("Bearer {key_with_other_secret}")),
        ("an expired key", format!("Bearer {expired}")),
        ("an unreadable date", format!("Bearer {unreadable}")),
        ("a revoked key", format!("Bearer {revoked}")),
        ("an earlier registration", format!("Bearer {earlier}")),
    ]
}

#[tokio::test]
async fn every_rejected_credential_gets_the_same_response() {
    let app = TestApp::new().await;
    let mut bodies = Vec::new();

    for (description, credential) in rejected_credentials(&app).await {
        // A caller with a rejected credential must not count as an anonymous one, for whom
        // DATA_STORE is allowed.
        for path in [TEAM, DATA_STORE] {
            let body = json!({ "teamName": "Research", "dataStoreName": "Papers" });
            let client = app.anonymous().header("authorization", &credential);
            let response = client.post(path, body).await;
            assert_eq!(response.status, 401, "{description}: {response:?}");
            let challenge = &response.headers["www-authenticate"];
            let expected = r#"Bearer realm="workspace-management", error="invalid_token""#;
            assert_eq!(challenge, expected, "{description}");
            bodies.push(response.body);
        }
    }

    bodies.dedup();
    assert_eq!(bodies.len(), 1, "{bodies:?}");
    let detail = &bodies[0].as_ref().unwrap()["detail"];
    let expected = "This API key is not accepted. It may be mistyped, expired or revoked.";
    assert_eq!(detail, expected);
    assert!(app.records(Table::TEAMS).await.is_empty());
    assert!(app.records(Table::DATA_STORES).await.is_empty());
}

#[tokio::test]
async fn a_malformed_key_causes_no_read() {
    let app = TestApp::new().await;
    let mut key = app.issue_key("acme", |_| {}).await;
    key.pop();

    let response = create_team(&app.with_key(&key)).await;

    response.assert_problem(401, "unauthenticated");
    assert!(app.dynamodb_requests.take().is_empty());
}

#[tokio::test]
async fn two_authorization_headers_are_rejected() {
    let app = TestApp::new().await;
    let credential = format!("Bearer {}", app.issue_key("acme", |_| {}).await);
    let rest_api = json!({
        "requestContext": { "requestId": "gateway-request", "stage": "prod" },
        "httpMethod": "POST",
        "path": TEAM,
        "headers": { "Authorization": credential },
        "multiValueHeaders": { "Authorization": [credential, credential] },
        "body": r#"{"teamName": "Research"}"#,
        "isBase64Encoded": false,
    });
    let mut http_api = event("POST", TEAM, &Default::default(), Some("{}"));
    http_api["headers"] = json!({ "Authorization": credential, "authorization": credential });
    for event in [rest_api, http_api] {
        let response = app.send(event).await;
        response.assert_problem(401, "unauthenticated");
    }
}

#[tokio::test]
async fn a_cached_key_expires_on_time() {
    let app = TestApp::new().await;
    let expires_at = SystemTime::now() + Duration::from_secs(30);
    let expires_at = humantime::format_rfc3339_seconds(expires_at).to_string();
    let key = app
        .issue_key("acme", |key| key.expires_at = Some(expires_at))
        .await;
    let client = app.with_key(&key);
    create_team(&client).await.assert_success();

    app.advance_clock(Duration::from_secs(30));

    let response = create_team(&client).await;
    response.assert_problem(401, "unauthenticated");
}

#[tokio::test]
async fn a_revoked_key_works_until_its_cache_entry_expires() {
    let app = TestApp::new().await;
    let key = app.issue_key("acme", |_| {}).await;
    let client = app.with_key(&key);
    create_team(&client).await.assert_success();

    app.revoke_key(&key).await;

    app.advance_clock(Duration::from_secs(55));
    create_team(&client).await.assert_success();
    app.advance_clock(Duration::from_secs(5));
    let response = create_team(&client).await;
    response.assert_problem(401, "unauthenticated");
}

#[tokio::test]
async fn a_revoked_key_is_rejected_at_once_without_a_cache() {
    let app = TestApp::with_config(TestConfig {
        key_cache: Duration::ZERO,
        ..TestConfig::default()
    })
    .await;
    let key = app.issue_key("acme", |_| {}).await;
    let client = app.with_key(&key);
    create_team(&client).await.assert_success();

    app.revoke_key(&key).await;

    let response = create_team(&client).await;
    response.assert_problem(401, "unauthenticated");
}

#[tokio::test]
async fn a_wrong_secret_for_a_cached_key_is_rejected_without_a_read() {
    let app = TestApp::new().await;
    let [key, key_with_other_secret] = keys_with_same_id();
    app.insert_key(&key, "acme", |_| {}).await;
    create_team(&app.with_key(&key)).await.assert_success();
    app.dynamodb_requests.take();

    let response = create_team(&app.with_key(&key_with_other_secret)).await;

    response.assert_problem(401, "unauthenticated");
    assert!(app.dynamodb_requests.take().is_empty());
    create_team(&app.with_key(&key)).await.assert_success();
}

#[tokio::test]
async fn an_unknown_key_is_read_each_time() {
    let app = TestApp::new().await;
    let client = app.with_key(&unique_key());

    for _ in 0..2 {
        let response = create_team(&client).await;
        response.assert_problem(401, "unauthenticated");
        assert_eq!(app.dynamodb_requests.take_actions(), ["BatchGetItem"]);
    }
}

/// A minute after it was marked for removal, a team must accept no more users, and a disabled
/// organization no more requests, even if API keys are cached for longer.
#[tokio::test]
async fn organizations_and_teams_are_cached_for_at_most_60_seconds() {
    let app = TestApp::with_config(TestConfig {
        key_cache: Duration::from_secs(3600),
        ..TestConfig::default()
    })
    .await;
    app.insert_demo_team().await;
    let (acme, anonymous) = (app.client_with_new_key("acme").await, app.anonymous());
    let post = async |client: &TestClient<'_>, path: &str, body: Value| {
        app.dynamodb_requests.take();
        client.post(path, body).await.assert_success();
        app.dynamodb_requests.take_actions()
    };
    let add_user = async || {
        let path = "/api/v1/project/acme/apollo/research-team/addUsersToTheTeam";
        let body = json!({ "usersAddingToTeam": [{ "userid": "ada" }] });
        post(&acme, path, body).await
    };
    let create_data_store = async || {
        let body = json!({ "dataStoreName": "Papers" });
        post(&anonymous, DATA_STORE, body).await
    };
    // The API key with the organization, then the team.
    assert_eq!(
        add_user().await,
        ["BatchGetItem", "BatchGetItem", "UpdateItem"]
    );
    assert_eq!(create_data_store().await, ["PutItem"]);

    app.advance_clock(Duration::from_secs(55));
    assert_eq!(add_user().await, ["UpdateItem"]);
    assert_eq!(create_data_store().await, ["PutItem"]);

    app.advance_clock(Duration::from_secs(5));
    assert_eq!(create_data_store().await, ["BatchGetItem", "PutItem"]);
    assert_eq!(add_user().await, ["BatchGetItem", "UpdateItem"]);
}
