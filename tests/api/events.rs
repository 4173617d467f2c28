//! Events from every source that can send a request, and events that contain none.

use serde_json::{Value, json};
use workspace_management::store::Table;

use test_support::{TestApp, TestResponse, event};

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

fn function_url() -> Value {
    let mut event = encoded(ENCODED_BODY);
    event["requestContext"]["apiId"] = json!("abcdefghijklmnop");
    event["requestContext"]["domainName"] = json!("abcdefghijklmnop.lambda-url.us-east-1.on.aws");
    event["requestContext"]["authentication"] = json!(null);
    event
}

/// Of the members of a response, both payload formats have these. API Gateway rejects others from a
/// REST API.
#[tokio::test]
async fn every_source_can_send_a_request_and_gets_a_response_in_one_form() {
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
    });
    let members = [
        "headers",
        "isBase64Encoded",
        "multiValueHeaders",
        "statusCode",
    ];

    for event in [
        http_api(),
        with_stage,
        with_odd_values,
        function_url(),
        rest_api(PATH),
        rest_api(&format!("/prod{PATH}")),
    ] {
        let response = app.send_raw(event.clone()).await;
        let found = response.as_object().unwrap();
        assert_eq!(found.keys().collect::<Vec<_>>(), members, "{event}");
        let has_null = found.values().any(Value::is_null);
        assert!(!has_null, "{event}: {response}");
        let response = TestResponse::read(response);
        response.assert_success();
        assert_eq!(response.headers["x-request-id"], "gateway-request");
    }

    let data_store = app.only_record(Table::DATA_STORES).await;
    assert_eq!(data_store["data_store_id"], "papers");
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

#[tokio::test]
async fn an_event_without_a_request_or_a_body_is_rejected_and_the_next_one_succeeds() {
    let app = TestApp::new().await;
    let null_body = event("POST", PATH, &Default::default(), None);
    let mut no_body = null_body.clone();
    no_body.as_object_mut().unwrap().remove("body");
    for event in [null_body, no_body] {
        app.send(event).await.assert_problem(400, "not_json");
    }
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
