//! Events from every source that can send a request, and events that contain none.

use serde_json::{Value, json};
use workspace_management::{operation::Operation, store::Table};

use crate::support::{TestApp, TestResponse, event, operation_event};

const PATH: &str = "/api/v1/org/acme/dataStores/create";
const BODY: &str = r#"{"dataStoreName": "Papers"}"#;
/// [`BODY`] in base64.
const ENCODED_BODY: &str = "eyJkYXRhU3RvcmVOYW1lIjogIlBhcGVycyJ9";

fn http_api() -> Value {
    event("POST", PATH, &Default::default(), Some(BODY))
}

/// An event of an HTTP API with a base64 body.
fn encoded(body: &str) -> Value {
    let mut event = event("POST", PATH, &Default::default(), Some(body));
    event["isBase64Encoded"] = json!(true);
    event
}

/// An event of a REST API (payload 1.0).
fn rest_api(path: &str, stage: &str) -> Value {
    json!({
        "resource": "/api/v1/org/{org_id}/dataStores/create",
        "path": path,
        "httpMethod": "POST",
        "headers": { "Content-Type": "*/*" },
        "multiValueHeaders": { "Content-Type": ["*/*"] },
        "queryStringParameters": null,
        "multiValueQueryStringParameters": null,
        "pathParameters": { "org_id": "acme" },
        "stageVariables": null,
        "requestContext": {
            "httpMethod": "POST",
            "requestId": "gateway-request",
            "stage": stage,
            "path": format!("/{stage}{path}"),
        },
        "body": BODY,
        "isBase64Encoded": false,
    })
}

fn function_url() -> Value {
    let mut event = encoded(ENCODED_BODY);
    event["requestContext"]["apiId"] = json!("abcdefghijklmnop");
    event["requestContext"]["domainName"] = json!("abcdefghijklmnop.lambda-url.us-east-1.on.aws");
    event["requestContext"]["authentication"] = json!(null);
    event
}

/// Sends an event, which must create the data store `papers`.
async fn assert_creates_papers(app: &TestApp, event: Value) -> TestResponse {
    let response = app.send(event).await;
    response.assert_success();
    let data_store = app.only_record(Table::DATA_STORES).await;
    assert_eq!(data_store["data_store_id"], "papers");
    response
}

#[tokio::test]
async fn an_http_api_can_send_text_or_base64() {
    let app = TestApp::new().await;

    let response = assert_creates_papers(&app, encoded(ENCODED_BODY)).await;
    assert_creates_papers(&app, http_api()).await;

    assert_eq!(response.headers["x-request-id"], "gateway-request");
}

#[tokio::test]
async fn every_source_passes_the_preference_for_the_id() {
    let app = TestApp::new().await;
    let prefer = "return=headers-only";
    let single = json!({ "prefer": prefer });
    let multiple = json!({ "Prefer": ["wait=1", prefer] });

    for (source, member, headers) in [
        (http_api(), "headers", &single),
        (rest_api(PATH, "prod"), "headers", &single),
        (rest_api(PATH, "prod"), "multiValueHeaders", &multiple),
    ] {
        let mut event = source;
        for other in ["headers", "multiValueHeaders"] {
            event.as_object_mut().unwrap().remove(other);
        }
        event[member] = headers.clone();
        let response = assert_creates_papers(&app, event).await;
        assert_eq!(response.headers["x-resource-id"], "papers");
        assert_eq!(response.headers["preference-applied"], prefer);
    }
}

#[tokio::test]
async fn an_http_api_can_have_a_stage_in_the_path() {
    let app = TestApp::new().await;
    let mut event = http_api();
    event["rawPath"] = json!(format!("/prod{PATH}"));
    event["requestContext"]["stage"] = json!("prod");

    assert_creates_papers(&app, event).await;
}

#[tokio::test]
async fn a_rest_api_can_have_a_stage_in_the_path() {
    let app = TestApp::new().await;

    for (path, stage) in [
        (PATH.to_owned(), "prod"),
        (format!("/prod{PATH}"), "prod"),
        (PATH.to_owned(), "api"),
        (format!("/api{PATH}"), "api"),
        (format!("/v1{PATH}"), "v1"),
    ] {
        let response = assert_creates_papers(&app, rest_api(&path, stage)).await;
        assert_eq!(response.headers["x-request-id"], "gateway-request");
    }
}

#[tokio::test]
async fn a_function_url_can_send_a_request() {
    let app = TestApp::new().await;

    assert_creates_papers(&app, function_url()).await;
}

/// The members that both payload formats have. API Gateway rejects others from a REST API.
#[tokio::test]
async fn every_source_gets_a_response_in_one_form() {
    let app = TestApp::new().await;
    let members = [
        "headers",
        "isBase64Encoded",
        "multiValueHeaders",
        "statusCode",
    ];

    for event in [http_api(), function_url(), rest_api(PATH, "prod")] {
        let response = app.send_raw(event.clone()).await;
        let response = response.as_object().unwrap();
        assert_eq!(response.keys().collect::<Vec<_>>(), members, "{event}");
        let has_null = response.values().any(Value::is_null);
        assert!(!has_null, "{event}: {response:?}");
    }
}

#[tokio::test]
async fn values_that_no_operation_reads_are_ignored() {
    let app = TestApp::new().await;
    let mut event = http_api();
    event["rawQueryString"] = json!("a=\"<b> c\u{0}");
    event["headers"] = json!({
        "host": "lb.example.com:99999 ",
        "x-forwarded-proto": "http,https",
        "x-odd": "\u{1}",
    });

    assert_creates_papers(&app, event).await;
}

