//! The figures, as Markdown tables.

use std::{collections::BTreeMap, time::Duration};

use crate::bench::{CAREFUL, OURS, Program, TYPICAL};

/// The 99th percentile is only reported for at least this many measurements.
const MIN_MEASUREMENTS_FOR_P99: usize = 100;

/// The values by table, figure and program.
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

    /// Markdown tables. The last rows are the ratios of the baselines to the function.
    pub(crate) fn markdown(&self, programs: &[Program]) -> Vec<String> {
        let mut tables = Vec::new();
        for (table, figures) in self.statistics() {
            let titles: Vec<&str> = figures.keys().map(String::as_str).collect();
            let mut text = format!("| {table} | {} |\n", titles.join(" | "));
            text += &format!("|{}", "---|".repeat(titles.len() + 1));
            for Program { name, .. } in programs {
                let cells = figures.values().map(|it| format!("{:.2}", it[name]));
                text += &row(name, cells);
            }
            for baseline in [CAREFUL, TYPICAL] {
                let ratios = figures.values().map(|it| it[baseline] / it[OURS]);
                let cells = ratios.map(|it| format!("{it:.1}"));
                text += &row(&format!("{baseline} ÷ {OURS}"), cells);
            }
            tables.push(text);
        }
        tables
    }
}

fn row(name: &str, cells: impl Iterator<Item = String>) -> String {
    format!("\n| {name} | {} |", cells.collect::<Vec<_>>().join(" | "))
}

/// Replaces each table of a Markdown document with the one of `tables` that has the same first cell.
pub(crate) fn replace_tables(document: &str, tables: &[String]) -> String {
    fn first_cell(text: &str) -> Option<&str> {
        Some(text.strip_prefix('|')?.split_once('|')?.0)
    }
    let paragraphs = document.split("\n\n").map(|paragraph| {
        let mut tables = tables.iter().map(String::as_str);
        let replacement = tables.find(|table| first_cell(table) == first_cell(paragraph));
        replacement.unwrap_or(paragraph)
    });
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

/// A percentile, rounded to three decimals.
pub(crate) fn percentile(values: &[f64], fraction: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let index = ((values.len() - 1) as f64 * fraction).round() as usize;
    (values[index] * 1000.0).round() / 1000.0
}
