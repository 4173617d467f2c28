//! Costs in sentences of the documentation.

use std::collections::BTreeSet;

use serde_json::json;
use workspace_management::{auth::AnonymousOperations, metrics::Metrics};
use yaml_serde::Value;

use super::{
    BILLED_MS, DOCUMENTATION, FUNCTION_LOG_BYTES, HOURS, METRICS_BYTES, Prices, QUOTA, Requests,
    SECONDS_PER_DAY, assert_says, bill::entries_per_request, cents, default_stack, grouped, number,
    open_operations, open_rate, rounded,
};
use crate::{
    cloudformation::{Stack, text},
    support::{TestApp, TestConfig},
};

/// A bound for the duration of a cold start.
const COLD_MS: f64 = 1000.0;

/// The keys that the scheduled check reads.
const CHECKED_KEYS: f64 = 100.0;

/// A bound for the size of a key's record. A unit reads 4 kB of a scan.
const KEY_KB: f64 = 1.0;

/// How often a field of a cron expression matches in a period of `length` minutes or hours.
fn matches(field: &str, length: usize) -> usize {
    match field.strip_prefix("*/") {
        Some(step) => length.div_ceil(step.parse().unwrap()),
        None if field == "*" => length,
        None => {
            let values = field.split(',').map(|value| value.parse().unwrap());
            let values: BTreeSet<usize> = values.collect();
            assert!(values.iter().all(|value| *value < length), "{field}");
            values.len()
        }
    }
}

#[test]
fn the_cost_of_the_scheduled_check_is_documented() {
    let workflow = include_str!("../../../.github/workflows/doctor.yml");
    let workflow: Value = yaml_serde::from_str(workflow).unwrap();
    let schedules = workflow["on"]["schedule"].as_sequence().unwrap().iter();
    let runs_per_day = schedules.map(|schedule| {
        let cron = text(&schedule["cron"]);
        let fields: Vec<_> = cron.split(' ').collect();
        let [minute, hour, "*", "*", "*"] = fields[..] else {
            panic!("{cron} is not supported")
        };
        matches(minute, 60) * matches(hour, 24)
    });
    let runs_per_day = runs_per_day.sum::<usize>() as f64;
    let runs = runs_per_day * HOURS / 24.0;
    let prices = Prices::documented();

    // Each starts an execution environment.
    let requests = Requests::new(&prices, &default_stack());
    let usd = requests.handled_usd(runs, COLD_MS, 0.0);
    let usd = usd + prices.usd("DynamoDB reads", runs * CHECKED_KEYS * KEY_KB / 4.0);
    assert!(usd < 0.01, "{usd}");
    // The request has a 401. Its metrics are written for its operation and for the whole service.
    let metrics = Metrics::names().filter(|name| *name != "ServerErrors");
    let metrics = metrics.count() as f64 * 2.0;
    // CloudWatch bills the hours in which a metric has a value.
    let hours = runs.min(HOURS) / HOURS;
    let sentences = format!(
        "With {CHECKED_KEYS} keys, its {} requests a month cost less than USD 0.01 in AWS. On a stack that \
        no one else calls, they also keep {metrics} custom metrics alive, which cost up to USD {} a month.",
        grouped(runs),
        cents(prices.usd("Metrics", metrics * hours))
    );
    assert_says(DOCUMENTATION, &sentences);
}

/// The scaling tables of the architecture.
#[test]
fn the_costs_of_scaling_are_arithmetic_on_the_prices() {
    let prices = Prices::documented();
    let stack = default_stack();
    let architecture = include_str!("../../../docs/architecture.md");
    let entries = entries_per_request(&stack);
    // Of a million requests.
    let usd = Requests::new(&prices, &stack).handled_usd(1e6, BILLED_MS, 0.0)
        + prices.usd("DynamoDB writes", 1e6 * (1.0 + entries));
    assert_says(
        architecture,
        &format!("USD {} per million, without volume discounts.", cents(usd)),
    );
    for rate in [10.0, 1_000.0, 10_000.0_f64] {
        let millions = rate * HOURS * 3600.0 / 1e6;
        let concurrency = rounded(rate * BILLED_MS / 1000.0, usize::from(rate < 100.0));
        // Two digits.
        let unit = rate / 10.0;
        let usd = grouped((millions * usd / unit).round() * unit);
        let row = architecture
            .lines()
            .find(|line| line.starts_with(&format!("| {} | {concurrency} |", grouped(rate))));
        assert!(
            row.is_some_and(|row| row.ends_with(&format!(" | {usd} |"))),
            "{rate} requests per second cost {usd}: {row:?}"
        );
    }
    // The key and the organization.
    let uncached = format!(
        "costs USD {} per million.",
        cents(prices.usd("DynamoDB reads", 2e6))
    );
    assert_says(architecture, &uncached);
    let gb = 1e6 * 22.0 * 300.0 / 1e9;
    let stored = prices.usd("DynamoDB storage", gb) + prices.usd("DynamoDB backups", gb);
    let sentence = format!(
        "22 records of 300 bytes, a third of which DynamoDB adds, the tables have {} GB, which cost \
         USD {} a month with backups.",
        rounded(gb, 1),
        cents(stored)
    );
    assert_says(architecture, &sentence);
}

