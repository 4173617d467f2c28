//! Metrics in CloudWatch's embedded metric format: a line of JSON on standard output for each
//! request, from which CloudWatch Logs extracts the metrics.
//!
//! The line does not depend on the log's level and format. CloudWatch bills a metric for each hour
//! in which it has a value, so counts of zero are omitted.

use std::{
    fmt::Write as _,
    io::{self, Write as _},
    iter,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::operation::Operation;

/// The only dimension. Every metric has it, and is also written without dimensions for the whole
/// service.
const DIMENSION: &str = "operation";

/// The value of the dimension if the path names no operation.
const NO_OPERATION: &str = "none";

/// The metric that is a time. All others are counts.
const LATENCY: &str = "Latency";

/// The name of a count, and whether it counts a request.
type Count = (&'static str, fn(&Measurement) -> bool);

/// Every count.
const COUNTS: &[Count] = &[
    ("Requests", |_| true),
    ("ClientErrors", |request| {
        (400..500).contains(&request.status)
    }),
    ("ServerErrors", |request| request.status >= 500),
    ("Unauthenticated", |request| request.status == 401),
    ("ColdStarts", |request| request.cold_start),
];

/// The metrics of a deployment.
#[derive(Debug, Clone)]
pub struct Metrics {
    /// As a JSON string.
    namespace: String,
}

/// What is measured of a request.
pub(crate) struct Measurement {
    pub(crate) operation: Option<Operation>,
    /// The HTTP status of the response.
    pub(crate) status: u16,
    pub(crate) latency: Duration,
    pub(crate) cold_start: bool,
}

impl Metrics {
    /// Metrics in a namespace of CloudWatch.
    pub fn new(namespace: &str) -> Self {
        Self {
            namespace: serde_json::Value::from(namespace).to_string(),
        }
    }

    /// The names of all metrics.
    pub fn names() -> impl Iterator<Item = &'static str> {
        iter::once(LATENCY).chain(COUNTS.iter().map(|(name, _)| *name))
    }

    /// Writes the line of a request. Ignores failures, because the request has already succeeded.
    pub(crate) fn write(&self, measurement: &Measurement) {
        let line = self.line(measurement);
        let _ = io::stdout().lock().write_all(line.as_bytes());
    }

    fn line(&self, measurement: &Measurement) -> String {
        let counts = COUNTS
            .iter()
            .filter(|(_, is_counted)| is_counted(measurement));
        let timestamp = SystemTime::now().duration_since(UNIX_EPOCH);
        let mut line = String::with_capacity(768);
        // Writing to a string cannot fail.
        let _ = write!(
            line,
            r#"{{"_aws":{{"Timestamp":{},"CloudWatchMetrics":[{{"Namespace":{},"Dimensions":[[],["{DIMENSION}"]],"Metrics":[{{"Name":"{LATENCY}","Unit":"Milliseconds"}}"#,
            timestamp.map_or(0, |timestamp| timestamp.as_millis()),
            self.namespace,
        );
        for (name, _) in counts.clone() {
            let _ = write!(line, r#",{{"Name":"{name}","Unit":"Count"}}"#);
        }
        let _ = write!(
            line,
            r#"]}}]}},"{DIMENSION}":"{}","{LATENCY}":{:.3}"#,
            measurement.operation.map_or(NO_OPERATION, Operation::name),
            measurement.latency.as_secs_f64() * 1000.0,
        );
        for (name, _) in counts {
            let _ = write!(line, r#","{name}":1"#);
        }
        line.push_str("}\n");
        line
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn line(status: u16, cold_start: bool) -> Value {
        let line = Metrics::new("a \"stack\"").line(&Measurement {
            operation: Some(Operation::CreateTeam),
            status,
            latency: Duration::from_micros(1500),
            cold_start,
        });
        assert!(line.ends_with("}\n") && line.lines().count() == 1, "{line}");
        serde_json::from_str(&line).unwrap()
    }

    #[test]
    fn a_line_has_the_directives_of_every_value_in_it() {
        let line = line(204, true);

        let directive = &line["_aws"]["CloudWatchMetrics"][0];
        assert_eq!(directive["Namespace"], "a \"stack\"");
        assert_eq!(directive["Dimensions"], json!([[], ["operation"]]));
        assert_eq!(
            directive["Metrics"],
            json!([
                { "Name": "Latency", "Unit": "Milliseconds" },
                { "Name": "Requests", "Unit": "Count" },
                { "Name": "ColdStarts", "Unit": "Count" },
            ])
        );
        assert_eq!(line["operation"], "create_team");
        assert_eq!(line["Latency"], 1.5);
        assert_eq!(
            (&line["Requests"], &line["ColdStarts"]),
            (&json!(1), &json!(1))
        );
    }

    #[test]
    fn counts_depend_on_the_status() {
        for (status, counts) in [
            (204, vec![]),
            (401, vec!["ClientErrors", "Unauthenticated"]),
            (404, vec!["ClientErrors"]),
            (503, vec!["ServerErrors"]),
        ] {
            let line = line(status, false);
            for name in [
                "ClientErrors",
                "ServerErrors",
                "Unauthenticated",
                "ColdStarts",
            ] {
                assert_eq!(
                    line[name].is_null(),
                    !counts.contains(&name),
                    "{status} {name}"
                );
            }
        }
    }
}
