//! The function's log.

use std::collections::BTreeSet;

use serde_json::json;
use workspace_local::runtime_api::TRACE_ID;
use workspace_management::store::Table;

use crate::{
    function::{Function, PATH, create_papers},
    support::{TestApp, event, key_id},
};

#[tokio::test]
async fn each_request_writes_one_line_with_every_field() {
    let app = TestApp::new().await;
    let key = app.issue_key("acme", |_| {}).await;
    let holder = app.with_key(&key);
    let mut function = Function::start(&app, &[]).await;
    let traced = holder
        .clone()
        .header(
            "X-Amzn-Trace-Id",
            "Self=1-1; Root=1-67891233-abcdef012345678912345678;Sampled=1",
        )
        .header(
            "TraceParent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        );
    function
        .invoke(create_papers(&traced.headers))
        .await
        .assert_success();
    let untraced = holder
        .clone()
        .header("x-amzn-trace-id", "Root=1-67891233-Papers")
        .header(
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0x",
        );
    function
        .invoke(event("POST", PATH, &untraced.headers, Some("{}")))
        .await
        .assert_problem(422, "invalid_body");
    app.delete_table(Table::DATA_STORES).await;
    function
        .invoke(create_papers(&holder.headers))
        .await
        .assert_problem(500, "internal");
    let other = event(
        "POST",
        &PATH.replace("acme", "globex"),
        &holder.headers,
        Some("{}"),
    );
    function
        .invoke(other)
        .await
        .assert_problem(403, "other_organization");

    let log = function.log().await;

    assert_eq!(log.len(), 4, "{log:?}");
    let expected = [
        json!({ "level": "INFO", "status": 204, "code": null, "cold_start": true }),
        json!({ "level": "INFO", "status": 422, "code": "invalid_body", "cold_start": false }),
        json!({ "level": "ERROR", "status": 500, "code": "internal", "cold_start": false }),
        json!({ "level": "INFO", "status": 403, "code": "other_organization", "cold_start": false }),
    ];
    for (line, expected) in log.iter().zip(&expected) {
        for (member, value) in expected.as_object().unwrap() {
            assert_eq!(line[member], *value, "{member} of {line}");
        }
        assert_eq!(line["operation"], "create_data_store");
        assert_eq!(line["organization"], "acme");
        assert_eq!(line["key_id"], key_id(&key));
        assert_eq!(line["request_id"], "gateway-request");
        assert_eq!(line["trace_id"], TRACE_ID);
        assert!(line["duration_ms"].as_f64().unwrap() > 0.0);
        assert!(line["timestamp"].is_string());
        let text = line.to_string();
        assert!(!text.contains(&key) && !text.contains("Papers"), "{text}");
    }
    assert_eq!(
        log[0]["amzn_trace_id"],
        "1-67891233-abcdef012345678912345678"
    );
    assert_eq!(
        log[0]["traceparent"],
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    );
    for name in ["amzn_trace_id", "traceparent"] {
        assert!(log[1..].iter().all(|line| line[name].is_null()), "{log:?}");
    }
    let members: BTreeSet<&str> = log
        .iter()
        .flat_map(|line| line.as_object().unwrap().keys())
        .map(String::as_str)
        .collect();
    for field in queried_fields() {
        assert!(
            members.contains(field),
            "a query in docs/operations.md uses {field}, which the log does not contain"
        );
    }
    let cause = log[2]["cause"].as_str().unwrap();
    assert!(cause.contains("ResourceNotFoundException"), "{cause}");
}

/// The fields of the function's log that the queries in `docs/operations.md` use.
fn queried_fields() -> BTreeSet<&'static str> {
    const KEYWORDS: [&str; 18] = [
        "filter",
        "stats",
        "sort",
        "limit",
        "display",
        "as",
        "by",
        "and",
        "or",
        "like",
        "desc",
        "count",
        "latest",
        "max",
        "pct",
        "ispresent",
        // aliases that the queries define
        "requests",
        "why",
    ];
    let (_, queries) = include_str!("../../docs/operations.md")
        .split_once("# A request, by the")
        .unwrap();
    let (queries, of_the_api) = queries
        .split_once("```")
        .unwrap()
        .0
        .split_once("in the API's log:")
        .unwrap();
    assert!(of_the_api.contains("by ip"));
    let mut fields = BTreeSet::new();
    for query in queries.lines().filter(|line| line.starts_with("filter ")) {
        let bare = query.split('"').step_by(2);
        let words = bare.flat_map(|part| {
            part.split(|character: char| {
                !character.is_ascii_alphabetic() && !"_@".contains(character)
            })
        });
        fields.extend(
            words.filter(|word| {
                !word.is_empty() && !word.starts_with('@') && !KEYWORDS.contains(word)
            }),
        );
    }
    assert!(fields.len() > 8, "{fields:?}");
    fields
}
