//! The figures, as Markdown tables and as JSON.

use std::{collections::BTreeMap, time::Duration};

use anyhow::Result;

use crate::bench::{OURS, TYPICAL};

/// The 99th percentile is only reported for at least this many measurements.
const MIN_MEASUREMENTS_FOR_P99: usize = 100;

/// The values by table, row and column. A row is a figure, and a column is a program.
type Tables<T> = BTreeMap<String, BTreeMap<String, BTreeMap<String, T>>>;

/// The measurements of all figures.
#[derive(Default)]
pub(crate) struct Report(Tables<Vec<f64>>);

impl Report {
    pub(crate) fn time(&mut self, table: &str, figure: &str, column: &str, time: Duration) {
        let milliseconds = time.as_secs_f64() * 1000.0;
        self.add(table, format!("{figure}, ms"), column, milliseconds);
    }

    pub(crate) fn bytes(&mut self, table: &str, figure: &str, column: &str, bytes: u64) {
        let mebibytes = bytes as f64 / (1024.0 * 1024.0);
        self.add(table, format!("{figure}, MiB"), column, mebibytes);
    }

    fn add(&mut self, table: &str, row: String, column: &str, value: f64) {
        let rows = self.0.entry(table.to_owned()).or_default();
        let columns = rows.entry(row).or_default();
        columns.entry(column.to_owned()).or_default().push(value);
    }

    /// The median of each figure, and the 99th percentile of each figure with enough measurements.
    fn statistics(&self) -> Tables<f64> {
        let mut statistics = Tables::<f64>::new();
        for (table, rows) in &self.0 {
            let statistics = statistics.entry(table.clone()).or_default();
            for (row, columns) in rows {
                for (column, values) in columns {
                    let mut set = |row: String, value| {
                        let columns = statistics.entry(row).or_default();
                        columns.insert(column.clone(), value);
                    };
                    set(row.clone(), percentile(values, 0.5));
                    if values.len() >= MIN_MEASUREMENTS_FOR_P99 {
                        set(format!("{row}, p99"), percentile(values, 0.99));
                    }
                }
            }
        }
        statistics
    }

    /// Markdown tables. The last column is the ratio of the typical handler to the function.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::new();
        for (table, rows) in self.statistics() {
            let Some(columns) = rows.values().next() else {
                continue;
            };
            let mut names: Vec<&str> = columns.keys().map(String::as_str).collect();
            names.push("typical ÷ workspace-management");
            text += &format!("\n| {table} | {} |\n", names.join(" | "));
            text += &format!("|{}\n", "---|".repeat(names.len() + 1));
            for (row, values) in &rows {
                let mut cells: Vec<String> = values.values().map(|it| format!("{it:.2}")).collect();
                cells.push(format!("{:.1}", values[TYPICAL] / values[OURS]));
                text += &format!("| {row} | {} |\n", cells.join(" | "));
            }
        }
        text
    }

    pub(crate) fn json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(&self.statistics())? + "\n")
    }
}

/// A percentile, rounded to three decimals.
pub(crate) fn percentile(values: &[f64], fraction: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let index = ((values.len() - 1) as f64 * fraction).round() as usize;
    (values[index] * 1000.0).round() / 1000.0
}
