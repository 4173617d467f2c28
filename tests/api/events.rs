//! Every kind of event that may bring a request, and every event that brings none.

use std::{fs, path::Path};

use serde_json::{Value, json};
use workspace_local::events;
use workspace_management::{operations::NAMES, store::Table};

use crate::support::{Answer, Sender, World, event};

const PATH: &str = "/api/v1/org/acme/dataStores/create";
const BODY: &str = r#"{"dataStoreName": "Papers"}"#;
/// [`BODY`] in base64.
const ENCODED: &str = "eyJkYXRhU3RvcmVOYW1lIjogIlBhcGVycyJ9";

/// A REST API's event (payload 1.0), with that path and in that stage.
fn rest(path: &str, stage: &str) -> Value {
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

/// A load balancer's event.
fn load_balancer() -> Value {
    json!({
        "requestContext": { "elb": { "targetGroupArn": "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/a/b" } },
        "httpMethod": "POST",
        "path": PATH,
        "queryStringParameters": {},
        "headers": { "content-type": "*/*", "host": "lb.example.com", "x-forwarded-proto": "https" },
        "body": BODY,
        "isBase64Encoded": false,
    })
}

/// A function URL's event.
fn function_url() -> Value {
    let mut event = event("POST", PATH, &Default::default(), Some(ENCODED));
    event["isBase64Encoded"] = json!(true);
    event["requestContext"]["apiId"] = json!("abcdefghijklmnop");
    event["requestContext"]["domainName"] = json!("abcdefghijklmnop.lambda-url.us-east-1.on.aws");
    event["requestContext"]["authentication"] = json!(null);
    event
}

/// Sends an event, which must create the one data store.
async fn creates(world: &World, event: Value) -> Answer {
    let answer = world.send(event).await;
    answer.is_success();
    assert_eq!(
        world.record(Table::DATA_STORES).await["data_store_id"],
        "papers"
    );
    answer
}

#[tokio::test]
async fn an_http_api_may_send_text_and_base64() {
    let world = World::new().await;
    let mut encoded = event("POST", PATH, &Default::default(), Some(ENCODED));
    encoded["isBase64Encoded"] = json!(true);

    let answer = creates(&world, encoded).await;
    creates(&world, event("POST", PATH, &Default::default(), Some(BODY))).await;

    assert_eq!(answer.headers["x-request-id"], "gateway-request");
}

#[tokio::test]
async fn an_http_api_may_have_a_named_stage_in_its_path() {
    let world = World::new().await;
    let mut staged = event(
        "POST",
        &format!("/prod{PATH}"),
        &Default::default(),
        Some(BODY),
    );
    staged["requestContext"]["stage"] = json!("prod");

    creates(&world, staged).await;
}

#[tokio::test]
async fn a_rest_api_may_have_the_stage_in_its_path_or_not() {
    let world = World::new().await;

    for (path, stage) in [
        (PATH.to_owned(), "prod"),
        (format!("/prod{PATH}"), "prod"),
        (PATH.to_owned(), "api"),
        (format!("/api{PATH}"), "api"),
        (format!("/v1{PATH}"), "v1"),
    ] {
        let answer = creates(&world, rest(&path, stage)).await;
        assert_eq!(answer.headers["x-request-id"], "gateway-request");
    }
}

#[tokio::test]
async fn a_load_balancer_gets_an_answer_that_it_reads_with_and_without_multi_value_headers() {
    let world = World::new().await;
    creates(&world, load_balancer()).await;
    let mut multi = load_balancer();
    multi["headers"] = json!(null);
    multi["multiValueHeaders"] =
        json!({ "Content-Type": ["*/*"], "Authorization": ["Bearer nonsense"] });

    let answer = world.send(multi).await;

    answer.is(401, "unauthenticated");
    assert_eq!(answer.headers["x-request-id"], "lambda-request");
}

#[tokio::test]
async fn every_sender_gets_an_answer_in_its_own_form() {
    let world = World::new().await;
    let http_api = event("POST", PATH, &Default::default(), Some(BODY));
    let common = [
        "headers",
        "isBase64Encoded",
        "multiValueHeaders",
        "statusCode",
    ];
    let rows = [
        ("an HTTP API", http_api, vec!["cookies"]),
        ("a function URL", function_url(), vec!["cookies"]),
        ("a REST API", rest(PATH, "prod"), vec![]),
        (
            "a load balancer",
            load_balancer(),
            vec!["statusDescription"],
        ),
    ];

    for (sender, event, own) in rows {
        let answer = world.send_raw(event).await;
        let answer = answer.as_object().unwrap();
        let mut expected = [&common[..], &own].concat();
        expected.sort_unstable();
        assert_eq!(answer.keys().collect::<Vec<_>>(), expected, "{sender}");
        assert!(!answer.values().any(Value::is_null), "{sender}: {answer:?}");
    }
    let answer = world.send_raw(load_balancer()).await;
    assert_eq!(answer["statusDescription"], "204 No Content");
    assert_eq!(
        answer["multiValueHeaders"]["x-request-id"],
        json!(["lambda-request"])
    );
}

#[tokio::test]
async fn what_no_operation_reads_may_be_anything() {
    let world = World::new().await;
    let mut odd = event("POST", PATH, &Default::default(), Some(BODY));
    odd["rawQueryString"] = json!("a=\"<b> c\u{0}");
    odd["headers"] = json!({ "host": "lb.example.com:99999 ", "x-forwarded-proto": "http,https", "x-odd": "\u{1}" });

    creates(&world, odd).await;
}

#[tokio::test]
async fn a_function_url_may_send_a_request() {
    let world = World::new().await;

    creates(&world, function_url()).await;
}

#[tokio::test]
async fn header_names_may_be_in_any_case() {
    let world = World::new().await;
    let key = world.issue("acme", |_| {}).await;

    for name in ["authorization", "Authorization", "AUTHORIZATION"] {
        let sender = world.anonymous().with(name, &key);
        let path = "/api/v1/project/acme/apollo/createLoggingInstance";
        sender
            .post(path, json!({ "projectName": "Apollo" }))
            .await
            .is_success();
    }
}

#[tokio::test]
async fn the_content_type_is_not_looked_at() {
    let world = World::new().await;

    for content_type in [
        "*/*",
        "application/json",
        "text/plain; charset=latin1",
        "nonsense",
    ] {
        let sender: Sender = world.anonymous().with("content-type", content_type);
        sender.post_text(PATH, BODY).await.is_success();
    }
}

#[tokio::test]
async fn a_body_that_is_no_json_is_refused() {
    let world = World::new().await;
    let deep = "[".repeat(100_000);
    let rows = [
        ("nothing", ""),
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
        ("a byte order mark", "\u{feff}{}"),
        ("a form", "dataStoreName=a"),
        ("100,000 arrays in each other", &deep),
    ];

    for (description, body) in rows {
        let answer = world.anonymous().post_text(PATH, body).await;
        assert_eq!(
            (answer.status, answer.code()),
            (400, "not_json"),
            "{description}: {answer:?}"
        );
    }
    let mut invalid_utf8 = event(
        "POST",
        PATH,
        &Default::default(),
        Some("eyJkYXRhU3RvcmVOYW1lIjoi/yJ9"),
    );
    invalid_utf8["isBase64Encoded"] = json!(true);
    world.send(invalid_utf8).await.is(400, "not_json");
    world
        .send(event("POST", PATH, &Default::default(), None))
        .await
        .is(400, "not_json");
    let mut missing = event("POST", PATH, &Default::default(), None);
    missing.as_object_mut().unwrap().remove("body");
    world.send(missing).await.is(400, "not_json");
    assert!(world.records(Table::DATA_STORES).await.is_empty());
}

#[tokio::test]
async fn a_body_may_have_256_kib_and_no_more() {
    let world = World::new().await;
    let of_length = |length: usize| {
        let frame = r#"{"dataStoreName":"a","filling":""}"#.len();
        format!(
            r#"{{"dataStoreName":"a","filling":"{}"}}"#,
            "x".repeat(length - frame)
        )
    };

    let largest = world
        .anonymous()
        .post_text(PATH, &of_length(256 * 1024))
        .await;
    let larger = world
        .anonymous()
        .post_text(PATH, &of_length(256 * 1024 + 1))
        .await;

    largest.is_success();
    larger.is(413, "body_too_large");
}

#[tokio::test]
async fn an_event_that_is_no_request_is_answered_and_the_next_one_too() {
    let world = World::new().await;
    let mut not_base64 = event("POST", PATH, &Default::default(), Some("?!"));
    not_base64["isBase64Encoded"] = json!(true);
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
            "a queue's event",
            json!({ "Records": [{ "eventSource": "aws:sqs", "body": BODY }] }),
        ),
        ("a body that is not base64", not_base64),
        ("no method", json!({ "rawPath": PATH, "body": BODY })),
        ("no path", json!({ "httpMethod": "POST", "body": BODY })),
        (
            "headers of the wrong kind",
            json!({ "rawPath": PATH, "headers": 1, "requestContext": {} }),
        ),
    ];

    for (description, poison) in rows {
        let answer = world.send(poison).await;
        assert_eq!(
            (answer.status, answer.code()),
            (400, "malformed_event"),
            "{description}"
        );
        world
            .send(event("POST", PATH, &Default::default(), Some(BODY)))
            .await
            .is_success();
    }
}

#[tokio::test]
async fn every_event_of_the_events_folder_is_answered_with_success() {
    let world = World::new().await;
    world.know_the_demo_key().await;

    for (_, text) in events::all() {
        world
            .send(serde_json::from_str(text).unwrap())
            .await
            .is_success();
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("events");
    let mut names = Vec::new();
    for folder in [folder.clone(), folder.join("rest")] {
        for file in fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().path())
        {
            let name = file.file_name().unwrap().to_str().unwrap().to_owned();
            if !name.ends_with(".json") || name == "env.json" {
                continue;
            }
            let event: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
            assert_eq!(world.send(event).await.status, 204, "{}", file.display());
            names.push(name);
        }
    }

    assert_eq!(names.len(), NAMES.len() + 1);
    for table in [Table::MODELS, Table::TEAM_MEMBERS] {
        assert_eq!(world.records(table).await.len(), 2);
    }
    for table in [
        Table::TEAMS,
        Table::BOT_VOICES,
        Table::DATA_STORES,
        Table::LOGGING_INSTANCES,
    ] {
        assert_eq!(world.records(table).await.len(), 1);
    }
}
