//! The header `x-api-key-expires` says when an accepted API key expires.

use std::time::Duration;

use serde_json::{Value, json};
use test_support::{
    TestApp, TestResponse, event,
    faults::{Fault, Phase},
    fixtures, send,
};
use workspace_management::{
    operations::Operation,
    records::{ApiKeyRecord, Table},
};
use workspace_records::contract::{Description, resolve};

use crate::operations::Sample;

const HEADER: &str = "x-api-key-expires";
const EXPIRES_AT: &str = "2999-12-31T23:59:59Z";

async fn issue_key(app: &TestApp, org: &str, change: impl FnOnce(&mut ApiKeyRecord)) -> String {
    let with_expiry = |key: &mut ApiKeyRecord| {
        key.expires_at = Some(EXPIRES_AT.to_owned());
        change(key);
    };
    app.issue_key(org, with_expiry).await
}

/// Checks that a response has the header, and that the contract describes it for its status.
#[track_caller]
fn assert_has_header(response: &TestResponse, status: u16, operation: Operation) {
    assert_eq!(response.status, status, "{operation:?}: {response:?}");
    let expires_at = response.headers.get(HEADER).map(String::as_str);
    assert_eq!(expires_at, Some(EXPIRES_AT), "{operation:?}: {response:?}");
    let responses = &Description::of(operation).object["responses"];
    let described = resolve(&responses[&*status.to_string()]);
    assert!(!described["headers"][HEADER].is_null(), "{described:?}");
}

#[tokio::test]
async fn every_response_to_an_accepted_key_says_when_the_key_expires() {
    for operation in Operation::ALL {
        let app = TestApp::new().await;
        app.insert_demo_team().await;
        let sample = Sample::example(*operation);
        let post =
            async |key: &str, body: &Value| app.client(key).post(&sample.path, body.clone()).await;
        let key = issue_key(&app, "acme", |_| {}).await;
        let no_operation = issue_key(&app, "acme", |key| key.operations = Some(vec![])).await;
        let no_project = issue_key(&app, "acme", |key| key.projects = Some(vec![])).await;
        let long = json!("x".repeat(262_144));
        // The second time, the keys are in the cache.
        for _ in 0..2 {
            for (key, body, status) in [
                (&key, &json!({}), 422),
                (&key, &long, 413),
                (&no_operation, &json!({}), 403),
                (&no_project, &json!({}), 403),
            ] {
                assert_has_header(&post(key, body).await, status, *operation);
            }
            let not_json = app.client(&key).post_text(&sample.path, "").await;
            assert_has_header(&not_json, 400, *operation);
        }
        assert_has_header(&post(&key, &sample.body).await, 204, *operation);

        let headers = app.client(&key).headers;
        let write = event(
            "POST",
            &sample.path,
            &headers,
            Some(&sample.body.to_string()),
        );
        let service = app.hooked_service(|request| {
            let denied = (Fault::Denied, Phase::BeforeExecution);
            (!request.is_read()).then_some(denied)
        });
        let failed = send(&service, &write, Duration::from_secs(10)).await;
        assert_has_header(&failed, 500, *operation);
        let service = app.hooked_service(|request| {
            let lost = (Fault::NoResponse, Phase::BeforeExecution);
            (!request.is_read()).then_some(lost)
        });
        let late = send(&service, &write, Duration::from_secs(1)).await;
        assert_has_header(&late, 503, *operation);
    }
}

#[tokio::test]
async fn no_other_response_has_the_header() {
    let app = TestApp::new().await;
    app.insert_demo_team().await;
    app.insert(
        Table::ORGANIZATIONS,
        fixtures::disabled_organization("initech"),
    )
    .await;
    let never = app.issue_key("acme", |_| {}).await;
    let past = |key: &mut ApiKeyRecord| key.expires_at = Some(fixtures::CREATED_AT.to_owned());
    let expired = issue_key(&app, "acme", past).await;
    let revoke = |key: &mut ApiKeyRecord| key.revoked_at = Some(fixtures::CREATED_AT.to_owned());
    let revoked = issue_key(&app, "acme", revoke).await;
    let key = issue_key(&app, "acme", |_| {}).await;
    let disabled = issue_key(&app, "initech", |_| {}).await;
    for operation in Operation::ALL {
        let sample = Sample::example(*operation);
        let of_initech = sample.path.replace("acme", "initech");
        let malformed = Description::of(*operation).path_with(|_| "%20".to_owned());
        let mut expected = vec![
            (&sample.path, Some(&never), 204),
            (&sample.path, Some(&expired), 401),
            (&sample.path, Some(&revoked), 401),
            (&of_initech, Some(&disabled), 403),
            (&malformed, Some(&key), 400),
        ];
        if of_initech != sample.path {
            expected.push((&of_initech, Some(&key), 403));
        }
        let anonymous = if operation.is_key_optional() {
            204
        } else {
            401
        };
        expected.push((&sample.path, None, anonymous));
        for (path, key, status) in expected {
            let client = key.map_or_else(|| app.anonymous_client(), |key| app.client(key));
            let response = client.post(path, sample.body.clone()).await;
            assert_eq!(response.status, status, "{path}: {response:?}");
            assert!(!response.headers.contains_key(HEADER), "{response:?}");
        }
    }
}

/// Programs other than `workspacectl` can store such a time.
#[tokio::test]
async fn a_time_that_a_header_cannot_contain_is_left_out() {
    let app = TestApp::new().await;
    for (time, expected) in [
        (
            "2999-12-31T23:59:59.123456789Z",
            Some("2999-12-31T23:59:59.123456789Z"),
        ),
        (
            "2999-12-31T23:59:59+00:00",
            Some("2999-12-31T23:59:59+00:00"),
        ),
        ("2999-12-31T23:59:59.1+\r\na:Z", None),
        ("2999-12-31T23:59:59.1+ééZ", None),
    ] {
        let change = |key: &mut ApiKeyRecord| key.expires_at = Some(time.to_owned());
        let key = issue_key(&app, "acme", change).await;
        let sample = Sample::example(Operation::CreateDataStore);
        let response = app.client(&key).post(&sample.path, sample.body).await;
        response.assert_success();
        let header = response.headers.get(HEADER).map(String::as_str);
        assert_eq!(header, expected, "{time:?}");
    }
}
