//! The tables of costs in `docs/operations.md` are arithmetic on the prices there, for what the
//! template turns on.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use serde_json::json;
use workspace_local::fixtures;
use workspace_management::{metrics::Metrics, operation::Operation, store::Table};
use yaml_serde::Value;

use crate::{
    cloudformation::{Resource, Stack, text},
    cloudwatch::Alarm,
    operations::{Sample, Values},
    support::TestApp,
    template::declared_route,
};

const DOCUMENTATION: &str = include_str!("../../docs/operations.md");

/// Requests in a month, spread evenly over the operations and the month.
const REQUESTS: f64 = 1e6;

/// The hours of a month, as AWS counts them.
const HOURS: f64 = 730.0;

const SECONDS_PER_DAY: f64 = 86_400.0;

/// The duration that is billed for a request: an assumption.
const BILLED_MS: f64 = 10.0;

/// The mean of all waits between the 8 attempts of a request that DynamoDB throttles
/// (`src/store/errors.rs`). The SDK's retry quota ends most requests earlier.
const THROTTLED_MS: f64 = (50.0 + 100.0 + 200.0 + 400.0 + 800.0 + 1000.0 + 1000.0) / 2.0;

/// The size of a record and of a response with its headers: an assumption.
const RECORD_KB: f64 = 1.0;

/// The bytes of a request in the logs: the function's line, which was measured, Lambda's two, and that
/// of the API.
const LOG_BYTES: f64 = 360.0 + 700.0 + 250.0 + 4.0 * LOG_OVERHEAD_BYTES;

/// The line of the request's metrics, as it was measured.
const METRICS_BYTES: f64 = 270.0 + LOG_OVERHEAD_BYTES;

/// What CloudWatch adds to each line.
const LOG_OVERHEAD_BYTES: f64 = 26.0;

/// DynamoDB caches the key of a table for 5 minutes.
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.howitworks.html>
const KMS_REQUESTS_PER_HOUR: f64 = 12.0;

/// What API Gateway publishes for each route if detailed metrics are on.
/// <https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-metrics.html>
const METRICS_OF_A_ROUTE: usize = 6;

/// DynamoDB's quota for a table, which is what limits writes without a ceiling.
const QUOTA: f64 = 40_000.0;

/// The prices in the documentation, in USD, by their names.
struct Prices {
    prices: BTreeMap<&'static str, f64>,
    used: RefCell<BTreeSet<&'static str>>,
}

impl Prices {
    fn documented() -> Self {
        let mut prices = BTreeMap::new();
        let (_, section) = DOCUMENTATION.split_once("\n### Prices\n").unwrap();
        let section = section.split("\n### ").next().unwrap();
        assert!(
            section.contains("us-east-1") && section.contains(" 2026"),
            "region and date"
        );
        for row in section
            .lines()
            .filter(|line| line.starts_with("| "))
            .skip(1)
        {
            let cells: Vec<_> = row.trim_matches('|').split(" | ").map(str::trim).collect();
            let [name, usd, unit, page] = cells[..] else {
                panic!("{row}")
            };
            let has_source = page.contains("](https://aws.amazon.com/");
            assert!(has_source, "{row}");
            let per = match unit.split_once(' ').map_or(unit, |(amount, _)| amount) {
                "million" => 1e6,
                "10,000" => 1e4,
                _ => 1.0,
            };
            prices.insert(name, usd.parse::<f64>().unwrap() / per);
        }
        Self {
            prices,
            used: RefCell::default(),
        }
    }

    fn usd(&self, name: &str, amount: f64) -> f64 {
        let Some((name, price)) = self.prices.get_key_value(name) else {
            panic!("the documentation has no price for {name}")
        };
        self.used.borrow_mut().insert(*name);
        price * amount
    }
}

/// Rounded to cents, and half a cent up although it is not exact in binary.
fn cents(usd: f64) -> String {
    format!("{:.2}", usd + 1e-9)
}

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

/// With commas.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut result = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            result.push(',');
        }
        result.push(digit);
    }
    result
}

#[track_caller]
fn assert_documented(table: &str) {
    assert!(
        DOCUMENTATION.contains(table),
        "docs/operations.md must contain\n\n{table}\n"
    );
}

fn default_stack() -> Stack {
    Stack::new(&[("AnonymousOperations", "allowed")])
}

