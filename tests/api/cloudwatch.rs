//! Calculates the states of CloudWatch alarms.
//!
//! The rules are those of these pages, read on 22 November 2026:
//! - <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation.html>
//! - <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html>
//! - <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/percentiles-with-low-samples.html>
//! - <https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html>
//!
//! CloudWatch retrieves more data points than `EvaluationPeriods`. AWS does not document how many,
//! so [`Assumptions`] contains the number. Percentiles of low counts are evaluated, as is the default:
//! with `EvaluateLowSampleCountPercentile: ignore`, an alarm would keep its state.
//!
//! Only what the alarms of the template use is supported. Everything else panics.

use std::collections::{BTreeMap, BTreeSet};

use yaml_serde::Value;

use crate::{
    cloudformation::text,
    metric_math::{self, Series},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Ok,
    Alarm,
    InsufficientData,
}

/// What an alarm does about missing data.
#[derive(Debug, Clone, Copy)]
enum Treatment {
    NotBreaching,
    /// Only as an assumption: no alarm declares it.
    Ignore,
}

/// What AWS leaves open, or documents in two ways.
#[derive(Debug, Clone, Copy)]
pub struct Assumptions {
    /// How many more data points than `EvaluationPeriods` are retrieved. In AWS's examples, 2.
    pub more_data_points: usize,
    /// Whether the data of the newest period is not published yet when an alarm is evaluated.
    pub is_newest_missing: bool,
    /// Whether alarms on metrics of DynamoDB ignore missing data whatever `TreatMissingData` says.
    /// The API reference says so. The user guide says that they do by default.
    pub dynamodb_ignores_missing: bool,
    /// Whether metric math has results if none of its metrics has data, such as those of `FILL`.
    pub calculates_without_data: bool,
}

/// A metric: its namespace, name and dimensions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Metric {
    pub namespace: String,
    pub name: String,
    pub dimensions: Vec<(String, String)>,
}

/// Samples of a metric: each value with the number of its samples.
pub type Samples = Vec<(f64, usize)>;

#[derive(Debug, Clone, Copy)]
enum Statistic {
    Sum,
    /// Between 0 and 100.
    Percentile(f64),
}

/// A statistic of a metric, for periods of `period` seconds.
#[derive(Debug)]
struct Query {
    metric: Metric,
    statistic: Statistic,
    period: u64,
}

/// The part of an alarm's declaration that determines its states.
#[derive(Debug)]
pub struct Alarm {
    operator: String,
    threshold: f64,
    evaluation_periods: usize,
    datapoints_to_alarm: usize,
    /// The queries by their ids.
    queries: BTreeMap<String, Query>,
    /// Its result is compared with the threshold.
    expression: String,
}

/// The properties of a metric alarm that do not determine its states.
const ACTIONS: [&str; 3] = ["AlarmActions", "OKActions", "AlarmDescription"];

/// The id of the only metric of an alarm without metric math.
const ONLY: &str = "only";

/// The member of a mapping. Panics if the mapping lacks it.
fn member(value: &Value, name: &str) -> String {
    text(
        value
            .get(name)
            .unwrap_or_else(|| panic!("no {name} in {value:?}")),
    )
}

fn number(value: &Value, name: &str) -> f64 {
    member(value, name).parse().unwrap()
}

/// Panics if the mapping has a member that is not known.
fn assert_known(value: &Value, known: &[&str]) {
    let names = value.as_mapping().unwrap().keys();
    let names: BTreeSet<_> = names.map(|name| name.as_str().unwrap()).collect();
    let known = known.iter().copied().collect();
    let unknown: Vec<_> = names.difference(&known).collect();
    assert!(
        unknown.is_empty(),
        "unknown properties {unknown:?} in {value:?}"
    );
}

impl Query {
    fn parse(metric: &Value, statistic: &str, period: u64) -> Self {
        let dimensions = metric.get("Dimensions").and_then(Value::as_sequence);
        let dimension = |dimension: &Value| {
            assert_known(dimension, &["Name", "Value"]);
            (member(dimension, "Name"), member(dimension, "Value"))
        };
        let statistic = match statistic.strip_prefix('p') {
            Some(percentile) => Statistic::Percentile(percentile.parse().unwrap()),
            None => {
                assert_eq!(statistic, "Sum", "this statistic is not supported");
                Statistic::Sum
            }
        };
        Self {
            metric: Metric {
                namespace: member(metric, "Namespace"),
                name: member(metric, "MetricName"),
                dimensions: dimensions.into_iter().flatten().map(dimension).collect(),
            },
            statistic,
            period,
        }
    }
}

