//! What the largest requests and floods of requests cost.

use std::collections::BTreeSet;

use serde_json::json;
use workspace_local::fixtures;
use workspace_management::{operation::Operation, store::Table};
use yaml_serde::Value;

use super::{
    BILLED_MS, DOCUMENTATION, Prices, QUOTA, Requests, SECONDS_PER_DAY, assert_documented,
    assert_says, cents, default_stack, grouped, number, open_operations, open_rate, rounded,
};
use crate::{
    cloudwatch::{Alarm, Metric},
    operations::{Sample, Values},
    support::{TestApp, unique_key},
    template::declared_route,
};

/// The mean duration of a request whose 8 attempts DynamoDB throttles: the attempts, and the waits
/// between them, which are half of the maximum on average (`src/store/retry.rs`). The SDK's retry
/// quota ends most requests earlier.
const THROTTLED_MS: f64 =
    8.0 * BILLED_MS + (50.0 + 100.0 + 200.0 + 400.0 + 800.0 + 1000.0 + 1000.0) / 2.0;

/// The rate for which the documentation has the cost of requests that API Gateway rejects. Nothing
/// limits it.
const REJECTED_RATE: f64 = 1000.0;

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
    let resources = default_stack().resources();
    let indexes = resources[table.logical_id].indexes();
    let units = |bytes: usize| bytes.div_ceil(1024) * records.len();
    let index_units = |index: &Value| {
        assert_eq!(index["Projection"]["ProjectionType"], "KEYS_ONLY");
        let keys = index["KeySchema"].as_sequence().unwrap().iter();
        let keys = keys.map(|key| key["AttributeName"].as_str().unwrap());
        let keys: BTreeSet<_> = keys.chain(table.primary_key.iter().copied()).collect();
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
        indexes: indexes.map(index_units).sum(),
        is_transaction,
    }
}

/// What requests write in a day: records, and entries in indexes. They have at most 1 kB for each
/// unit, or for two units of a transaction.
#[derive(Clone, Copy)]
struct Written {
    /// Per second.
    units: f64,
    records_gb: f64,
    entries_gb: f64,
}

impl Written {
    fn new(table_units: f64, index_units: f64, is_transaction: bool) -> Self {
        let units_of_kb = if is_transaction { 2.0 } else { 1.0 };
        Self {
            units: table_units + index_units,
            records_gb: table_units / units_of_kb * SECONDS_PER_DAY / 1e6,
            entries_gb: index_units * SECONDS_PER_DAY / 1e6,
        }
    }

    fn usd(self, prices: &Prices) -> f64 {
        prices.usd("DynamoDB writes", self.units * SECONDS_PER_DAY)
    }

    /// For each month in which the records exist. Backups contain no indexes.
    fn stored_usd(self, prices: &Prices) -> f64 {
        prices.usd("DynamoDB storage", self.records_gb + self.entries_gb)
            + prices.usd("DynamoDB backups", self.records_gb)
    }
}

/// The units that a request reads if its key and its organization are made up. DynamoDB bills a
/// consistent read of a record that does not exist as one unit.
async fn units_of_a_made_up_key() -> f64 {
    let app = TestApp::new().await;
    let client = app.with_key(&unique_key());
    let path = "/api/v1/project/made-up/apollo/createNewTeamOnProject";
    let response = client.post(path, json!({})).await;
    response.assert_problem(401, "unauthenticated");
    let requests = app.dynamodb_requests.take();
    // One key in each table.
    requests
        .iter()
        .map(|(_, tables)| tables.len())
        .sum::<usize>() as f64
}