/// The resources of a type.
fn of_type(stack: &Stack, kind: &str) -> Vec<Resource> {
    let resources = stack.resources().into_values();
    resources.filter(|resource| resource.kind == kind).collect()
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
                "Tags",
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
                "Policies",
                "Role",
                "Events",
                "Timeout",
                "Tracing",
                "Tags",
            ],
        ),
        (
            "AWS::Logs::LogGroup",
            &["RetentionInDays", "LogGroupName", "Tags"],
        ),
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
                "Tags",
            ],
        ),
    ]
    .into();
    let stack = Stack::new(&[
        ("AnonymousOperations", "allowed"),
        ("DomainName", "api.example.com"),
        ("HostedZoneId", "Z1"),
        ("ReaderPrincipals", "123456789012"),
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

/// The mean written units of a request that stores one small record in its table, and an entry in
/// each index.
fn units_per_request(stack: &Stack) -> f64 {
    let one_entry = Values {
        entries: vec![("ada".to_owned(), 1)],
        ..Values::example()
    };
    let resources = stack.resources();
    let units = Operation::ALL.iter().map(|operation| {
        let sample = Sample::of(*operation, &one_entry);
        let [record] = &sample.records[..] else {
            panic!("{sample:?} stores more than one record")
        };
        let table = &resources[record.table.logical_id].properties;
        let indexes = table
            .get("GlobalSecondaryIndexes")
            .and_then(Value::as_sequence);
        1 + indexes.map_or(0, Vec::len)
    });
    units.sum::<usize>() as f64 / Operation::ALL.len() as f64
}

#[test]
fn the_cost_of_a_million_requests_is_arithmetic_on_the_prices() {
    let prices = Prices::documented();
    let stack = default_stack();
    let resources = stack.resources();
    let function = &resources["Function"].properties;
    let number = |value: &Value| text(value).parse::<f64>().unwrap();
    let days = |resource: &Resource| number(&resource.properties["RetentionInDays"]);
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
    let memory = number(&function["MemorySize"]);
    let duration = REQUESTS * BILLED_MS / 1000.0 * memory / 1024.0;
    let architecture = text(&function["Architectures"][0]);
    rows.add(
        "Lambda duration",
        &format!(
            "1 million × {BILLED_MS} ms × {memory} MB = {} GB-seconds",
            grouped(duration)
        ),
        prices.usd(&format!("Lambda duration, {architecture}"), duration),
    );
    let written = REQUESTS * units_per_request(&stack);
    let amount = format!("{:.2} million units", written / 1e6);
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

    let tables = of_type(&stack, "AWS::DynamoDB::Table");
    let is_true = |table: &&Resource, specification: &str, property: &str| {
        table.properties[specification][property] == true
    };
    let stored = REQUESTS * RECORD_KB / 1e6;
    rows.add(
        "DynamoDB storage",
        &format!("{stored} GB"),
        prices.usd("DynamoDB storage", stored),
    );
    let recoverable = tables.iter().filter(|table| {
        is_true(
            table,
            "PointInTimeRecoverySpecification",
            "PointInTimeRecoveryEnabled",
        )
    });
    let backed_up = stored * recoverable.count() as f64 / tables.len() as f64;
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

    let has_metrics = text(&parameters["Metrics"]["Default"]) == "true";
    let logged = LOG_BYTES + if has_metrics { METRICS_BYTES } else { 0.0 };
    let logged = REQUESTS * logged / 1e9;
    let amount = format!("{logged:.2} GB");
    rows.add("Logs", &amount, prices.usd("Logs", logged));
    let retention = days(&resources["LogGroup"]);
    assert_eq!(retention, days(&resources["ApiLogGroup"]));
    let kept = logged * retention / 30.0;
    let amount = format!("{logged:.2} GB for {retention} days");
    rows.add("Log storage", &amount, prices.usd("Log storage", kept));

    // Options, and whether they are on by default.
    let mut options = Rows::default();
    let mut option = |is_on: bool, item: &str, amount: &str, usd: f64| {
        let rows = if is_on { &mut rows } else { &mut options };
        rows.add(item, amount, usd);
    };
    let globals = stack.section("Globals");
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
    let mut settings = routes.chain([&api["DefaultRouteSettings"]]);
    let is_detailed = settings.any(|settings| {
        let value = &settings["DetailedMetricsEnabled"];
        text(value) == "true"
    });
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
    let rules = tables
        .iter()
        .map(|table| table.properties["KeySchema"].as_sequence().unwrap().len());
    let rules: usize = rules.sum();
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
        &format!("{logged:.2} GB for {} more days", 400.0 - retention),
        prices.usd("Log storage", more),
    );
    let requests_usd = cents(rows.usd);
    rows.text += &format!("| **Requests** | | **{requests_usd}** |\n");

    // Each metric of the function is published for each operation, for requests whose path names no
    // operation, and for the whole service.
    let count = if has_metrics {
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
    let alarms = of_type(&stack, "AWS::CloudWatch::Alarm");
    let watched = alarms
        .iter()
        .map(|alarm| Alarm::parse(&alarm.properties).metrics().count());
    let watched: usize = watched.sum();
    let amount = format!("{} alarms with {watched} metrics", alarms.len());
    rows.add(
        "Alarms (`Alarms`)",
        &amount,
        prices.usd("Alarms", watched as f64),
    );
    let dashboards = of_type(&stack, "AWS::CloudWatch::Dashboard").len();
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

    // Prices of other architectures are for comparison.
    let used = prices.used.borrow();
    let unused = prices.prices.keys().filter(|name| !used.contains(*name));
    let unused: Vec<_> = unused
        .filter(|name| !name.starts_with("Lambda duration, "))
        .collect();
    assert!(unused.is_empty(), "unused prices: {unused:?}");
}

/// The units that the largest request of an operation writes to its table, and to its index.
struct Largest {
    record_bytes: usize,
    table: usize,
    indexes: usize,
    is_transaction: bool,
}

/// The size of attributes as DynamoDB counts it: names and values.
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html>
fn bytes<'a>(attributes: impl IntoIterator<Item = (&'a String, &'a serde_json::Value)>) -> usize {
    let attributes = attributes.into_iter();
    let size = attributes.map(|(name, value)| {
        name.len()
            + match value {
                serde_json::Value::String(text) => text.len(),
                serde_json::Value::Number(number) => number.to_string().len().div_ceil(2) + 1,
                serde_json::Value::Bool(_) => 1,
                other => panic!("{other} has no size"),
            }
    });
    size.sum()
}

/// Sends the largest request of an operation.
async fn largest(operation: Operation) -> Largest {
    let app = TestApp::new().await;
    // 4 bytes in UTF-8.
    let wide = |length: usize| "🦀".repeat(length);
    let entry = |number: usize, length: usize| {
        wide(length - 1) + &char::from_u32(0x1F400 + number as u32).unwrap().to_string()
    };
    // A name needs a letter.
    let name = format!("a{}", wide(99));
    let id = "x".repeat(128);
    app.register(&id).await;
    app.insert(Table::TEAMS, fixtures::team(&id, &id, &id, "x"))
        .await;
    let client = app.client_with_new_key(&id).await;
    let body = match operation {
        Operation::AddModels => {
            let model = |number| json!({ "id": (1_u64 << 53) - 1, "modelid": entry(number, 200) });
            json!({ "aIModelsSelectedToAddToOrg": (0..100).map(model).collect::<Vec<_>>() })
        }
        Operation::AddTeamUsers => {
            let user = |number| json!({ "userid": entry(number, 256) });
            json!({ "usersAddingToTeam": (0..100).map(user).collect::<Vec<_>>() })
        }
        Operation::CreateTeam => json!({ "teamName": name, "teamDescription": wide(1000) }),
        Operation::SetBotVoice => json!({ "type": wide(64), "enabled": true }),
        Operation::CreateDataStore => {
            json!({ "dataStoreName": name, "dataStoreDescription": wide(1000) })
        }
        Operation::CreateLoggingInstance => json!({ "projectName": name }),
    };
    let (_, path) = declared_route(operation);
    let path = path.replace("{modelType}", &"x".repeat(64));
    let segments = path.split('/').map(|segment| {
        if segment.starts_with('{') {
            id.as_str()
        } else {
            segment
        }
    });
    let path = segments.collect::<Vec<_>>().join("/");
    client.post(&path, body).await.assert_success();

    let table = Sample::of(operation, &Values::example()).records[0].table;
    let mut records = app.records(table).await;
    records.retain(|record| record["created_by"] != "setup");
    let record = records[0].as_object().unwrap();
    let template = &default_stack().resources()[table.logical_id].properties;
    let indexes = template
        .get("GlobalSecondaryIndexes")
        .and_then(Value::as_sequence);
    let units = |bytes: usize| bytes.div_ceil(1024) * records.len();
    let index_units = |index: &Value| {
        assert_eq!(index["Projection"]["ProjectionType"], "KEYS_ONLY");
        let keys = index["KeySchema"].as_sequence().unwrap().iter();
        let keys = keys.map(|key| key["AttributeName"].as_str().unwrap());
        let keys: BTreeSet<_> = keys.chain(table.key.iter().copied()).collect();
        units(bytes(
            record
                .iter()
                .filter(|(name, _)| keys.contains(name.as_str())),
        ))
    };
    let is_transaction = records.len() > 1;
    Largest {
        record_bytes: bytes(record),
        table: units(bytes(record)) * if is_transaction { 2 } else { 1 },
        indexes: indexes.into_iter().flatten().map(index_units).sum(),
        is_transaction,
    }
}

#[tokio::test]
async fn the_costs_of_the_largest_requests_and_of_floods_are_documented() {
    let prices = Prices::documented();
    let resources = default_stack().resources();
    let throughput = &resources["ModelsTable"].properties["OnDemandThroughput"];
    let ceiling: f64 = text(&throughput["MaxWriteRequestUnits"]).parse().unwrap();
    let api = &resources["Api"].properties;
    let routes = &api["RouteSettings"];
    let mut requests = String::new();
    let mut floods = String::new();
    let (mut anonymous_rate, mut throttled_rate) = (0.0, 0.0);
    let (mut all_usd, mut all_gb) = (0.0, 0.0);
    // USD per day, GB per day, and USD per month for keeping these.
    let stored_usd =
        |gb: f64| prices.usd("DynamoDB storage", gb) + prices.usd("DynamoDB backups", gb);
    let mut flood = |name: &str, units: f64, usd: f64, gb: f64| {
        let units = if units == 0.0 {
            "-".to_owned()
        } else {
            grouped(units)
        };
        let (usd, kept) = (cents(usd), cents(stored_usd(gb)));
        floods += &format!("| {name} | {units} | {usd} | {gb:.1} | {kept} |\n");
    };
    let cost = |units: f64| prices.usd("DynamoDB writes", units * SECONDS_PER_DAY);
    let gb = |units: f64, is_transaction: bool| {
        units / if is_transaction { 2.0 } else { 1.0 } * SECONDS_PER_DAY / 1e6
    };
    for operation in Operation::ALL {
        let largest = largest(*operation).await;
        let name = operation.name();
        let (table, indexes) = (largest.table as f64, largest.indexes as f64);
        assert!(
            table <= ceiling,
            "{operation:?} exceeds the ceiling of a second"
        );
        let usd = prices.usd("DynamoDB writes", (table + indexes) * 1e6);
        requests += &format!(
            "| `{name}` | {} | {table} | {indexes} | {} |\n",
            grouped(largest.record_bytes as f64),
            cents(usd)
        );
        if operation.allows_anonymous() {
            let (method, path) = declared_route(*operation);
            let rate = text(&routes[format!("{method} {path}")]["ThrottlingRateLimit"]);
            let rate: f64 = rate.parse().unwrap();
            let is_throttled = rate * table > ceiling;
            if is_throttled {
                throttled_rate += rate;
            } else {
                anonymous_rate += rate;
            }
            let units = ceiling.min(rate * table);
            let stored = gb(units, largest.is_transaction);
            flood(
                &format!("anonymous callers, `{name}`"),
                units,
                cost(units),
                stored,
            );
            all_usd += cost(units);
            all_gb += stored;
        }
    }
    let requests_usd = |rate: f64, milliseconds: f64| {
        let sent = rate * SECONDS_PER_DAY;
        let logged = sent * (LOG_BYTES + METRICS_BYTES) / 1e9;
        let gb_seconds = sent * milliseconds / 1000.0 * 0.25;
        prices.usd("HTTP API", sent)
            + prices.usd("Lambda requests", sent)
            + prices.usd("Lambda duration, x86_64", gb_seconds)
            + prices.usd("Logs", logged)
    };
    let usd = requests_usd(anonymous_rate, BILLED_MS) + requests_usd(throttled_rate, THROTTLED_MS);
    flood("their requests", 0.0, usd, 0.0);
    flood("**all anonymous callers**", 0.0, all_usd + usd, all_gb);
    let default = text(&api["DefaultRouteSettings"]["ThrottlingRateLimit"]);
    let default_rate = default.parse().unwrap();
    let usd = requests_usd(default_rate, BILLED_MS);
    let name = format!("requests without a valid key, {default} per second");
    flood(&name, 0.0, usd, 0.0);
    let mut a_key = |name: &str, units: f64, is_transaction: bool| {
        flood(name, units, cost(units), gb(units, is_transaction));
    };
    a_key("a key, one table at its ceiling", ceiling, false);
    let alarm = Alarm::parse(&resources["WrittenUnitsAlarm"].properties);
    let all = ceiling * alarm.metrics().count() as f64;
    a_key("a key, every table and index at its ceiling", all, false);
    a_key("a key, `add_team_users`, without a ceiling", QUOTA, true);
    let usd = requests_usd(default_rate, THROTTLED_MS);
    let name = format!("throttled requests, {default} per second");
    flood(&name, 0.0, usd, 0.0);
    assert_documented(&format!(
        "| operation | largest record, bytes | units of the table | of its index | USD per million |\n\
        |---|---|---|---|---|\n{requests}\n"
    ));
    assert_documented(&format!(
        "| flood | units per second | USD per day | GB per day | then USD per month for a day's records |\n\
        |---|---|---|---|---|\n{floods}\n"
    ));
}
