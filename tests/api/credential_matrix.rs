//! Runs every operation with each credential that does not authorize it, and without a credential.

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use workspace_local::demo::DEMO_KEY;
use workspace_management::{auth::AnonymousAccess, operations::Operation, records::ApiKeyRecord};
use workspace_records::contract::Description;

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
async fn a_key_for_projects_may_call_only_operations_with_one_of_them_in_the_path() {
    let app = TestApp::new().await;
    let issue = async |projects: &[&str], operations: Option<&[Operation]>| {
        let projects = projects.iter().map(|&id| id.to_owned()).collect();
        let names = |it: &[Operation]| it.iter().map(|it| it.name().to_owned()).collect();
        let change = |key: &mut ApiKeyRecord| {
            key.projects = Some(projects);
            key.operations = operations.map(names);
        };
        app.issue_key("acme", change).await
    };
    let none = issue(&[], None).await;
    let others = issue(&["", "Apollo", "apoll", "apollo2", "acme#apollo"], None).await;
    let anywhere = app.issue_key("acme", |_| {}).await;
    let apollo = issue(&["zeus", "apollo"], None).await;
    let no_operation = issue(&["apollo"], Some(&[])).await;
    let all_operations = issue(&["apollo"], Some(Operation::ALL)).await;

    for operation in Operation::ALL {
        let has_project = Description::of(*operation).path.contains("{project_id}");
        let rejection = (403, "project_not_allowed");
        let in_apollo = if has_project { (204, "") } else { rejection };
        let before = app.all_records().await;
        for (key, expected) in [
            (&none, rejection),
            (&others, rejection),
            (&no_operation, (403, "operation_not_allowed")),
            (&apollo, in_apollo),
            (&all_operations, in_apollo),
            (&anywhere, (204, "")),
        ] {
            // The second request finds the key in the cache.
            for _ in 0..2 {
                let response = app.send(event_with_headers(*operation, bearer(key))).await;
                let received = (response.status, response.code());
                assert_eq!(received, expected, "{operation:?} {response:?}");
                if expected.0 == 403 {
                    assert_eq!(app.all_records().await, before);
                }
            }
        }
    }
}

#[tokio::test]
async fn the_detail_names_the_projects_of_a_key_escaped_and_within_the_limit_of_the_contract() {
    const DETAIL: &str = "This API key allows only operations of these projects:";
    let app = TestApp::new().await;
    let long = vec!["x".repeat(128); 100];
    for (projects, expected) in [
        (
            vec!["zeus".to_owned(), "a\u{202e}".to_owned()],
            "`zeus`, `a\\u{202e}`.",
        ),
        (long.clone(), &*format!("`{}", long[..3].join("`, `"))),
    ] {
        let limit = |key: &mut ApiKeyRecord| key.projects = Some(projects);
        let key = app.issue_key("acme", limit).await;
        let event = event_with_headers(Operation::CreateTeam, bearer(&key));
        let problem = app.send(event).await.body.unwrap();
        let detail = problem["detail"].as_str().unwrap();
        let names = detail.strip_prefix(DETAIL).unwrap().trim_start();
        assert!(names.starts_with(expected), "{detail}");
        assert!(detail.chars().count() <= 1000, "{detail}");
    }
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
