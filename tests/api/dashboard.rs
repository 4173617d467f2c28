//! The alarms and the dashboard use metrics that exist.

use std::collections::BTreeSet;

use workspace_management::{metrics::Metrics, operation::Operation, store::Table};

use crate::cloudformation::{Resource, Stack, text};

fn set<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

#[test]
fn every_alarm_uses_an_existing_metric_and_refers_to_the_runbook() {
    let alarms = Stack::new(&[]).of_type("AWS::CloudWatch::Alarm");
    let mut own_metrics = BTreeSet::new();
    for Resource { properties, .. } in alarms.into_values() {
        let description = properties["AlarmDescription"].as_str().unwrap();
        let reference = "See docs/operations.md, \"Alarms\".";
        assert!(description.ends_with(reference), "{description}");
        assert_eq!(properties["TreatMissingData"], "notBreaching");
        if properties.get("Namespace").map(text).as_deref() == Some("AWS::StackName") {
            own_metrics.insert(text(&properties["MetricName"]));
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
    let resources = Stack::new(&[]).resources();
    let body = text(&resources["OperatorDashboard"].properties["DashboardBody"]);
    let dashboard: serde_json::Value = serde_json::from_str(&body).unwrap();
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
