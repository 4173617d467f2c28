//! Evaluates CloudWatch's metric math, as far as the alarms of the template use it. Everything else
//! panics.
//!
//! <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html> (read on
//! 22 November 2026) says what happens to missing data: arithmetic and comparisons of two time series
//! treat a missing value as 0, a division by 0 drops the data point, `IF` drops it where the condition
//! or the chosen value is missing (but a missing value for "true" is 0), and `FILL` replaces it.

use std::collections::BTreeMap;

/// A value for each period, the oldest first. `None` is a missing one.
pub type Series = Vec<Option<f64>>;

#[derive(Debug, Clone, PartialEq)]
enum Operand {
    Scalar(f64),
    Series(Series),
}

/// The result of an expression.
///
/// # Panics
/// If the syntax, a function or an id is not known here.
pub fn evaluate(expression: &str, metrics: &BTreeMap<String, Series>) -> Series {
    let tokens = tokens(expression);
    let mut parser = Parser {
        tokens: &tokens,
        metrics,
    };
    let result = parser.expression(0);
    assert!(
        parser.tokens.is_empty(),
        "{expression}: after the end: {:?}",
        parser.tokens
    );
    match result {
        Operand::Series(series) => series,
        Operand::Scalar(_) => panic!("{expression} is not a time series"),
    }
}

/// Numbers, ids, operators and parentheses.
fn tokens(expression: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = expression.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if first.is_ascii_alphanumeric() {
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
            rest.find(|c: char| !is_word(c)).unwrap_or(rest.len())
        } else if rest.starts_with(">=") {
            2
        } else {
            1
        };
        let (token, after) = rest.split_at(length);
        tokens.push(token.to_owned());
        rest = after.trim_start();
    }
    tokens
}

/// Binary operators, from those that bind least.
const PRECEDENCE: [&[&str]; 3] = [&[">", ">="], &["+"], &["*", "/"]];

struct Parser<'a> {
    tokens: &'a [String],
    metrics: &'a BTreeMap<String, Series>,
}

impl Parser<'_> {
    fn next(&mut self) -> String {
        let (first, rest) = self
            .tokens
            .split_first()
            .expect("the expression ends early");
        self.tokens = rest;
        first.clone()
    }

    fn expect(&mut self, token: &str) {
        assert_eq!(self.next(), token);
    }

    fn expression(&mut self, level: usize) -> Operand {
        let Some(operators) = PRECEDENCE.get(level) else {
            return self.operand();
        };
        let mut left = self.expression(level + 1);
        while self
            .tokens
            .first()
            .is_some_and(|token| operators.contains(&token.as_str()))
        {
            let operator = self.next();
            let right = self.expression(level + 1);
            left = combine(left, right, |left, right| apply(&operator, left, right));
        }
        left
    }

    fn operand(&mut self) -> Operand {
        let token = self.next();
        match token.as_str() {
            "(" => {
                let inner = self.expression(0);
                self.expect(")");
                inner
            }
            "IF" | "FILL" => self.call(&token),
            id if id.starts_with(|c: char| c.is_ascii_lowercase()) => {
                let series = self.metrics.get(id);
                Operand::Series(series.unwrap_or_else(|| panic!("no metric {id}")).clone())
            }
            number => match number.parse() {
                Ok(number) => Operand::Scalar(number),
                Err(_) => panic!("{number:?} is not supported"),
            },
        }
    }

    fn call(&mut self, function: &str) -> Operand {
        let mut arguments = Vec::new();
        self.expect("(");
        loop {
            arguments.push(self.expression(0));
            match self.next().as_str() {
                "," => {}
                ")" => break,
                other => panic!("{other:?} after an argument of {function}"),
            }
        }
        match (function, &arguments[..]) {
            ("FILL", [Operand::Series(series), Operand::Scalar(filler)]) => {
                let filled = series.iter().map(|value| value.or(Some(*filler)));
                Operand::Series(filled.collect())
            }
            ("IF", [Operand::Series(condition), yes, no]) => {
                let choose = |(index, condition): (usize, &Option<f64>)| match condition {
                    None => None,
                    Some(0.0) => at(no, index),
                    Some(_) => at(yes, index).or(Some(0.0)),
                };
                Operand::Series(condition.iter().enumerate().map(choose).collect())
            }
            (function, arguments) => panic!("{function} of {arguments:?} is not supported"),
        }
    }
}

