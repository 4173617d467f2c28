//! Every operation with every credential that does not authorize it, and without one.

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use workspace_local::demo::DEMO_KEY;
use workspace_management::{auth::AnonymousOperations, operations::Operation};

use test_support::{TestApp, event_with_headers, keys_with_same_id, operation_event, unique_key};

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
        let in_a_minute = SystemTime::now() + Duration::from_secs(60);
        let in_a_minute = humantime::format_rfc3339_seconds(in_a_minute).to_string();
        let expired = app
            .issue_key("acme", |key| key.expires_at = Some(in_a_minute))
            .await;
        let first = Some("an earlier registration".to_owned());
        let earlier = app
            .issue_key("acme", |key| key.org_request_id = first)
            .await;
        let revoked = app.issue_key("acme", |_| {}).await;
        // The service caches both as valid. A minute after the first request, the time to live of
        // the revoked key is over, and the expired one is still in the cache.
        for key in [&revoked, &expired] {
            let voice = json!({ "type": "alloy", "enabled": true });
            let path = "/api/v1/bot/playground/cached/voice";
            app.with_key(key).post(path, voice).await.assert_success();
            app.advance_clock(Duration::from_secs(30));
        }
        app.revoke_key(&revoked).await;
        Self {
            valid,
            other_secret,
            expired,
            revoked,
            earlier,
        }
    }

    /// Events of an operation, each with a description of its credential.
    fn events(&self, operation: Operation) -> Vec<(&'static str, Value)> {
        let valid = &self.valid;
        let mut wrong_checksum = valid.clone();
        let last = wrong_checksum.pop();
        wrong_checksum.push(if last == Some('A') { 'B' } else { 'A' });
        let two_headers = json!({ "Authorization": valid, "authorization": valid });
        let other_scheme = json!({ "authorization": format!("Basic {valid}") });
        let with_headers = |headers| event_with_headers(operation, headers);
        let with_key = |key: &str| with_headers(bearer(key));
        vec![
            ("expired", with_key(&self.expired)),
            ("revoked", with_key(&self.revoked)),
            ("of an earlier registration", with_key(&self.earlier)),
            ("wrong checksum", with_key(&wrong_checksum)),
            ("wrong secret", with_key(&self.other_secret)),
            ("unknown id", with_key(&unique_key())),
            ("two headers", with_headers(two_headers)),
            ("another scheme", with_headers(other_scheme)),
            ("control characters", with_key(&format!("{valid}\r\n\u{0}"))),
            ("10 KB", with_key(&valid.repeat(160))),
        ]
    }
}

fn bearer(key: &str) -> Value {
    json!({ "authorization": format!("Bearer {key}") })
}

/// Callers with a rejected key must not count as anonymous ones, who are allowed.
#[tokio::test]
async fn no_operation_accepts_a_credential_that_does_not_authorize_it() {
    let app = TestApp::new().await;
    app.register("globex").await;
    app.insert_demo_team().await;
    let rejected = Rejected::new(&app).await;
    let other = app.issue_key("globex", |_| {}).await;
    let before = app.all_records().await;
    let mut rejections = BTreeSet::new();

    for operation in Operation::ALL {
        for (credential, event) in rejected.events(*operation) {
            let response = app.send(event).await;
            assert_eq!(response.status, 401, "{operation:?}, {credential}");
            let challenge = &response.headers["www-authenticate"];
            let mut problem = response.body.unwrap();
            problem["request_id"].take();
            rejections.insert(format!("{challenge}: {problem}"));
        }
        let restricted = app
            .issue_key("acme", |key| {
                let others = Operation::ALL.iter().filter(|other| *other != operation);
                let names = others.map(|other| other.name().to_owned());
                key.operations = Some(names.collect());
            })
            .await;
        let event = event_with_headers(*operation, bearer(&restricted));
        let response = app.send(event).await;
        response.assert_problem(403, "operation_not_allowed");
        if has_organization(*operation) {
            let event = event_with_headers(*operation, bearer(&other));
            let response = app.send(event).await;
            response.assert_problem(403, "other_organization");
        }
    }

    // The response does not say why a key is rejected.
    assert_eq!(rejections.len(), 1, "{rejections:?}");
    assert_eq!(app.all_records().await, before);
}

/// The path of some operations names no organization. Their records belong to the caller's.
#[tokio::test]
async fn a_path_without_organization_is_in_the_organization_of_the_key() {
    let app = TestApp::new().await;
    app.register("globex").await;
    let key = app.issue_key("globex", |_| {}).await;

    for operation in Operation::ALL {
        if !has_organization(*operation) {
            let event = event_with_headers(*operation, bearer(&key));
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
async fn only_a_deployment_that_allows_anonymous_callers_accepts_them_where_a_key_is_optional() {
    for anonymous_operations in [AnonymousOperations::Allowed, AnonymousOperations::Denied] {
        let app = TestApp::with_anonymous_operations(anonymous_operations).await;
        app.insert_demo_key().await;
        for operation in Operation::ALL {
            let before = app.all_records().await;
            let mut event = event_with_headers(*operation, json!({}));
            // A key in the query string does not count.
            event["rawQueryString"] = json!(format!("authorization=Bearer%20{DEMO_KEY}"));

            let response = app.send(event).await;

            let is_allowed = anonymous_operations == AnonymousOperations::Allowed;
            if is_allowed && operation.allows_anonymous() {
                response.assert_success();
            } else {
                response.assert_problem(401, "unauthenticated");
                let challenge = &response.headers["www-authenticate"];
                assert_eq!(challenge, r#"Bearer realm="workspace-management""#);
                assert_eq!(app.all_records().await, before, "{operation:?}");
            }
            let event = event_with_headers(*operation, bearer(DEMO_KEY));
            app.send(event).await.assert_success();
        }
    }
}
