//! The costs in `docs/operations.md` are arithmetic on the prices there, for what the template
//! turns on: the table of a month in `bill`, the tables of floods of requests in `floods`, and
//! the amounts in `sentences`.

use std::collections::BTreeMap;

use workspace_management::operation::Operation;
use yaml_serde::Value;

use crate::{
    cloudformation::{Stack, text},
    template::declared_route,
};

mod bill;
mod floods;
mod sentences;

const DOCUMENTATION: &str = include_str!("../../docs/operations.md");

/// The hours of a month, as AWS counts them.
const HOURS: f64 = 730.0;

const SECONDS_PER_DAY: f64 = 86_400.0;

/// The duration that is billed for a request: an assumption.
const BILLED_MS: f64 = 10.0;

/// The size of a record and of a response with its headers: an assumption.
const RECORD_KB: f64 = 1.0;

/// The bytes of a request in the logs: the function's line, which was measured, and Lambda's two.
const FUNCTION_LOG_BYTES: f64 = 360.0 + 700.0 + 3.0 * LOG_OVERHEAD_BYTES;

/// The line of the API, also for requests that it rejects.
const API_LOG_BYTES: f64 = 250.0 + LOG_OVERHEAD_BYTES;

/// The line of the request's metrics, as it was measured.
const METRICS_BYTES: f64 = 270.0 + LOG_OVERHEAD_BYTES;

/// What CloudWatch adds to each line.
const LOG_OVERHEAD_BYTES: f64 = 26.0;

/// What the template sets for all requests.
struct Settings {
    memory_mb: f64,
    /// The name of the price of Lambda's duration.
    duration: String,
    has_metrics: bool,
    log_retention_days: f64,
}

impl Settings {
    fn of(stack: &Stack) -> Self {
        let resources = stack.resources();
        let function = &resources["Function"].properties;
        let days = |group: &str| number(&resources[group].properties["RetentionInDays"]);
        assert_eq!(days("LogGroup"), days("ApiLogGroup"));
        let variables = &function["Environment"]["Variables"];
        Self {
            memory_mb: number(&function["MemorySize"]),
            duration: format!("Lambda duration, {}", text(&function["Architectures"][0])),
            has_metrics: variables.get("METRICS_NAMESPACE").is_some(),
            log_retention_days: days("LogGroup"),
        }
    }

    /// What Lambda bills for a number of requests of the same duration.
    fn gb_seconds(&self, requests: f64, billed_ms: f64) -> f64 {
        requests * billed_ms / 1000.0 * self.memory_mb / 1024.0
    }

    /// What a number of requests add to the logs.
    fn logged_gb(&self, requests: f64) -> f64 {
        let metrics = if self.has_metrics { METRICS_BYTES } else { 0.0 };
        requests * (FUNCTION_LOG_BYTES + API_LOG_BYTES + metrics) / 1e9
    }

    /// The cost of logs until they are deleted.
    fn logs_usd(&self, prices: &Prices, logged_gb: f64) -> [f64; 2] {
        let stored = logged_gb * self.log_retention_days / 30.0;
        [
            prices.usd("Logs", logged_gb),
            prices.usd("Log storage", stored),
        ]
    }
}

/// DynamoDB's quota for a table, which is what limits writes without a ceiling.
const QUOTA: f64 = 40_000.0;

/// The prices in the documentation, in USD, by their names.
struct Prices(BTreeMap<&'static str, f64>);

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
                "100,000" => 1e5,
                "10,000" => 1e4,
                _ => 1.0,
            };
            prices.insert(name, usd.parse::<f64>().unwrap() / per);
        }
        Self(prices)
    }

    fn usd(&self, name: &str, amount: f64) -> f64 {
        let price = self.0.get(name);
        amount * price.unwrap_or_else(|| panic!("the documentation has no price for {name}"))
    }
}

/// The cost of requests.
struct Requests<'a> {
    prices: &'a Prices,
    settings: Settings,
}