#[tokio::test]
async fn the_costs_of_the_largest_requests_and_of_floods_are_documented() {
    let prices = Prices::documented();
    let stack = default_stack();
    let resources = stack.resources();
    let throughput = &resources["ModelsTable"].properties["OnDemandThroughput"];
    let ceiling = number(&throughput["MaxWriteRequestUnits"]);
    let lowest_ceiling = number(&stack.section("Parameters")["MaxWriteUnits"]["MinValue"]);
    let api = &resources["Api"].properties;
    let requests = Requests::new(&prices, &stack);
    let (mut largest_rows, mut request_rows, mut write_rows) =
        (String::new(), String::new(), String::new());
    let mut add_requests = |name: &str, rate: f64, handled: Option<(f64, f64)>| {
        let (usd, handled) = match handled {
            Some((billed_ms, units)) => (
                requests.handled_usd(rate * SECONDS_PER_DAY, billed_ms, units),
                format!("{} | {units}", grouped(billed_ms)),
            ),
            None => (
                requests.rejected_usd(rate * SECONDS_PER_DAY),
                "- | -".to_owned(),
            ),
        };
        let rate = grouped(rate);
        request_rows += &format!("| {name} | {rate} | {handled} | {} |\n", cents(usd));
        usd
    };
    let mut add_writes = |name: &str, written: Written| {
        write_rows += &format!(
            "| {name} | {} | {} | {} | {} |\n",
            grouped(written.units),
            cents(written.usd(&prices)),
            rounded(written.records_gb + written.entries_gb, 1),
            cents(written.stored_usd(&prices))
        );
    };
    let (mut anonymous_usd, mut anonymous_stored_usd) = (0.0, 0.0);
    let mut index_share = 0.0;
    for operation in Operation::ALL {
        let largest = largest(*operation).await;
        let name = operation.name();
        let (table, indexes) = (largest.table as f64, largest.indexes as f64);
        assert!(
            table.max(indexes) <= lowest_ceiling,
            "{operation:?} exceeds the lowest ceiling"
        );
        let usd = prices.usd("DynamoDB writes", (table + indexes) * 1e6);
        largest_rows += &format!(
            "| `{name}` | {} | {table} | {indexes} | {} |\n",
            grouped(largest.record_bytes as f64),
            cents(usd)
        );
        if *operation == Operation::AddTeamUsers {
            index_share = indexes / table;
        }
        if operation.allows_anonymous() {
            assert_eq!(indexes, 0.0, "{operation:?}");
            let name = format!("anonymous callers, `{name}`");
            let rate = open_rate(api, *operation);
            let is_throttled = rate * table > ceiling;
            let billed_ms = if is_throttled {
                THROTTLED_MS
            } else {
                BILLED_MS
            };
            // The function caches the organization.
            let requests_usd = add_requests(&name, rate, Some((billed_ms, 0.0)));
            let units = ceiling.min(rate * table);
            let written = Written::new(units, 0.0, largest.is_transaction);
            add_writes(&name, written);
            anonymous_usd += requests_usd + written.usd(&prices);
            anonymous_stored_usd += written.stored_usd(&prices);
        }
    }
    let rate = number(&api["DefaultRouteSettings"]["ThrottlingRateLimit"]);
    let units = units_of_a_made_up_key().await;
    add_requests("without a valid key", rate, Some((BILLED_MS, units)));
    add_requests("throttled by DynamoDB", rate, Some((THROTTLED_MS, 0.0)));
    add_requests("rejected by API Gateway (429)", REJECTED_RATE, None);

    let written = Written::new(ceiling, 0.0, false);
    add_writes("a key, one table at its ceiling", written);
    let alarm = Alarm::parse(&resources["WrittenUnitsAlarm"].properties);
    let is_index = |metric: &&Metric| metric.dimensions.len() > 1;
    let indexes = alarm.metrics().filter(is_index).count();
    let tables = alarm.metrics().count() - indexes;
    let written = Written::new(ceiling * tables as f64, ceiling * indexes as f64, false);
    add_writes("a key, every table and index at its ceiling", written);
    let written = Written::new(QUOTA, QUOTA * index_share, true);
    add_writes("a key, `add_team_users`, without a ceiling", written);

    assert_documented(&format!(
        "| operation | largest record, bytes | units of the table | of its index | USD per million |\n\
        |---|---|---|---|---|\n{largest_rows}\n"
    ));
    assert_documented(&format!(
        "| requests | per second | billed ms of each | read units of each | USD per day |\n\
        |---|---|---|---|---|\n{request_rows}\n"
    ));
    assert_documented(&format!(
        "| writes | units per second | USD per day | GB per day | then USD per month for a day's records |\n\
        |---|---|---|---|---|\n{write_rows}\n"
    ));
    let routes = Operation::ALL.len();
    for sentence in [
        format!(
            "Together, anonymous callers cost USD {} a day, and USD {} a month for each day's records.",
            cents(anonymous_usd),
            cents(anonymous_stored_usd)
        ),
        format!(
            "**Throttled requests** are retried for at most {} seconds on average, and need a concurrency of {}.",
            rounded(THROTTLED_MS / 1000.0, 1),
            grouped(rate * THROTTLED_MS / 1000.0)
        ),
        format!(
            "requests to all routes cost {} times as much, or {routes} times if anonymous callers are denied.",
            routes - open_operations().count()
        ),
    ] {
        assert_says(DOCUMENTATION, &sentence);
    }
}