fn at(operand: &Operand, index: usize) -> Option<f64> {
    match operand {
        Operand::Scalar(value) => Some(*value),
        Operand::Series(series) => series[index],
    }
}

/// Applies an operator to each period that has a value in one of the time series.
fn combine(left: Operand, right: Operand, apply: impl Fn(f64, f64) -> Option<f64>) -> Operand {
    use Operand::{Scalar, Series};
    match (&left, &right) {
        (Scalar(left), Scalar(right)) => {
            Scalar(apply(*left, *right).expect("a division of numbers by 0"))
        }
        (Series(series), Scalar(_)) | (Scalar(_), Series(series)) | (Series(series), Series(_)) => {
            let value = |index: usize| {
                let has_value = |operand: &Operand| match operand {
                    Scalar(_) => false,
                    Series(series) => series[index].is_some(),
                };
                if !has_value(&left) && !has_value(&right) {
                    return None;
                }
                let value = |operand| at(operand, index).unwrap_or(0.0);
                apply(value(&left), value(&right))
            };
            Series((0..series.len()).map(value).collect())
        }
    }
}

/// `None` drops the data point.
fn apply(operator: &str, left: f64, right: f64) -> Option<f64> {
    let flag = |flag: bool| Some(f64::from(u8::from(flag)));
    match operator {
        "+" => Some(left + right),
        "*" => Some(left * right),
        "/" => (right != 0.0).then(|| left / right),
        ">" => flag(left > right),
        ">=" => flag(left >= right),
        _ => panic!("unknown operator {operator}"),
    }
}

/// Most rows are the examples of AWS's page.
#[test]
fn missing_data_is_treated_as_documented() {
    let series = |values: &str| -> Series {
        let values = values.split(' ').map(|value| value.parse().ok());
        values.collect()
    };
    let metrics = [
        ("m1", "30 20 0 0"),
        ("m2", "20 - 20 -"),
        ("c", "1 1 0 0 -"),
        ("yes", "30 - 0 0 30"),
        ("no", "0 0 20 - 20"),
    ];
    let metrics = metrics.map(|(id, values)| (id.to_owned(), series(values)));
    let metrics = BTreeMap::from(metrics);
    for (expression, expected) in [
        ("m2 > m1", "0 0 1 0"),
        ("m1 >= 30", "1 0 0 0"),
        ("m2 > 15", "1 - 1 -"),
        ("IF(c, yes, no)", "30 0 20 - -"),
        ("IF(c, 5, no)", "5 5 20 - -"),
        ("IF(c, yes, 5)", "30 0 5 5 -"),
        ("m1 + m2", "50 20 20 0"),
        ("m2 + 1", "21 - 21 -"),
        ("100 * m2 / m1", "66.66666666666667 0 - -"),
        ("FILL(m2, 7)", "20 7 20 7"),
        ("1 + 2 * (m1 + 4) / 2", "35 25 5 5"),
    ] {
        assert_eq!(
            evaluate(expression, &metrics),
            series(expected),
            "{expression}"
        );
    }
}

#[test]
fn unsupported_expressions_panic() {
    let metrics = BTreeMap::from([("m1".to_owned(), vec![Some(1.0)])]);
    for expression in [
        "AVG(m1)",
        "m3",
        "m1 m1",
        "IF(m1)",
        "FILL(m1, REPEAT)",
        "1 + 1",
        "(m1",
        "m1 - 1",
        "-m1",
        "m1 < 1",
        "m1 == 1",
        "m1 >= 1 AND m1 > 0",
        "IF(m1 <= 1, 1, 0)",
    ] {
        let result = std::panic::catch_unwind(|| evaluate(expression, &metrics));
        assert!(result.is_err(), "{expression}: {result:?}");
    }
}
