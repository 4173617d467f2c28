//! The alarms and the dashboard use metrics that exist.

use std::collections::BTreeSet;

use workspace_management::{metrics::Metrics, operation::Operation, store::Table};
use yaml_serde::Value;

use crate::template::template;

fn set<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

#[test]
fn every_alarm_uses_an_existing_metric_and_refers_to_the_runbook() {
    let template = template();
    let resources = template["Resources"].as_mapping().unwrap().values();
    let alarms = resources.filter(|resource| resource["Type"] == "AWS::CloudWatch::Alarm");
    let mut own_metrics = BTreeSet::new();
    for alarm in alarms {
        let properties = &alarm["Properties"];
        let description = properties["AlarmDescription"].as_str().unwrap();
        let reference = "See docs/operations.md, \"Alarms\".";
        assert!(description.ends_with(reference), "{description}");
        assert_eq!(properties["TreatMissingData"], "notBreaching");
        let namespace = properties["Namespace"].as_str();
        if namespace.is_none_or(|namespace| !namespace.starts_with("AWS/")) {
            own_metrics.extend(properties["MetricName"].as_str().map(str::to_owned));
        }
    }
    assert!(!own_metrics.is_empty());
    assert!(
        own_metrics.is_subset(&set(Metrics::names())),
        "{own_metrics:?}"
    );
}

/// The rows of a widget's metrics, without abbreviations: `.` repeats the value above, and `...`
/// repeats all values before the others.
fn metric_rows(widget: &serde_json::Value) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let metrics = widget["properties"]["metrics"].as_array();
    for row in metrics.into_iter().flatten() {
        let words = row.as_array().unwrap().iter();
        let words: Vec<_> = words.filter_map(|word| word.as_str()).collect();
        let previous = rows.last().cloned().unwrap_or_default();
        let row = match words.split_first() {
            Some((&"...", rest)) => {
                let kept = previous[..previous.len() - rest.len()].iter().cloned();
                kept.chain(rest.iter().map(|word| (*word).to_owned()))
                    .collect()
            }
            _ => {
                let word = |(index, word): (usize, &&str)| match *word {
                    "." => previous[index].clone(),
                    word => word.to_owned(),
                };
                words.iter().enumerate().map(word).collect()
            }
        };
        rows.push(row);
    }
    rows
}

#[test]
fn the_dashboard_shows_every_metric_operation_and_table() {
    let template = template();
    let body = &template["Resources"]["OperatorDashboard"]["Properties"]["DashboardBody"];
    let dashboard: serde_json::Value = serde_json::from_str(&substituted(body)).unwrap();
    let (mut metrics, mut operations, mut tables) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for widget in dashboard["widgets"].as_array().unwrap() {
        for row in metric_rows(widget) {
            match row[0].as_str() {
                "AWS::StackName" => {
                    metrics.insert(row[1].clone());
                    operations.extend(row.get(3).cloned());
                }
                "AWS/DynamoDB" => {
                    tables.insert(row[3].clone());
                }
                _ => {}
            }
        }
    }
    assert_eq!(metrics, set(Metrics::names()));
    let names = Operation::ALL.iter().map(|operation| operation.name());
    assert_eq!(operations, set(names));
    assert_eq!(tables, set(Table::ALL.iter().map(|table| table.logical_id)));
}

/// The text of a `!Sub`, with the name of each substitution instead of its value. The name must
/// exist in the template.
fn substituted(value: &Value) -> String {
    let Value::Tagged(tagged) = value else {
        panic!("{value:?} is not a !Sub");
    };
    let mut text = tagged.value.as_str().unwrap().to_owned();
    let template = template();
    while let Some((before, rest)) = text.split_once("${") {
        let (name, after) = rest.split_once('}').unwrap();
        let exists = name.starts_with("AWS::") || !template["Resources"][name].is_null();
        assert!(exists, "{name} does not exist");
        text = format!("{before}{name}{after}");
    }
    text
}