impl<'a> Requests<'a> {
    fn new(prices: &'a Prices, stack: &Stack) -> Self {
        let settings = Settings::of(stack);
        Self { prices, settings }
    }

    /// Of responses, and lines of a log.
    fn response_usd(&self, requests: f64, logged_gb: f64) -> f64 {
        let transferred = requests * RECORD_KB / 1e6;
        let logs = self.settings.logs_usd(self.prices, logged_gb);
        self.prices.usd("Data transfer", transferred) + logs.iter().sum::<f64>()
    }

    /// Of requests that the function handles, without what they write.
    fn handled_usd(&self, requests: f64, billed_ms: f64, read_units: f64) -> f64 {
        let Self { prices, settings } = self;
        prices.usd("HTTP API", requests)
            + prices.usd("Lambda requests", requests)
            + prices.usd(&settings.duration, settings.gb_seconds(requests, billed_ms))
            + prices.usd("DynamoDB reads", requests * read_units)
            + self.response_usd(requests, settings.logged_gb(requests))
    }

    /// Of requests that API Gateway rejects. It does not charge for them.
    fn rejected_usd(&self, requests: f64) -> f64 {
        self.response_usd(requests, requests * API_LOG_BYTES / 1e9)
    }
}

/// Rounded, and a half up although it is not exact in binary. With commas.
fn rounded(number: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", number + 1e-9);
    let (integer, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut result = String::new();
    for (index, digit) in integer.chars().enumerate() {
        if index > 0 && (integer.len() - index).is_multiple_of(3) {
            result.push(',');
        }
        result.push(digit);
    }
    result + fraction
}

fn cents(usd: f64) -> String {
    rounded(usd, 2)
}

fn grouped(number: f64) -> String {
    rounded(number, 0)
}

/// A sentence of a document, on one line or several.
#[track_caller]
fn assert_says(document: &str, sentence: &str) {
    let words: Vec<_> = document.split_whitespace().collect();
    assert!(
        words.join(" ").contains(sentence),
        "a document must say: {sentence}"
    );
}

#[track_caller]
fn assert_documented(table: &str) {
    assert!(
        DOCUMENTATION.contains(table),
        "docs/operations.md must contain\n\n{table}\n"
    );
}

/// The operations that callers without a key can use, unless the stack denies them.
fn open_operations() -> impl Iterator<Item = Operation> {
    let operations = Operation::ALL.iter().copied();
    operations.filter(|operation| operation.allows_anonymous())
}

/// The requests per second that API Gateway accepts for one of these operations.
fn open_rate(api: &Value, operation: Operation) -> f64 {
    let (method, path) = declared_route(operation);
    let route = &api["RouteSettings"][format!("{method} {path}")];
    number(&route["ThrottlingRateLimit"])
}

fn default_stack() -> Stack {
    Stack::new(&[("AnonymousOperations", "allowed")])
}

/// A number of the template.
fn number(value: &Value) -> f64 {
    text(value).parse().unwrap()
}

#[test]
fn numbers_are_rounded_half_up() {
    let usd = [0.625, 3.125, 4.375, 0.124_999, 1234.565, 1_000_000.0];
    assert_eq!(
        usd.map(cents),
        ["0.63", "3.13", "4.38", "0.12", "1,234.57", "1,000,000.00"]
    );
    assert_eq!([999.5, 0.0].map(grouped), ["1,000", "0"]);
}

#[test]
fn every_price_is_used() {
    let uses = [
        include_str!("cost.rs"),
        include_str!("cost/bill.rs"),
        include_str!("cost/floods.rs"),
        include_str!("cost/sentences.rs"),
    ];
    let uses = uses.concat();
    for name in Prices::documented().0.keys() {
        // Those of other architectures are for comparison.
        let is_used =
            name.starts_with("Lambda duration, ") || uses.contains(&format!("\"{name}\""));
        assert!(is_used, "nothing uses the price of {name}");
    }
}