#[test]
fn the_cost_of_the_query_on_the_dashboard_is_documented() {
    let prices = Prices::documented();
    let stack = default_stack();
    let body = text(&stack.resources()["OperatorDashboard"].properties["DashboardBody"]);
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    let widgets = body["widgets"].as_array().unwrap();
    let queries: Vec<_> = widgets
        .iter()
        .filter(|widget| widget["type"] == "log")
        .map(|widget| widget["properties"]["title"].as_str().unwrap())
        .collect();
    let [title] = queries[..] else {
        panic!("the documentation describes one query: {queries:?}")
    };
    assert_eq!(body["start"], "-PT6H");
    let gb = 1e6 * (FUNCTION_LOG_BYTES + METRICS_BYTES) / 1e9;
    let sentences = format!(
        "Its widget \"{title}\" queries the function's log. Each refresh scans the log of the displayed \
        time, which is 6 hours by default. Scanning the {} GB of a month costs USD {}.",
        rounded(gb, 2),
        rounded(prices.usd("Logs Insights", gb), 3)
    );
    assert_says(DOCUMENTATION, &sentences);
}

/// If anonymous callers are denied, their routes accept as many requests as the others.
#[tokio::test]
async fn the_cost_of_a_flood_without_keys_is_documented() {
    let app = TestApp::with_config(TestConfig {
        anonymous_operations: AnonymousOperations::Denied,
        ..TestConfig::default()
    })
    .await;
    let path = "/api/v1/org/acme/addModelsToOrg/chat";
    let response = app.anonymous().post(path, json!({})).await;
    response.assert_problem(401, "unauthenticated");
    assert!(app.dynamodb_requests.take().is_empty());

    let prices = Prices::documented();
    let stack = Stack::new(&[("AnonymousOperations", "denied")]);
    let api = &stack.resources()["Api"].properties;
    let rate = number(&api["DefaultRouteSettings"]["ThrottlingRateLimit"]);
    let rates: Vec<_> = open_operations()
        .map(|operation| open_rate(api, operation))
        .collect();
    assert_eq!(rates, [rate; 2]);
    let requests = rate * SECONDS_PER_DAY;
    let usd = Requests::new(&prices, &stack).handled_usd(requests, BILLED_MS, 0.0);
    let sentences = format!(
        "Their two routes then accept {} requests per second, like the others. A flood of requests \
        without a key, which all get a 401, costs up to USD {} a day for each route.",
        grouped(rate),
        cents(usd)
    );
    assert_says(DOCUMENTATION, &sentences);
}

#[test]
fn amounts_in_sentences_are_arithmetic_on_the_prices() {
    let prices = Prices::documented();
    let stack = default_stack();
    let threshold = number(&stack.resources()["WrittenUnitsAlarm"].properties["Threshold"]);
    let ceiling = number(&stack.section("Parameters")["MaxWriteUnits"]["Default"]);
    let writes = |per_second: f64| prices.usd("DynamoDB writes", per_second * SECONDS_PER_DAY);
    let duration = |price: &str| prices.usd(&format!("Lambda duration, {price}"), 1.0);
    // Of a million requests that last a millisecond longer.
    let millisecond = |mb: f64| rounded(duration("x86_64") * 1000.0 * mb / 1024.0, 4);
    let decisions = include_str!("../../../docs/decisions.md");
    let security = include_str!("../../../SECURITY.md");
    let benchmarks = include_str!("../../../docs/benchmarks.md");
    for (document, sentence) in [
        (
            DOCUMENTATION,
            format!(
                "By default, that is {}, which cost USD {} a day.",
                grouped(threshold),
                cents(writes(threshold))
            ),
        ),
        (
            include_str!("../../../docs/deploying.md"),
            format!(
                "{} cost USD {} a day in us-east-1.",
                grouped(threshold),
                cents(writes(threshold))
            ),
        ),
        (
            decisions,
            format!(
                "up to {} write units per second, which cost USD {} a day.",
                grouped(QUOTA),
                grouped(writes(QUOTA))
            ),
        ),
        (
            security,
            format!(
                "by default USD {} for each table and index.",
                cents(writes(ceiling))
            ),
        ),
        (
            DOCUMENTATION,
            format!(
                "cost USD {} per GB and month together",
                cents(prices.usd("DynamoDB storage", 1.0) + prices.usd("DynamoDB backups", 1.0))
            ),
        ),
        (
            DOCUMENTATION,
            format!(
                "pays USD {} per million requests after the first 2.5 million",
                cents(prices.usd("Stream reads", 1e6))
            ),
        ),
        (
            DOCUMENTATION,
            format!(
                "also costs USD {} per million throttled events",
                cents(prices.usd("Contributor Insights events", 1e6))
            ),
        ),
        (
            DOCUMENTATION,
            format!(
                "CloudTrail [charges](#prices) USD {} for 100,000 data events.",
                cents(prices.usd("CloudTrail", 1e5))
            ),
        ),
        (
            DOCUMENTATION,
            format!(
                "makes Lambda's duration {}% cheaper",
                grouped(100.0 * (1.0 - duration("arm64") / duration("x86_64")))
            ),
        ),
        (
            benchmarks,
            format!(
                "adds {} USD with 128 MB and {} USD with 256 MB",
                millisecond(128.0),
                millisecond(256.0)
            ),
        ),
    ] {
        assert_says(document, &sentence);
    }
}