fn count(samples: &Samples) -> usize {
    samples.iter().map(|(_, count)| count).sum()
}

impl Statistic {
    fn of(self, samples: &Samples) -> Option<f64> {
        match self {
            _ if count(samples) == 0 => None,
            Self::Sum => Some(
                samples
                    .iter()
                    .map(|(value, count)| value * *count as f64)
                    .sum(),
            ),
            Self::Percentile(percentile) => {
                let mut sorted = samples.clone();
                sorted.sort_by(|(left, _), (right, _)| left.total_cmp(right));
                let mut remaining = percentile / 100.0 * count(samples) as f64;
                sorted.retain(|(_, count)| {
                    remaining -= *count as f64;
                    remaining <= 0.0
                });
                sorted.first().map(|(value, _)| *value)
            }
        }
    }
}

impl Alarm {
    /// Reads the properties of an alarm.
    ///
    /// # Panics
    /// If a property or a value of one is not known here.
    pub fn parse(properties: &Value) -> Self {
        let common = [
            "ComparisonOperator",
            "Threshold",
            "EvaluationPeriods",
            "DatapointsToAlarm",
            "TreatMissingData",
        ];
        let mut known = [&ACTIONS[..], &common].concat();
        let mut queries = BTreeMap::new();
        let mut expression = ONLY.to_owned();
        if let Some(metrics) = properties.get("Metrics").and_then(Value::as_sequence) {
            known.push("Metrics");
            // CloudWatch's limit.
            assert!(metrics.len() <= 11, "an expression can have 10 metrics");
            for metric in metrics {
                let Some(stat) = metric.get("MetricStat") else {
                    assert_known(metric, &["Id", "Expression", "Label"]);
                    expression = member(metric, "Expression");
                    continue;
                };
                assert_known(metric, &["Id", "MetricStat", "ReturnData"]);
                assert_known(stat, &["Metric", "Period", "Stat"]);
                assert_eq!(member(metric, "ReturnData"), "false");
                assert_known(&stat["Metric"], &["Namespace", "MetricName", "Dimensions"]);
                let period = number(stat, "Period") as u64;
                let query = Query::parse(&stat["Metric"], &member(stat, "Stat"), period);
                queries.insert(member(metric, "Id"), query);
            }
            assert_ne!(expression, ONLY, "no expression");
        } else {
            known.extend(["Namespace", "MetricName", "Dimensions", "Period"]);
            known.extend(["Statistic", "ExtendedStatistic"]);
            let statistic = ["Statistic", "ExtendedStatistic"];
            let statistic = statistic.iter().find_map(|name| properties.get(*name));
            let statistic = text(statistic.expect("a statistic"));
            let period = number(properties, "Period") as u64;
            queries.insert(
                ONLY.to_owned(),
                Query::parse(properties, &statistic, period),
            );
        }
        assert_known(properties, &known);
        let treatment = member(properties, "TreatMissingData");
        assert_eq!(treatment, "notBreaching", "this is not supported");
        let evaluation_periods = number(properties, "EvaluationPeriods") as usize;
        let datapoints = properties.get("DatapointsToAlarm").map(text);
        let datapoints = datapoints.map(|number| number.parse().unwrap());
        Self {
            operator: member(properties, "ComparisonOperator"),
            threshold: number(properties, "Threshold"),
            evaluation_periods,
            datapoints_to_alarm: datapoints.unwrap_or(evaluation_periods),
            queries,
            expression,
        }
    }

    /// The lengths of the alarm's periods in seconds. CloudWatch requires that they are equal.
    pub fn periods(&self) -> BTreeSet<u64> {
        self.queries.values().map(|query| query.period).collect()
    }

    pub fn metrics(&self) -> impl Iterator<Item = &Metric> {
        self.queries.values().map(|query| &query.metric)
    }

