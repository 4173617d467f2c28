//! What a million requests a month cost, and the options of the template.

use std::collections::BTreeMap;

use workspace_management::{metrics::Metrics, operation::Operation};
use yaml_serde::Value;

use super::{
    BILLED_MS, HOURS, Prices, RECORD_KB, Settings, assert_documented, cents, default_stack,
    grouped, number, rounded,
};
use crate::{
    cloudformation::{Resource, Stack, text},
    cloudwatch::Alarm,
    operations::{Sample, Values},
};

/// Requests in a month, spread evenly over the operations and the month.
const REQUESTS: f64 = 1e6;

/// DynamoDB caches the key of a table for 5 minutes.
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.howitworks.html>
const KMS_REQUESTS_PER_HOUR: f64 = 12.0;

/// What API Gateway publishes for each route if detailed metrics are on.
/// <https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-metrics.html>
const METRICS_OF_A_ROUTE: usize = 6;

/// Rows of a table in the documentation.
#[derive(Default)]
struct Rows {
    text: String,
    usd: f64,
}

impl Rows {
    fn add(&mut self, item: &str, amount: &str, usd: f64) {
        self.usd += usd;
        self.text += &format!("| {item} | {amount} | {} |\n", cents(usd));
    }
}

/// A resource or a property that is not listed here may cost something: then the tables need a row.
#[test]
fn everything_that_the_template_turns_on_has_a_row_or_is_free() {
    let free = [
        "AWS::ApiGatewayV2::ApiMapping",
        "AWS::ApiGatewayV2::DomainName",
        "AWS::IAM::ManagedPolicy",
        "AWS::IAM::Role",
        "AWS::Route53::RecordSet", // an alias in an existing zone
    ];
    let known: BTreeMap<&str, &[&str]> = [
        (
            "AWS::Serverless::HttpApi",
            &[
                "StageName",
                "CorsConfiguration",
                "AccessLogSettings",
                "DefaultRouteSettings",
                "RouteSettings",
                "DisableExecuteApiEndpoint",
            ][..],
        ),
        (
            "AWS::Serverless::Function",
            &[
                "CodeUri",
                "Handler",
                "Runtime",
                "Architectures",
                "MemorySize",
                "ReservedConcurrentExecutions",
                "LoggingConfig",
                "Environment",
                "Role",
                "Events",
                "Timeout",
                "Tracing",
            ],
        ),
        ("AWS::Logs::LogGroup", &["RetentionInDays", "LogGroupName"]),
        (
            "AWS::CloudWatch::Dashboard",
            &["DashboardName", "DashboardBody"],
        ),
        (
            "AWS::DynamoDB::Table",
            &[
                "BillingMode",
                "AttributeDefinitions",
                "KeySchema",
                "GlobalSecondaryIndexes",
                "StreamSpecification", // free while no one reads it
                "PointInTimeRecoverySpecification",
                "SSESpecification",
                "OnDemandThroughput",
                "ContributorInsightsSpecification",
                "DeletionProtectionEnabled",
            ],
        ),
    ]
    .into();
    let stack = Stack::new(&[
        ("AnonymousOperations", "allowed"),
        ("CorsAllowOrigins", "https://app.example.com"),
        ("DomainName", "api.example.com"),
        ("HostedZoneId", "Z1"),
        ("ReaderPrincipals", "123456789012"),
        ("ReservedConcurrency", "10"),
    ]);
    let has_only = |properties: &Value, known: &[&str], name: &str| {
        for (property, _) in properties.as_mapping().unwrap() {
            let property = property.as_str().unwrap();
            assert!(
                known.contains(&property),
                "is the property {property} of {name} free?"
            );
        }
    };
    for (name, Resource { kind, properties }) in stack.resources() {
        if kind == "AWS::CloudWatch::Alarm" {
            Alarm::parse(&properties);
        } else if let Some(known) = known.get(kind.as_str()) {
            has_only(&properties, known, &name);
        } else {
            assert!(
                free.contains(&kind.as_str()),
                "is {name} of type {kind} free?"
            );
        }
        if kind == "AWS::DynamoDB::Table" {
            assert_eq!(properties["BillingMode"], "PAY_PER_REQUEST");
        }
    }
    let globals = stack.section("Globals");
    has_only(&globals, &["Function"], "Globals");
    has_only(
        &globals["Function"],
        known["AWS::Serverless::Function"],
        "Globals.Function",
    );
}

