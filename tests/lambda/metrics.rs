//! The metrics that the function writes to standard output.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use workspace_management::{metrics::Metrics, store::Table};

use crate::{
    function::{Function, create_papers},
    support::{TestApp, event},
};

#[tokio::test]
async fn each_request_writes_metrics_even_at_log_level_error() {
    let app = TestApp::new().await;
    let variables = [("METRICS_NAMESPACE", "a-stack"), ("LOG_LEVEL", "ERROR")];
    let mut function = Function::start(&app, &variables).await;
    let anonymous = app.anonymous();
    let client = app.anonymous().header("authorization", "nonsense");

    let response = function.invoke(create_papers(&anonymous)).await;
    response.assert_success();
    let response = function.invoke(create_papers(&client)).await;
    response.assert_problem(401, "unauthenticated");
    let unknown_path = event("POST", "/nowhere", &anonymous.headers, None);
    let response = function.invoke(unknown_path).await;
    response.assert_problem(404, "no_such_path");
    app.delete_table(Table::DATA_STORES).await;
    let response = function.invoke(create_papers(&anonymous)).await;
    response.assert_problem(500, "internal");

    let log = function.log().await;
    let (metrics, lines): (Vec<_>, Vec<_>) = log.iter().partition(|line| !line["_aws"].is_null());
    // Only the failure is logged at this level.
    assert_eq!(lines.len(), 1, "{lines:?}");
    let expected = [
        json!({ "operation": "create_data_store", "Requests": 1, "ColdStarts": 1 }),
        json!({
            "operation": "create_data_store",
            "Requests": 1,
            "ClientErrors": 1,
            "Unauthenticated": 1,
        }),
        json!({ "operation": "none", "Requests": 1, "ClientErrors": 1 }),
        json!({ "operation": "create_data_store", "Requests": 1, "ServerErrors": 1 }),
    ];
    let values: Vec<_> = metrics.into_iter().map(checked_values).collect();
    assert_eq!(values, expected);
}

/// Checks the directives of a line. Returns its other members, except the latency.
fn checked_values(line: &Value) -> Value {
    let mut members = line.as_object().unwrap().clone();
    let directives = members.remove("_aws").unwrap();
    let timestamp = Duration::from_millis(directives["Timestamp"].as_u64().unwrap());
    let age = SystemTime::now().duration_since(UNIX_EPOCH + timestamp);
    assert!(age.unwrap() < Duration::from_secs(60), "{line}");
    let directive = &directives["CloudWatchMetrics"][0];
    assert_eq!(directive["Namespace"], "a-stack", "{line}");
    assert_eq!(directive["Dimensions"], json!([[], ["operation"]]));
    let declared = directive["Metrics"].as_array().unwrap();
    for metric in declared {
        let name = metric["Name"].as_str().unwrap();
        assert!(Metrics::names().any(|other| other == name), "{line}");
        assert!(members[name].is_number(), "{line}");
    }
    // Every member is a metric, except the dimension.
    assert_eq!(declared.len(), members.len() - 1, "{line}");
    let latency = members.remove("Latency").unwrap();
    assert!(latency.as_f64().unwrap() > 0.0, "{line}");
    json!(members)
}
