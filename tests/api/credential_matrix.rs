//! Every operation with every credential that does not authorize it.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use workspace_management::{auth::AnonymousOperations, operation::Operation};

use crate::support::{TestApp, TestConfig, keys_with_same_id, operation_event, unique_key};

/// The event of an operation with other headers.
fn event_with_headers(operation: Operation, headers: Value) -> Value {
    let mut event = operation_event(operation);
    event["headers"] = headers;
    event
}

/// Whether the path of an operation names an organization.
fn has_organization(operation: Operation) -> bool {
    !operation_event(operation)["pathParameters"]["org_id"].is_null()
}

/// API keys that authorize nothing, and a valid one to make malformed ones from.
struct Rejected {
    valid: String,
    other_secret: String,
    expired: String,
    revoked: String,
    earlier: String,
}

impl Rejected {
    async fn new(app: &TestApp) -> Self {
        let [valid, other_secret] = keys_with_same_id();
        app.insert_key(&valid, "acme", |_| {}).await;
        let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let expired = app
            .issue_key("acme", |key| key.expires_at = Some(now))
            .await;
        let first = Some("an earlier registration".to_owned());
        let earlier = app
            .issue_key("acme", |key| key.org_request_id = first)
            .await;
        let revoked = app.issue_key("acme", |_| {}).await;
        // The service has cached the key as valid, but the time to live of the entry is over.
        let voice = json!({ "type": "alloy", "enabled": true });
        let path = "/api/v1/bot/playground/cached/voice";
        let client = app.with_key(&revoked);
        client.post(path, voice).await.assert_success();
        app.revoke_key(&revoked).await;
        app.advance_clock(Duration::from_secs(60));
        Self {
            valid,
            other_secret,
            expired,
            revoked,
            earlier,
        }
    }

    /// Events of an operation, each with a description and the status of its response.
    fn events(&self, operation: Operation, restricted: &str) -> Vec<(u16, &'static str, Value)> {
        let valid = &self.valid;
        let mut in_query = event_with_headers(operation, json!({}));
        in_query["rawQueryString"] = json!(format!("authorization=Bearer%20{valid}"));
        let mut wrong_checksum = valid.clone();
        let last = wrong_checksum.pop();
        wrong_checksum.push(if last == Some('A') { 'B' } else { 'A' });
        let two_headers = json!({ "Authorization": valid, "authorization": valid });
        let with_headers = |headers| event_with_headers(operation, headers);
        let with_key = |key: &str| with_headers(bearer(key));
        vec![
            (403, "not allowed to call it", with_key(restricted)),
            (401, "expired", with_key(&self.expired)),
            (401, "revoked", with_key(&self.revoked)),
            (401, "of an earlier registration", with_key(&self.earlier)),
            (401, "wrong checksum", with_key(&wrong_checksum)),
            (401, "wrong secret", with_key(&self.other_secret)),
            (401, "unknown id", with_key(&unique_key())),
            (401, "two headers", with_headers(two_headers)),
            (401, "in the query string", in_query),
            (
                401,
                "control characters",
                with_key(&format!("{valid}\r\n\u{0}")),
            ),
            (401, "10 KB", with_key(&valid.repeat(160))),
            (401, "none", with_headers(json!({}))),
        ]
    }
}

fn bearer(key: &str) -> Value {
    json!({ "authorization": format!("Bearer {key}") })
}

#[tokio::test]
async fn no_operation_accepts_a_credential_that_does_not_authorize_it() {
    let app = TestApp::with_config(TestConfig {
        anonymous_operations: AnonymousOperations::Denied,
        ..TestConfig::default()
    })
    .await;
    app.register("globex").await;
    app.insert_demo_team().await;
    let rejected = Rejected::new(&app).await;
    let other = app.issue_key("globex", |_| {}).await;
    let before = app.all_records().await;

    for operation in Operation::ALL {
        let restricted = app
            .issue_key("acme", |key| {
                let others = Operation::ALL.iter().filter(|other| *other != operation);
                let names = others.map(|other| other.name().to_owned());
                key.operations = Some(names.collect());
            })
            .await;
        for (status, credential, event) in rejected.events(*operation, &restricted) {
            let response = app.send(event).await;
            let code = response.code().to_owned();
            assert_eq!(
                response.status, status,
                "{operation:?}, {credential}: {code}"
            );
        }
        if has_organization(*operation) {
            let event = event_with_headers(*operation, bearer(&other));
            let response = app.send(event).await;
            response.assert_problem(403, "other_organization");
        }
    }

    assert_eq!(app.all_records().await, before);
}

/// The path of some operations names no organization. Their records belong to the caller's.
#[tokio::test]
async fn a_path_without_organization_is_in_the_organization_of_the_key() {
    let app = TestApp::new().await;
    app.register("globex").await;
    let key = app.issue_key("globex", |_| {}).await;
    let headers = json!({ "authorization": format!("Bearer {key}") });

    for operation in Operation::ALL {
        if !has_organization(*operation) {
            let event = event_with_headers(*operation, headers.clone());
            app.send(event).await.assert_success();
        }
    }

    let records: Vec<_> = app.all_records().await.into_values().flatten().collect();
    assert!(!records.is_empty());
    for record in records {
        assert_eq!(record["org_id"], "globex", "{record}");
    }
}

#[tokio::test]
async fn anonymous_callers_may_call_what_the_contract_shows_without_authorization() {
    let app = TestApp::new().await;

    for operation in Operation::ALL {
        let before = app.all_records().await;
        let response = app.send(event_with_headers(*operation, json!({}))).await;
        if operation.allows_anonymous() {
            response.assert_success();
        } else {
            response.assert_problem(401, "unauthenticated");
            let challenge = &response.headers["www-authenticate"];
            assert_eq!(challenge, r#"Bearer realm="workspace-management""#);
            assert_eq!(app.all_records().await, before, "{operation:?}");
        }
    }
}

#[tokio::test]
async fn anonymous_callers_get_404_for_an_organization_that_is_not_registered() {
    let app = TestApp::new().await;

    for operation in Operation::ALL {
        let mut event = event_with_headers(*operation, json!({}));
        let path = event["rawPath"].as_str().unwrap().replace("acme", "absent");
        event["rawPath"] = json!(path);
        let response = app.send(event).await;
        if operation.allows_anonymous() {
            response.assert_problem(404, "no_such_organization");
        } else {
            response.assert_problem(401, "unauthenticated");
        }
    }

    assert!(app.all_records().await.values().all(Vec::is_empty));
}

#[tokio::test]
async fn a_deployment_can_require_an_api_key_for_every_operation() {
    let app = TestApp::with_config(TestConfig {
        anonymous_operations: AnonymousOperations::Denied,
        ..TestConfig::default()
    })
    .await;
    app.insert_demo_key().await;

    for operation in Operation::ALL {
        let response = app.send(event_with_headers(*operation, json!({}))).await;
        response.assert_problem(401, "unauthenticated");
        let challenge = &response.headers["www-authenticate"];
        assert_eq!(challenge, r#"Bearer realm="workspace-management""#);
        let key = workspace_local::demo::DEMO_KEY;
        let headers = json!({ "authorization": format!("Bearer {key}") });
        let response = app.send(event_with_headers(*operation, headers)).await;
        response.assert_success();
    }
}
