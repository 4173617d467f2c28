//! Which state each alarm of the template takes for given traffic.
//!
//! `cloudwatch.rs` has the rules and their sources. What AWS leaves open must not matter, so each
//! scenario runs with every combination of [`assumptions`].

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    cloudformation::{Stack, text},
    cloudwatch::{Alarm, Assumptions, Metric, Samples, State},
};

/// What happens in a minute.
#[derive(Debug, Clone, Copy)]
struct Minute {
    /// All requests, including those below.
    requests: usize,
    /// Requests to which the function responds with a 5xx.
    failed: usize,
    /// Requests during which the function ends or exceeds its timeout.
    crashed: usize,
    /// Requests that Lambda rejects.
    throttled: usize,
    /// Requests that take 3 seconds. The others take 50 milliseconds.
    slow: usize,
    unauthenticated: usize,
    /// The written units of a table, or of an index of a table.
    written: Option<(&'static str, f64)>,
}

type Traffic = Vec<Minute>;

const SILENCE: Minute = Minute {
    requests: 0,
    failed: 0,
    crashed: 0,
    throttled: 0,
    slow: 0,
    unauthenticated: 0,
    written: None,
};

/// A minute with this number of requests that succeed.
fn healthy(requests: usize) -> Minute {
    Minute {
        requests,
        ..SILENCE
    }
}

/// Half an hour with one request in every `interval` minutes.
fn every(interval: usize, request: Minute) -> Traffic {
    let is_request = |minute: usize| minute.is_multiple_of(interval);
    let minutes = (0..30).map(|minute| if is_request(minute) { request } else { SILENCE });
    minutes.collect()
}

/// What AWS leaves open about CloudWatch, and how periods and traffic are aligned.
#[derive(Debug, Clone, Copy)]
struct Conditions {
    cloudwatch: Assumptions,
    /// Minutes from the start of a period until the traffic begins.
    phase: usize,
    /// Whether a metric that counts errors has no sample for a success, instead of a zero.
    counts_only_errors: bool,
}

fn assumptions() -> impl Iterator<Item = Conditions> {
    (0..3 * 2 * 2 * 3 * 2).map(|number| {
        let is_odd = number / 3 % 2 == 1;
        Conditions {
            phase: [0, 2, 4][number % 3],
            counts_only_errors: is_odd,
            cloudwatch: Assumptions {
                // No alarm combines metrics of DynamoDB with those that count errors.
                dynamodb_ignores_missing: is_odd,
                is_newest_missing: number / 6 % 2 == 1,
                more_data_points: [1, 2, 5][number / 12 % 3],
                calculates_without_data: number / 36 == 1,
            },
        }
    })
}

/// The samples of a metric in a minute.
fn samples(metric: &Metric, minute: &Minute, counts_only_errors: bool) -> Samples {
    let errors = |errors: usize, all: usize| {
        let successes = if counts_only_errors { 0 } else { all - errors };
        vec![(1.0, errors), (0.0, successes)]
    };
    let dimensions = metric.dimensions.iter();
    let dimensions: Vec<_> = dimensions
        .map(|(name, value)| (&**name, &**value))
        .collect();
    match (&*metric.namespace, &*metric.name, &dimensions[..]) {
        ("AWS/ApiGateway", name, [("ApiId", "Api")]) => match name {
            "Count" => vec![(1.0, minute.requests)],
            "5xx" => errors(
                minute.failed + minute.crashed + minute.throttled,
                minute.requests,
            ),
            "Latency" => vec![(50.0, minute.requests - minute.slow), (3000.0, minute.slow)],
            _ => panic!("unknown metric {metric:?}"),
        },
        ("AWS/Lambda", "Errors", [("FunctionName", "Function")]) => {
            errors(minute.crashed, minute.requests - minute.throttled)
        }
        ("AWS/Lambda", "Throttles", [("FunctionName", "Function")]) => {
            errors(minute.throttled, minute.requests)
        }
        ("AWS::StackName", "Unauthenticated", []) => vec![(1.0, minute.unauthenticated)],
        ("AWS/DynamoDB", "ConsumedWriteCapacityUnits", [("TableName", table), rest @ ..]) => {
            let name = match rest {
                [] => (*table).to_owned(),
                [("GlobalSecondaryIndexName", index)] => format!("{table}/{index}"),
                _ => panic!("unknown metric {metric:?}"),
            };
            let written = minute.written.filter(|(target, _)| *target == name);
            written.map(|(_, units)| (units, 1)).into_iter().collect()
        }
        _ => panic!("unknown metric {metric:?}"),
    }
}

fn alarms() -> BTreeMap<String, Alarm> {
    let alarms = Stack::new(&[])
        .of_type("AWS::CloudWatch::Alarm")
        .into_iter();
    alarms
        .map(|(name, resource)| (name, Alarm::parse(&resource.properties)))
        .collect()
}

/// The states of an alarm after each period, for traffic after silence.
fn states(alarm: &Alarm, traffic: &[Minute], conditions: Conditions) -> Vec<State> {
    let silence = vec![SILENCE; 20 + conditions.phase];
    let minutes = [&silence[..], traffic].concat();
    let samples = |metric: &Metric| {
        let minutes = minutes.iter();
        let minutes = minutes.map(|minute| samples(metric, minute, conditions.counts_only_errors));
        minutes.collect()
    };
    alarm.states(samples, conditions.cloudwatch)
}

/// Every alarm must end in OK: without a fault, and after one. Only the alarm on metrics of DynamoDB
/// may have no state before the first write.
fn assert_ends_ok(description: &str, traffic: &[Minute]) {
    for (name, alarm) in alarms() {
        for conditions in assumptions().filter(|conditions| conditions.phase == 0) {
            let states = states(&alarm, traffic, conditions);
            let is_unwritten = name == "WrittenUnitsAlarm"
                && !conditions.cloudwatch.calculates_without_data
                && traffic.iter().all(|minute| minute.written.is_none());
            let last = *states.last().unwrap();
            assert!(
                last == State::Ok || is_unwritten && last == State::InsufficientData,
                "{description}: {name}, {conditions:?}: {states:?}"
            );
        }
    }
}

#[test]
fn every_period_has_5_minutes() {
    let alarms = alarms();
    assert!(alarms.len() >= 6, "{alarms:?}");
    for (name, alarm) in alarms {
        assert_eq!(alarm.periods(), [300].into(), "{name}");
    }
}

/// Faults, and the alarm that must notice each. When the fault is over or traffic ends, every alarm
/// returns to OK.
#[test]
fn faults_raise_an_alarm_that_ends_with_the_fault() {
    let failed = |failed, requests| Minute {
        failed,
        ..healthy(requests)
    };
    let crashed = |requests| Minute {
        crashed: requests,
        ..healthy(requests)
    };
    // 2% of requests are slow, or one of them.
    let slow = |requests: usize| Minute {
        slow: (requests / 50).max(1),
        ..healthy(requests)
    };
    let throttled = Minute {
        throttled: 5,
        ..healthy(20)
    };
    let unauthenticated = Minute {
        unauthenticated: 30,
        ..healthy(30)
    };
    let written = |target, units| Minute {
        written: Some((target, units)),
        ..healthy(10)
    };
    let per_second = |units: usize| 60.0 * units as f64;
    let rows: Vec<(&str, &str, Traffic)> = vec![
        (
            "3 of 3 requests fail",
            "ServerErrorsAlarm",
            vec![failed(3, 3)],
        ),
        (
            "8 of 10 requests fail",
            "ServerErrorsAlarm",
            vec![failed(8, 10)],
        ),
        (
            "3% of 10,000 requests fail",
            "ServerErrorsAlarm",
            vec![failed(60, 2000); 5],
        ),
        (
            "they fail in one minute",
            "ServerErrorsAlarm",
            vec![failed(300, 10_000)],
        ),
        (
            "every call crashes, 20 per minute",
            "ServerErrorsAlarm",
            vec![crashed(20); 10],
        ),
        (
            "every call crashes, 20 per minute",
            "RepeatedErrorsAlarm",
            vec![crashed(20); 15],
        ),
        (
            "every call crashes, one per minute",
            "ServerErrorsAlarm",
            vec![crashed(1); 10],
        ),
        (
            "every call crashes, one in 5 minutes",
            "RepeatedErrorsAlarm",
            every(5, crashed(1)),
        ),
        (
            "every call crashes, one in 10 minutes",
            "RepeatedErrorsAlarm",
            every(10, crashed(1)),
        ),
        (
            "every call fails, one in 10 minutes",
            "RepeatedErrorsAlarm",
            every(10, failed(1, 1)),
        ),
        (
            "1 of 5 requests fails in every period",
            "RepeatedErrorsAlarm",
            every(5, failed(1, 5)),
        ),
        (
            "2 of 114 requests fail in every period",
            "RepeatedErrorsAlarm",
            every(5, failed(2, 114)),
        ),
        (
            "1% of calls crash",
            "RepeatedErrorsAlarm",
            vec![
                Minute {
                    requests: 100,
                    ..crashed(1)
                };
                15
            ],
        ),
        (
            "p99 of 3 s, 20 requests per period",
            "LatencyAlarm",
            every(5, slow(20)),
        ),
        (
            "p99 of 3 s, 60 requests per period",
            "LatencyAlarm",
            every(5, slow(60)),
        ),
        (
            "p99 of 3 s, 600 requests per period",
            "LatencyAlarm",
            vec![slow(120); 30],
        ),
        (
            "p99 of 3 s, 6,000 requests per period",
            "LatencyAlarm",
            vec![slow(1200); 30],
        ),
        (
            "Lambda rejects requests",
            "FunctionThrottlesAlarm",
            vec![throttled; 10],
        ),
        (
            "requests have no valid key",
            "UnauthenticatedAlarm",
            vec![unauthenticated; 10],
        ),
        (
            "a table is at its ceiling",
            "WrittenUnitsAlarm",
            vec![written("ModelsTable", per_second(500)); 20],
        ),
        (
            "anonymous callers add as many models as they may, without a ceiling",
            "WrittenUnitsAlarm",
            vec![written("ModelsTable", per_second(2000)); 20],
        ),
        (
            "an index uses more units than the alarm allows",
            "WrittenUnitsAlarm",
            vec![written("TeamMembersTable/by_user", per_second(101)); 20],
        ),
    ];
    let alarms = alarms();
    let mut raised = BTreeSet::new();
    for (description, name, fault) in &rows {
        let over = [&fault[..], &[SILENCE; 10]].concat();
        for conditions in assumptions() {
            let states = states(&alarms[*name], &over, conditions);
            let is_raised = states.contains(&State::Alarm);
            assert!(
                is_raised,
                "{description}: {name}, {conditions:?}: {states:?}"
            );
        }
        raised.insert((*name).to_owned());
        let silence = [&fault[..], &[SILENCE; 75]].concat();
        assert_ends_ok(&format!("{description}, then traffic ends"), &silence);
        let fixed = [&fault[..], &[healthy(7); 75]].concat();
        assert_ends_ok(&format!("{description}, then it is fixed"), &fixed);
    }
    let names: BTreeSet<_> = alarms.into_keys().collect();
    assert_eq!(raised, names, "each alarm needs a scenario");
}

/// Traffic for which no alarm is ever in ALARM.
#[test]
fn single_failures_and_silence_raise_no_alarm() {
    let night = |request: Minute| {
        let mut traffic: Traffic = [every(10, healthy(1)), every(3, healthy(1))].concat();
        traffic.push(request);
        traffic.extend(every(10, healthy(1)));
        traffic
    };
    let failed = Minute {
        failed: 1,
        ..healthy(1)
    };
    let crashed = Minute {
        crashed: 1,
        slow: 1,
        ..healthy(1)
    };
    let slow = Minute {
        slow: 1,
        ..healthy(1)
    };
    let throttled = Minute {
        throttled: 1,
        ..healthy(1)
    };
    // The scheduled `doctor` sends one request without a key.
    let doctor = Minute {
        unauthenticated: 1,
        ..healthy(1)
    };
    let busy = |failed| Minute {
        failed,
        written: Some(("TeamsTable", 1200.0)),
        ..healthy(1200)
    };
    let import = Minute {
        written: Some(("ModelsTable", 30_000.0)),
        ..healthy(150)
    };
    let rows: Vec<(&str, Traffic)> = vec![
        ("no calls at all", vec![SILENCE; 240]),
        ("one failure in a quiet night", night(failed)),
        (
            "two failures in half an hour",
            [&[failed][..], &[SILENCE; 14], &[failed]].concat(),
        ),
        ("one crash in a quiet night", night(crashed)),
        ("one slow request in a quiet night", night(slow)),
        ("one rejected request in a quiet night", night(throttled)),
        (
            "the only request of a night fails",
            [&[failed][..], &[SILENCE; 240]].concat(),
        ),
        (
            "the only request of a night crashes",
            [&[crashed][..], &[SILENCE; 240]].concat(),
        ),
        (
            "one failure in 25 requests",
            [&[healthy(12); 2][..], &[failed]].concat(),
        ),
        ("only the scheduled check calls", every(15, doctor)),
        ("a busy hour", vec![busy(0); 60]),
        (
            "a busy hour in which 0.5% of requests fail",
            vec![busy(6); 60],
        ),
        ("an import at the ceiling for a minute", vec![import]),
    ];
    for (description, traffic) in rows {
        assert_ends_ok(description, &[&traffic[..], &[SILENCE; 90]].concat());
        for (name, alarm) in alarms() {
            for conditions in assumptions() {
                let states = states(&alarm, &traffic, conditions);
                let is_raised = states.contains(&State::Alarm);
                assert!(
                    !is_raised,
                    "{description}: {name}, {conditions:?}: {states:?}"
                );
            }
        }
    }
}

#[test]
fn every_alarm_refers_to_its_instructions() {
    let alarms = Stack::new(&[]).of_type("AWS::CloudWatch::Alarm");
    for alarm in alarms.into_values() {
        let description = text(&alarm.properties["AlarmDescription"]);
        let reference = "See docs/operations.md, \"Alarms\".";
        assert!(description.ends_with(reference), "{description}");
    }
}

/// Otherwise, a high ceiling would hide floods.
#[test]
fn the_alarms_do_not_depend_on_the_ceiling() {
    let alarms = |ceiling| {
        let stack = Stack::new(&[("MaxWriteUnits", ceiling)]);
        let alarms = stack.of_type("AWS::CloudWatch::Alarm").into_values();
        alarms.map(|alarm| alarm.properties).collect::<Vec<_>>()
    };
    assert_eq!(alarms("500"), alarms("39999"));
}

/// The alarm on written units must not miss a table or an index that the operations write.
#[test]
fn the_alarm_on_written_units_counts_every_table_and_index() {
    let mut tables = Stack::new(&[]).of_type("AWS::DynamoDB::Table");
    // Only operators write to these.
    tables.retain(|id, _| !matches!(&**id, "OrganizationsTable" | "KeysTable"));
    let mut expected = BTreeSet::new();
    for (id, resource) in &tables {
        let table = ("TableName".to_owned(), id.clone());
        expected.insert(vec![table.clone()]);
        for index in resource.indexes() {
            let name = index["IndexName"].as_str().unwrap().to_owned();
            let index = ("GlobalSecondaryIndexName".to_owned(), name);
            expected.insert(vec![table.clone(), index]);
        }
    }
    let alarm = &alarms()["WrittenUnitsAlarm"];
    let counted: BTreeSet<_> = alarm
        .metrics()
        .map(|metric| metric.dimensions.clone())
        .collect();
    assert_eq!(counted, expected);
}