#[tokio::test]
async fn header_names_are_case_insensitive() {
    let app = TestApp::new().await;
    let key = app.issue_key("acme", |_| {}).await;

    for name in ["authorization", "Authorization", "AUTHORIZATION"] {
        let client = app.anonymous().header(name, &key);
        let path = "/api/v1/project/acme/apollo/createLoggingInstance";
        let response = client.post(path, json!({ "projectName": "Apollo" })).await;
        response.assert_success();
    }
}

#[tokio::test]
async fn the_content_type_is_ignored() {
    let app = TestApp::new().await;

    for content_type in [
        "*/*",
        "application/json",
        "text/plain; charset=latin1",
        "nonsense",
    ] {
        let client = app.anonymous().header("content-type", content_type);
        client.post_text(PATH, BODY).await.assert_success();
    }
}

#[tokio::test]
async fn a_body_that_is_not_json_is_rejected() {
    let app = TestApp::new().await;
    let deep = "[".repeat(100_000);
    let rows = [
        ("empty", ""),
        ("white space", " \n"),
        ("a word", "nonsense"),
        ("half an object", r#"{"dataStoreName": "a""#),
        ("two values", r#"{"dataStoreName": "a"} {}"#),
        ("a trailing comma", r#"{"dataStoreName": "a",}"#),
        (
            "an unescaped control character",
            "{\"dataStoreName\": \"\u{1}\"}",
        ),
        ("half a surrogate pair", r#"{"dataStoreName": "\ud800"}"#),
        ("two byte order marks", "\u{feff}\u{feff}{}"),
        ("form data", "dataStoreName=a"),
        ("100,000 nested arrays", &deep),
    ];

    for (description, body) in rows {
        let response = app.anonymous().post_text(PATH, body).await;
        let found = (response.status, response.code());
        assert_eq!(found, (400, "not_json"), "{description}: {response:?}");
    }
    let invalid_utf8 = encoded("eyJkYXRhU3RvcmVOYW1lIjoi/yJ9");
    let null = event("POST", PATH, &Default::default(), None);
    let mut absent = null.clone();
    absent.as_object_mut().unwrap().remove("body");
    for event in [invalid_utf8, null, absent] {
        app.send(event).await.assert_problem(400, "not_json");
    }
    assert!(app.records(Table::DATA_STORES).await.is_empty());
}

#[tokio::test]
async fn a_byte_order_mark_before_the_body_is_skipped() {
    let app = TestApp::new().await;

    let response = app
        .anonymous()
        .post_text(PATH, &format!("\u{feff}{BODY}"))
        .await;

    response.assert_success();
}

#[tokio::test]
async fn a_body_can_have_256_kib() {
    let app = TestApp::new().await;
    let body_of_size = |size: usize| {
        let frame = r#"{"dataStoreName":"a","padding":""}"#.len();
        let padding = "x".repeat(size - frame);
        format!(r#"{{"dataStoreName":"a","padding":"{padding}"}}"#)
    };
    let max = 256 * 1024;

    let accepted = app.anonymous().post_text(PATH, &body_of_size(max)).await;
    let rejected = app
        .anonymous()
        .post_text(PATH, &body_of_size(max + 1))
        .await;

    accepted.assert_success();
    rejected.assert_problem(413, "body_too_large");
}

/// A body can repeat one member as often as its size permits. Each request takes milliseconds.
#[tokio::test]
async fn a_body_of_repeated_members_uses_the_last_of_each() {
    let app = TestApp::new().await;
    let repeated = vec![r#""dataStoreName":1"#; 14_000].join(",");
    let body = format!(r#"{{{repeated},"dataStoreName":"Papers"}}"#);

    app.anonymous()
        .post_text(PATH, &body)
        .await
        .assert_success();

    let data_store = app.only_record(Table::DATA_STORES).await;
    assert_eq!(data_store["data_store_name"], "Papers");
}

#[tokio::test]
async fn an_event_without_a_request_is_rejected_and_the_next_one_succeeds() {
    let app = TestApp::new().await;
    let rows = [
        ("null", json!(null)),
        ("a string", json!("nonsense")),
        ("an array", json!([1, 2, 3])),
        ("an empty object", json!({})),
        (
            "a scheduled event",
            json!({ "source": "aws.events", "detail-type": "Scheduled Event", "detail": {} }),
        ),
        (
            "an event of a queue",
            json!({ "Records": [{ "eventSource": "aws:sqs", "body": BODY }] }),
        ),
        ("a body that is not base64", encoded("?!")),
        ("no method", json!({ "rawPath": PATH, "body": BODY })),
        ("no path", json!({ "httpMethod": "POST", "body": BODY })),
        (
            "headers of another type",
            json!({ "rawPath": PATH, "headers": 1, "requestContext": {} }),
        ),
    ];

    for (description, event) in rows {
        let response = app.send(event).await;
        let found = (response.status, response.code());
        assert_eq!(found, (400, "malformed_event"), "{description}");
        app.send(http_api()).await.assert_success();
    }
}

#[test]
fn the_event_of_each_operation_has_the_headers_that_the_interface_shows() {
    for operation in Operation::ALL {
        let event = operation_event(*operation);

        let headers = &event["headers"];
        assert_eq!(headers["content-type"], "*/*", "{operation:?}");
        let has_key = headers["authorization"].is_string();
        assert_eq!(has_key, !operation.allows_anonymous(), "{operation:?}");
        // An HTTP API sends a body of the type `*/*` in base64.
        assert_eq!(event["isBase64Encoded"], true, "{operation:?}");
    }
}