    /// The state after each period. `samples` returns the samples of a metric for each minute.
    pub fn states(
        &self,
        samples: impl Fn(&Metric) -> Vec<Samples>,
        assumptions: Assumptions,
    ) -> Vec<State> {
        let mut series = BTreeMap::new();
        let mut length = 0;
        for (id, query) in &self.queries {
            let minutes = samples(&query.metric);
            let periods = minutes.chunks_exact((query.period / 60) as usize);
            let periods: Vec<Samples> = periods.map(<[_]>::concat).collect();
            length = periods.len();
            let values = periods.iter().map(|samples| query.statistic.of(samples));
            series.insert(id.clone(), values.collect::<Series>());
        }
        let mut state = State::InsufficientData;
        let mut states = Vec::new();
        for newest in 0..length {
            state = self.next(state, newest, &series, assumptions);
            states.push(state);
        }
        states
    }

    /// The state after the newest period.
    fn next(
        &self,
        state: State,
        newest: usize,
        series: &BTreeMap<String, Series>,
        assumptions: Assumptions,
    ) -> State {
        let range = self.evaluation_periods + assumptions.more_data_points;
        let is_published = |age: usize| age > 0 || !assumptions.is_newest_missing;
        let retrieve = |(id, values): (&String, &Series)| {
            let value = |age: usize| {
                let index = newest.checked_sub(age).filter(|_| is_published(age))?;
                values[index]
            };
            (id.clone(), (0..range).rev().map(value).collect())
        };
        let retrieved: BTreeMap<String, Series> = series.iter().map(retrieve).collect();
        let has_data = retrieved.values().flatten().any(Option::is_some);
        let points = if has_data || assumptions.calculates_without_data {
            metric_math::evaluate(&self.expression, &retrieved)
        } else {
            vec![None; range]
        };
        let points: Vec<_> = points
            .iter()
            .map(|value| value.map(|value| self.breaches(value)))
            .collect();
        let uses_dynamodb = self
            .metrics()
            .any(|metric| metric.namespace == "AWS/DynamoDB");
        let treatment = if uses_dynamodb && assumptions.dynamodb_ignores_missing {
            Treatment::Ignore
        } else {
            Treatment::NotBreaching
        };
        next_state(
            state,
            &points,
            self.evaluation_periods,
            self.datapoints_to_alarm,
            treatment,
        )
    }

    fn breaches(&self, value: f64) -> bool {
        match self.operator.as_str() {
            "GreaterThanThreshold" => value > self.threshold,
            "GreaterThanOrEqualToThreshold" => value >= self.threshold,
            other => panic!("{other} is not supported"),
        }
    }
}

/// The state for the data points in the evaluation range, the oldest first: whether each breaches
/// the threshold, or `None` if it is missing.
fn next_state(
    state: State,
    points: &[Option<bool>],
    evaluation_periods: usize,
    datapoints_to_alarm: usize,
    treatment: Treatment,
) -> State {
    let existing: Vec<bool> = points.iter().copied().flatten().collect();
    // If there are enough, the most recent ones decide, whatever `treatment` says.
    let evaluated = &existing[existing.len().saturating_sub(evaluation_periods)..];
    let breaching = evaluated.iter().filter(|breaches| **breaches).count();
    let has_missing = existing.len() < evaluation_periods;
    match treatment {
        _ if breaching >= datapoints_to_alarm => State::Alarm,
        Treatment::Ignore if has_missing && breaching == existing.len() => state,
        _ => State::Ok,
    }
}

/// The two tables of AWS's page about missing data, without the treatments that no alarm has.
#[test]
fn the_states_are_those_of_the_examples_of_aws() {
    use State::{Alarm, Ok};
    let current = State::Alarm;
    let retained = current;
    for (points, m, ignore, not_breaching) in [
        ("0-X-X", 3, Ok, Ok),
        ("0----", 3, Ok, Ok),
        ("-----", 3, retained, Ok),
        ("0XX-X", 3, Alarm, Alarm),
        ("----X", 3, retained, Ok),
        ("X----", 3, retained, Ok),
        ("0-X-X", 2, Alarm, Alarm),
        ("00X0X", 2, Alarm, Alarm),
        ("0-X--", 2, Ok, Ok),
        ("----0", 2, Ok, Ok),
        ("----X", 2, retained, Ok),
    ] {
        let breaches = |point| match point {
            'X' => Some(true),
            '0' => Some(false),
            _ => None,
        };
        let data: Vec<_> = points.chars().map(breaches).collect();
        for (treatment, expected) in [
            (Treatment::Ignore, ignore),
            (Treatment::NotBreaching, not_breaching),
        ] {
            let state = next_state(current, &data, 3, m, treatment);
            assert_eq!(state, expected, "{points}, {m} of 3, {treatment:?}");
        }
    }
}

