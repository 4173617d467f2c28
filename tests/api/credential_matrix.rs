//! Runs every operation with each credential that does not authorize it, and without a credential.

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use workspace_local::demo::DEMO_KEY;
use workspace_management::{auth::AnonymousAccess, operations::Operation};

use test_support::{TestApp, event_with_headers, keys_with_same_id, unique_key};

const CHALLENGE: &str = r#"Bearer realm="workspace-management""#;

/// Headers with a credential that authorizes nothing. Each has a description of the credential.
async fn rejected_headers(app: &TestApp) -> Vec<(&'static str, Value)> {
    let [valid, wrong_secret] = keys_with_same_id();
    app.insert_key(&valid, "acme", |_| {}).await;
    let in_a_minute = SystemTime::now() + Duration::from_secs(60);
    let in_a_minute = humantime::format_rfc3339_seconds(in_a_minute).to_string();
    let expired = app
        .issue_key("acme", |key| key.expires_at = Some(in_a_minute))
        .await;
    let registration = Some("an earlier registration".to_owned());
    let earlier_registration = app
        .issue_key("acme", |key| key.registration_id = registration)
        .await;
    let revoked = app.issue_key("acme", |_| {}).await;
    // The service caches both keys while they are valid. After the loop, the revoked key has been
    // in the cache for a minute, which is the limit, and the expired key for 30 seconds.
    for key in [&revoked, &expired] {
        let voice = json!({ "type": "alloy", "enabled": true });
        let path = "/api/v1/bot/playground/cached/voice";
        app.client(key).post(path, voice).await.assert_success();
        app.advance_clock(Duration::from_secs(30));
    }
    app.revoke_key(&revoked).await;
    let two_headers = json!({ "Authorization": valid, "authorization": valid });
    let wrong_scheme = json!({ "authorization": format!("Basic {valid}") });
    vec![
        ("expired", bearer(&expired)),
        ("revoked", bearer(&revoked)),
        ("earlier registration", bearer(&earlier_registration)),
        ("wrong secret", bearer(&wrong_secret)),
        ("unknown id", bearer(&unique_key())),
        ("two headers", two_headers),
        ("wrong scheme", wrong_scheme),
        ("control characters", bearer(&format!("{valid}\r\n\u{0}"))),
        ("10 KB", bearer(&valid.repeat(160))),
    ]
}

fn bearer(key: &str) -> Value {
    json!({ "authorization": format!("Bearer {key}") })
}

/// A request with a rejected key must not be treated as anonymous, because anonymous callers are
/// allowed here.
#[tokio::test]
async fn no_operation_accepts_a_credential_that_does_not_authorize_it() {
    let app = TestApp::new().await;
    app.register("globex").await;
    app.insert_demo_team().await;
    let rejected = rejected_headers(&app).await;
    let globex_key = app.issue_key("globex", |_| {}).await;
    let before = app.all_records().await;
    let mut rejections = BTreeSet::new();

    for operation in Operation::ALL {
        for (credential, headers) in &rejected {
            let event = event_with_headers(*operation, headers.clone());
            let response = app.send(event).await;
            assert_eq!(response.status, 401, "{operation:?}, {credential}");
            let challenge = &response.headers["www-authenticate"];
            assert_eq!(*challenge, format!(r#"{CHALLENGE}, error="invalid_token""#));
            let mut problem = response.body.unwrap();
            problem["request_id"].take();
            rejections.insert(problem.to_string());
        }
        let mut allowed: Vec<_> = Operation::ALL
            .iter()
            .map(|it| it.name().to_owned())
            .collect();
        allowed.retain(|name| name != operation.name());
        let restricted = app
            .issue_key("acme", |key| key.operations = Some(allowed))
            .await;
        let event = event_with_headers(*operation, bearer(&restricted));
        let response = app.send(event).await;
        response.assert_problem(403, "operation_not_allowed");
        if *operation != Operation::SetBotVoice {
            let event = event_with_headers(*operation, bearer(&globex_key));
            let response = app.send(event).await;
            response.assert_problem(403, "other_organization");
        }
    }

    // The responses are the same, so they do not say why a key is rejected.
    assert_eq!(rejections.len(), 1, "{rejections:?}");
    assert_eq!(app.all_records().await, before);
}

#[tokio::test]
async fn the_scheme_is_bearer_in_any_case_or_absent_and_a_header_can_lack_a_key() {
    let app = TestApp::new().await;
    let send = async |header: &str| {
        let headers = json!({ "authorization": header });
        app.send(event_with_headers(Operation::CreateTeam, headers))
            .await
    };
    for scheme in ["Bearer ", "bearer ", "BEARER   ", "", " "] {
        send(&format!("{scheme}{DEMO_KEY} ")).await.assert_success();
    }
    for header in ["", " ", "Bearer", "bearer "] {
        let response = send(header).await;
        response.assert_problem(401, "unauthenticated");
        assert_eq!(
            response.headers["www-authenticate"], CHALLENGE,
            "{header:?}"
        );
    }
}

#[tokio::test]
async fn anonymous_callers_are_accepted_only_where_a_key_is_optional_and_if_they_are_allowed() {
    for anonymous_access in [AnonymousAccess::Allowed, AnonymousAccess::Denied] {
        let app = TestApp::with_anonymous_operations(anonymous_access).await;
        for operation in Operation::ALL {
            let before = app.all_records().await;
            let mut event = event_with_headers(*operation, json!({}));
            // A key in the query string is ignored.
            event["rawQueryString"] = json!(format!("authorization=Bearer%20{DEMO_KEY}"));

            let response = app.send(event).await;

            let is_allowed = anonymous_access == AnonymousAccess::Allowed;
            if is_allowed && operation.is_key_optional() {
                response.assert_success();
            } else {
                response.assert_problem(401, "unauthenticated");
                assert_eq!(response.headers["www-authenticate"], CHALLENGE);
                assert_eq!(app.all_records().await, before, "{operation:?}");
            }
            let event = event_with_headers(*operation, bearer(DEMO_KEY));
            app.send(event).await.assert_success();
        }
    }
}
