//! What the largest requests and floods of requests cost.

use std::collections::BTreeSet;

use serde_json::json;
use workspace_local::fixtures;
use workspace_management::{operation::Operation, store::Table};
use yaml_serde::Value;

use super::{
    BILLED_MS, LOG_BYTES, METRICS_BYTES, Prices, assert_documented, cents, default_stack, grouped,
};
use crate::{
    cloudformation::text,
    cloudwatch::Alarm,
    operations::{Sample, Values},
    support::TestApp,
    template::declared_route,
};

const SECONDS_PER_DAY: f64 = 86_400.0;

/// The mean of all waits between the 8 attempts of a request that DynamoDB throttles
/// (`src/store/errors.rs`). The SDK's retry quota ends most requests earlier.
const THROTTLED_MS: f64 = (50.0 + 100.0 + 200.0 + 400.0 + 800.0 + 1000.0 + 1000.0) / 2.0;

/// DynamoDB's quota for a table, which is what limits writes without a ceiling.
const QUOTA: f64 = 40_000.0;

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
