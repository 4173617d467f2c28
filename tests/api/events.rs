//! Events from every source that can send a request, and events that contain no request.

use serde_json::{Value, json};
use workspace_local::demo::DEMO_KEY;
use workspace_management::records::Table;

use test_support::{TestApp, TestResponse, event};

const PATH: &str = "/api/v1/org/acme/dataStores/create";
const BODY: &str = r#"{"dataStoreName": "Papers"}"#;
/// [`BODY`] in base64.
const ENCODED_BODY: &str = "eyJkYXRhU3RvcmVOYW1lIjogIlBhcGVycyJ9";

fn http_api() -> Value {
    event("POST", PATH, &Default::default(), Some(BODY))
}

/// An HTTP API event whose body should be base64.
fn encoded(body: &str) -> Value {
    let mut event = event("POST", PATH, &Default::default(), Some(body));
    event["isBase64Encoded"] = json!(true);
    event
}

/// A REST API event (payload format 1.0).
fn rest_api(path: &str) -> Value {
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
            "stage": "prod",
            "path": format!("/prod{PATH}"),
        },
        "body": BODY,
        "isBase64Encoded": false,
    })
}

/// A response has the fields that both payload formats have in common, and `cookies` in payload 2.0.
/// API Gateway rejects a response to a REST API if the response has more fields.
#[tokio::test]
async fn every_source_can_send_a_request_and_gets_a_response_in_its_form() {
    let app = TestApp::new().await;
    let mut with_stage = http_api();
    with_stage["rawPath"] = json!(format!("/prod{PATH}"));
    with_stage["requestContext"]["stage"] = json!("prod");
    let mut with_odd_values = http_api();
    with_odd_values["rawQueryString"] = json!("a=\"<b> c\u{0}");
    with_odd_values["headers"] = json!({
        "content-type": "text/plain; charset=latin1",
        "host": "lb.example.com:99999 ",
        "x-forwarded-proto": "http,https",
        "x-odd": "\u{1}",
        "x-null": null,
        "x-list": [1],
    });

    for event in [
        http_api(),
        with_stage,
        with_odd_values,
        encoded(ENCODED_BODY),
        rest_api(PATH),
        rest_api(&format!("/prod{PATH}")),
    ] {
        let response = app.send_raw(event.clone()).await;
        let object = response.as_object().unwrap();
        let mut fields = vec!["headers", "isBase64Encoded", "statusCode"];
        if event["version"] == "2.0" {
            fields.insert(0, "cookies");
        }
        assert!(object.keys().eq(fields), "{event}: {response}");
        let has_null = object.values().any(Value::is_null);
        assert!(!has_null, "{event}: {response}");
        let response = TestResponse::read(response);
        response.assert_success();
        assert_eq!(response.headers["x-request-id"], "gateway-request");
    }

    let data_store = app.only_record(Table::DATA_STORES).await;
    assert_eq!(data_store["data_store_id"], "papers");
}

#[tokio::test]
async fn a_stage_that_has_the_name_of_a_segment_is_found() {
    let app = TestApp::new().await;
    for (path, stage) in [
        (PATH.to_owned(), "api"),
        (format!("/api{PATH}"), "api"),
        (format!("/v1{PATH}"), "v1"),
    ] {
        let mut event = http_api();
        event["rawPath"] = json!(path);
        event["requestContext"]["stage"] = json!(stage);
        let response = app.send(event).await;
        assert_eq!(response.status, 204, "{path} in {stage}");
    }
}

#[tokio::test]
async fn all_values_of_a_header_take_precedence_over_its_only_value() {
    let app = TestApp::new().await;
    let mut event = rest_api(PATH);
    event["headers"] = json!({ "Authorization": "a", "prefer": "return=headers-only" });
    event["multiValueHeaders"] = json!({ "AUTHORIZATION": [null, DEMO_KEY], "prefer": 1 });
    let response = app.send(event.clone()).await;
    response.assert_success();
    assert_eq!(response.headers["x-resource-id"], "papers");

    event["headers"]["Authorization"] = json!(DEMO_KEY);
    event["multiValueHeaders"]["AUTHORIZATION"] = json!([DEMO_KEY, null, DEMO_KEY]);
    let response = app.send(event).await;
    response.assert_problem(401, "unauthenticated");
}

#[tokio::test]
async fn the_path_is_decoded_unless_the_event_names_a_route_of_the_api() {
    let app = TestApp::new().await;
    for (route_key, status) in [
        (json!("POST /api/v1/org/{org_id}/dataStores/create"), 400),
        (json!("$default"), 204),
        (json!(null), 204),
    ] {
        let mut event = http_api();
        event["rawPath"] = json!(PATH.replace("acme", "acm%65"));
        event["routeKey"] = route_key.clone();
        assert_eq!(app.send(event).await.status, status, "{route_key}");
    }
}

#[tokio::test]
async fn a_request_id_that_is_not_visible_or_too_long_is_replaced_by_lambdas_id() {
    let app = TestApp::new().await;
    for (id, is_used) in [
        (json!("x".repeat(128)), true),
        (json!("JKJaXmPLvHcESHA="), true),
        (json!("x".repeat(129)), false),
        (json!(""), false),
        (json!(" "), false),
        (json!("a\nb"), false),
        (json!("é"), false),
        (json!(DEMO_KEY), false),
        (json!(5), false),
        (json!(null), false),
    ] {
        let mut event = http_api();
        event["requestContext"]["requestId"] = id.clone();
        let response = app.send(event).await;
        response.assert_success();
        let expected = if is_used {
            id.clone()
        } else {
            json!("lambda-request")
        };
        assert_eq!(response.headers["x-request-id"], expected, "{id}");
        let data_store = app.only_record(Table::DATA_STORES).await;
        assert_eq!(data_store["request_id"], expected);
        app.remove(Table::DATA_STORES, &data_store).await;
    }
}

#[tokio::test]
async fn a_body_can_have_256_kib() {
    let app = TestApp::new().await;
    let client = app.anonymous_client();
    let padding = " ".repeat(256 * 1024 - BODY.len());

    let accepted = client.post_text(PATH, &format!("{BODY}{padding}")).await;
    let rejected = client.post_text(PATH, &format!("{BODY}{padding} ")).await;

    accepted.assert_success();
    rejected.assert_problem(413, "body_too_large");
}

#[tokio::test]
async fn an_event_without_a_request_or_a_body_is_rejected_and_the_next_request_succeeds() {
    let app = TestApp::new().await;
    let null_body = event("POST", PATH, &Default::default(), None);
    let mut no_body = null_body.clone();
    no_body.as_object_mut().unwrap().remove("body");
    for event in [null_body, no_body] {
        app.send(event).await.assert_problem(400, "not_json");
    }
    let cases = [
        ("a string", json!("nonsense")),
        (
            "an event of a queue",
            json!({ "Records": [{ "eventSource": "aws:sqs", "body": BODY }] }),
        ),
        ("a body that is not base64", encoded("?!")),
        ("no method", json!({ "rawPath": PATH, "body": BODY })),
        ("no path", json!({ "httpMethod": "POST", "body": BODY })),
        (
            "headers that are not an object",
            json!({ "rawPath": PATH, "headers": 1, "requestContext": {} }),
        ),
    ];

    for (description, event) in cases {
        let response = app.send(event).await;
        let problem = (response.status, response.code());
        assert_eq!(problem, (400, "malformed_event"), "{description}");
        app.send(http_api()).await.assert_success();
    }
}
