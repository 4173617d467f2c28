//! The costs in `docs/operations.md` are arithmetic on the prices there, for what the template turns
//! on: a month in `bill`, and requests without limits in `floods`.

use std::collections::BTreeMap;

use yaml_serde::Value;

use crate::cloudformation::{Stack, text};

mod bill;
mod floods;

const DOCUMENTATION: &str = include_str!("../../docs/operations.md");

/// The hours of a month, as AWS counts them.
const HOURS: f64 = 730.0;

/// The duration that is billed for a request: an assumption.
const BILLED_MS: f64 = 10.0;

/// The size of a record and of a response with its headers: an assumption.
const RECORD_KB: f64 = 1.0;

/// The bytes of a request in the logs: the function's line, which was measured, Lambda's two, and that
/// of the API.
const LOG_BYTES: f64 = 360.0 + 700.0 + 250.0 + 4.0 * LOG_OVERHEAD_BYTES;

/// The line of the request's metrics, as it was measured.
const METRICS_BYTES: f64 = 270.0 + LOG_OVERHEAD_BYTES;

/// What CloudWatch adds to each line.
const LOG_OVERHEAD_BYTES: f64 = 26.0;

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

/// Rounded to cents, and half a cent up although it is not exact in binary.
fn cents(usd: f64) -> String {
    format!("{:.2}", usd + 1e-9)
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

/// A number of the template.
fn number(value: &Value) -> f64 {
    text(value).parse().unwrap()
}

#[test]
fn every_price_is_used() {
    let uses = [include_str!("cost/bill.rs"), include_str!("cost/floods.rs")].concat();
    for name in Prices::documented().0.keys() {
        // Those of other architectures are for comparison.
        let is_used =
            name.starts_with("Lambda duration, ") || uses.contains(&format!("\"{name}\""));
        assert!(is_used, "nothing uses the price of {name}");
    }
}