/// The share of requests that X-Ray traces: one in each second, and 5% of the others. The requests
/// arrive at random times (a Poisson process).
/// <https://docs.aws.amazon.com/lambda/latest/dg/services-xray.html>
fn traced_share() -> f64 {
    let rate = REQUESTS / (HOURS * 3600.0);
    let first = 1.0 - (-rate).exp();
    (first + 0.05 * (rate - first)) / rate
}

/// The mean number of index entries of a request that stores one record.
pub(super) fn entries_per_request(stack: &Stack) -> f64 {
    let one_entry = Values {
        entries: vec![("ada".to_owned(), 1)],
        ..Values::example()
    };
    let resources = stack.resources();
    let entries = Operation::ALL.iter().map(|operation| {
        let sample = Sample::of(*operation, &one_entry);
        let [record] = &sample.records[..] else {
            panic!("{sample:?} stores more than one record")
        };
        resources[record.table.logical_id].indexes().count()
    });
    entries.sum::<usize>() as f64 / Operation::ALL.len() as f64
}

#[test]
fn the_cost_of_a_million_requests_is_arithmetic_on_the_prices() {
    let prices = Prices::documented();
    let stack = default_stack();
    let resources = stack.resources();
    let settings = Settings::of(&stack);
    let mut rows = Rows::default();

    rows.add(
        "HTTP API",
        "1 million requests",
        prices.usd("HTTP API", REQUESTS),
    );
    let usd = prices.usd("Data transfer", REQUESTS * RECORD_KB / 1e6);
    rows.add("Data transfer", "1 GB of responses", usd);
    rows.add(
        "Lambda requests",
        "1 million",
        prices.usd("Lambda requests", REQUESTS),
    );
    let duration = settings.gb_seconds(REQUESTS, BILLED_MS);
    rows.add(
        "Lambda duration",
        &format!(
            "1 million × {BILLED_MS} ms × {} MB = {} GB-seconds",
            settings.memory_mb,
            grouped(duration)
        ),
        prices.usd(&settings.duration, duration),
    );
    let written = REQUESTS * (1.0 + entries_per_request(&stack));
    let amount = format!("{} million units", rounded(written / 1e6, 2));
    rows.add(
        "DynamoDB writes",
        &amount,
        prices.usd("DynamoDB writes", written),
    );
    // The key, the organization and the team.
    let parameters = stack.section("Parameters");
    let cached = number(&parameters["KeyCacheSeconds"]["Default"]);
    let read = 3.0 * HOURS * 3600.0 / cached;
    let amount = format!("{} units", grouped(read));
    rows.add(
        "DynamoDB reads",
        &amount,
        prices.usd("DynamoDB reads", read),
    );

    let tables: Vec<_> = stack
        .of_type("AWS::DynamoDB::Table")
        .into_values()
        .collect();
    let is_true = |table: &&Resource, specification: &str, property: &str| {
        table.properties[specification][property] == true
    };
    let stored = written * RECORD_KB / 1e6;
    rows.add(
        "DynamoDB storage",
        &format!("{} GB", rounded(stored, 2)),
        prices.usd("DynamoDB storage", stored),
    );
    let recoverable = tables.iter().filter(|table| {
        is_true(
            table,
            "PointInTimeRecoverySpecification",
            "PointInTimeRecoveryEnabled",
        )
    });
    // Backups contain no indexes.
    let backed_up = REQUESTS * RECORD_KB / 1e6 * recoverable.count() as f64 / tables.len() as f64;
    let amount = format!("{backed_up} GB");
    rows.add(
        "DynamoDB backups",
        &amount,
        prices.usd("DynamoDB backups", backed_up),
    );
    let encrypted = tables
        .iter()
        .filter(|table| is_true(table, "SSESpecification", "SSEEnabled"));
    let encrypted = encrypted.count() as f64;
    let requests = encrypted * KMS_REQUESTS_PER_HOUR * HOURS;
    let amount = format!(
        "{encrypted} tables × 12 per hour = {} requests",
        grouped(requests)
    );
    rows.add("KMS", &amount, prices.usd("KMS", requests));

    let logged = settings.logged_gb(REQUESTS);
    let logged_gb = format!("{} GB", rounded(logged, 2));
    let [written, stored] = settings.logs_usd(&prices, logged);
    rows.add("Logs", &logged_gb, written);
    let retention = settings.log_retention_days;
    rows.add(
        "Log storage",
        &format!("{logged_gb} for {retention} days"),
        stored,
    );

    // Options, and whether they are on by default.
    let mut options = Rows::default();
    let mut option = |is_on: bool, item: &str, amount: &str, usd: f64| {
        let rows = if is_on { &mut rows } else { &mut options };
        rows.add(item, amount, usd);
    };
    let globals = stack.section("Globals");
    let function = &resources["Function"].properties;
    let tracing = function
        .get("Tracing")
        .unwrap_or(&globals["Function"]["Tracing"]);
    let share = traced_share();
    let amount = format!(
        "{:.0}% of requests, 1 per second and 5% of the others",
        share * 100.0
    );
    let usd = prices.usd("X-Ray", REQUESTS * share);
    option(
        text(tracing) == "Active",
        "X-Ray (`XRay=true`)",
        &amount,
        usd,
    );

    let api = &resources["Api"].properties;
    let routes = api["RouteSettings"].as_mapping().unwrap().values();
    let mut routes = routes.chain([&api["DefaultRouteSettings"]]);
    let is_detailed = routes.any(|route| text(&route["DetailedMetricsEnabled"]) == "true");
    let count = METRICS_OF_A_ROUTE * Operation::ALL.len();
    option(
        is_detailed,
        "Metrics of each route (`DetailedApiMetrics=true`)",
        &format!("{count} metrics: {METRICS_OF_A_ROUTE} for each route"),
        prices.usd("Metrics", count as f64),
    );

    let has_insights = tables.iter().any(|table| {
        let specification = table.properties.get("ContributorInsightsSpecification");
        specification.is_some_and(|specification| text(&specification["Enabled"]) == "true")
    });
    // For the throttled partition keys, and for those with sort keys.
    let tables_and_indexes = tables
        .iter()
        .flat_map(|table| table.indexes().chain([&table.properties]));
    let rules: usize = tables_and_indexes
        .map(|keys| keys["KeySchema"].as_sequence().unwrap().len())
        .sum();
    option(
        has_insights,
        "Throttled keys (`ContributorInsights=true`)",
        &format!("{rules} rules"),
        prices.usd("Contributor Insights", rules as f64),
    );
    let more = logged * (400.0 - retention) / 30.0;
    option(
        false,
        "Logs for 400 days (`LogRetentionDays=400`, as in `prod`)",
        &format!("{logged_gb} for {} more days", 400.0 - retention),
        prices.usd("Log storage", more),
    );
    let requests_usd = cents(rows.usd);
    rows.text += &format!("| **Requests** | | **{requests_usd}** |\n");

    // Each metric of the function is published for each operation, for requests whose path names no
    // operation, and for the whole service.
    let count = if settings.has_metrics {
        Metrics::names().count()
    } else {
        0
    };
    let metrics = count * (Operation::ALL.len() + 2);
    let amount = format!("up to {metrics} metrics");
    rows.add(
        "Metrics (`Metrics`)",
        &amount,
        prices.usd("Metrics", metrics as f64),
    );
    let alarms = stack.of_type("AWS::CloudWatch::Alarm");
    let watched = alarms
        .values()
        .map(|alarm| Alarm::parse(&alarm.properties).metrics().count());
    let watched: usize = watched.sum();
    let amount = format!("{} alarms with {watched} metrics", alarms.len());
    rows.add(
        "Alarms (`Alarms`)",
        &amount,
        prices.usd("Alarms", watched as f64),
    );
    let dashboards = stack.of_type("AWS::CloudWatch::Dashboard").len();
    let usd = prices.usd("Dashboards", dashboards as f64);
    rows.add("Dashboard (`Dashboard`)", &dashboards.to_string(), usd);
    rows.text += &format!("| **With monitoring** | | **{}** |\n", cents(rows.usd));
    assert_documented(&format!(
        "| | amount | USD |\n|---|---|---|\n{}\n",
        rows.text
    ));
    assert_documented(&format!(
        "| option | amount | USD |\n|---|---|---|\n{}\n",
        options.text
    ));
}