const ASSUMPTIONS: Assumptions = Assumptions {
    more_data_points: 2,
    is_newest_missing: false,
    dynamodb_ignores_missing: true,
    calculates_without_data: true,
};

/// Of an alarm with one metric, which has this value so many times in each period of a minute.
fn states_of(properties: &str, samples: &[(f64, usize)]) -> Vec<State> {
    let alarm = Alarm::parse(&yaml_serde::from_str(properties).unwrap());
    let samples: Vec<_> = samples.iter().map(|minute| vec![*minute]).collect();
    alarm.states(|_| samples.clone(), ASSUMPTIONS)
}

#[test]
fn a_percentile_is_the_smallest_value_that_this_share_does_not_exceed() {
    for (slow, fast, expected) in [
        (1, 19, 3.0),
        (1, 98, 3.0),
        (1, 99, 1.0),
        (12, 588, 3.0),
        (5, 595, 1.0),
    ] {
        let samples = vec![(3.0, slow), (1.0, fast)];
        let p99 = Statistic::Percentile(99.0).of(&samples);
        assert_eq!(p99, Some(expected), "{samples:?}");
    }
    assert_eq!(Statistic::Percentile(99.0).of(&vec![(3.0, 0)]), None);
}

#[test]
fn percentiles_of_low_counts_are_evaluated() {
    let alarm = "{ Namespace: N, MetricName: M, ExtendedStatistic: p99, Period: 60, Threshold: 1000, \
        ComparisonOperator: GreaterThanThreshold, EvaluationPeriods: 2, TreatMissingData: notBreaching }";
    let states = states_of(alarm, &[(3000.0, 1), (3000.0, 1), (0.0, 0)]);
    assert_eq!(states, [State::Ok, State::Alarm, State::Alarm]);
}

#[test]
fn an_alarm_on_a_metric_of_dynamodb_stays_in_alarm_without_data() {
    let alarm = "{ Namespace: AWS/DynamoDB, MetricName: M, Statistic: Sum, Period: 60, Threshold: 1, \
        ComparisonOperator: GreaterThanThreshold, EvaluationPeriods: 1, TreatMissingData: notBreaching }";
    let samples = [(2.0, 1), (0.0, 0), (0.0, 0), (0.0, 0), (0.0, 0)];
    assert_eq!(states_of(alarm, &samples), [State::Alarm; 5]);
    let other = states_of(&alarm.replace("AWS/DynamoDB", "AWS/Lambda"), &samples);
    assert_eq!(other[4], State::Ok);
}

/// What no alarm of the template uses must fail, and not be ignored.
#[test]
fn unsupported_properties_panic() {
    let alarm = "{ Namespace: N, MetricName: M, Statistic: Sum, Period: 60, Threshold: 1, \
        ComparisonOperator: GreaterThanThreshold, EvaluationPeriods: 1, TreatMissingData: notBreaching }";
    assert_eq!(states_of(alarm, &[(2.0, 1)]), [State::Alarm]);
    for (part, replacement) in [
        ("Threshold: 1,", "Threshold: 1, Unit: Count,"),
        (
            "Statistic: Sum",
            "ExtendedStatistic: p99, EvaluateLowSampleCountPercentile: ignore",
        ),
        ("Statistic: Sum", "Statistic: Average"),
        ("GreaterThanThreshold", "LessThanThreshold"),
        (", TreatMissingData: notBreaching", ""),
        ("notBreaching", "breaching"),
        ("notBreaching", "ignore"),
        ("notBreaching", "missing"),
    ] {
        let changed = alarm.replace(part, replacement);
        assert_ne!(changed, alarm);
        let result = std::panic::catch_unwind(|| states_of(&changed, &[(2.0, 1)]));
        assert!(result.is_err(), "{changed}: {result:?}");
    }
}
