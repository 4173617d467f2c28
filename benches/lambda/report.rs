//! The figures, as a table, as JSON, and as a chart for the README.

use std::{collections::BTreeMap, error::Error, fs, path::Path, time::Duration};

use anyhow::{Result, anyhow};
use plotters::{coord::Shift, prelude::*};
use serde_json::{Value, json};

use crate::{
    bench::{HELLO, OURS, TYPICAL},
    lambda_cpu::{MEMORY_SIZES, figure},
};

/// The figures of the chart, for each memory size.
const CHART_FIGURES: [&str; 3] = ["start to first response", "first response", "warm response"];

/// The programs of the chart, and the colors of their bars.
const CHART_PROGRAMS: [(&str, RGBColor); 3] = [
    (HELLO, RGBColor(148, 163, 184)),
    (OURS, RGBColor(5, 150, 105)),
    (TYPICAL, RGBColor(217, 119, 6)),
];

/// The measurements of each figure and subject, in the order in which they were first added. A
/// subject is a program, an operation or a size.
#[derive(Default)]
pub(crate) struct Report(Vec<(String, Vec<(String, Measurements)>)>);

enum Measurements {
    Times(Vec<Duration>),
    /// The largest size.
    Bytes(u64),
    /// The largest count.
    Count(usize),
    /// A price in USD.
    Price(f64),
}

/// A statistic of a figure. Sizes, counts and prices have only a median, which is their value.
#[derive(Clone, Copy)]
pub(crate) enum Statistic {
    Median,
    P99,
}

impl Report {
    pub(crate) fn time(&mut self, figure: &str, subject: &str, time: Duration) {
        let empty = Measurements::Times(Vec::new());
        if let Measurements::Times(times) = self.entry(figure, subject, empty) {
            times.push(time);
        }
    }

    pub(crate) fn size(&mut self, figure: &str, subject: &str, bytes: u64) {
        let empty = Measurements::Bytes(0);
        if let Measurements::Bytes(max) = self.entry(figure, subject, empty) {
            *max = bytes.max(*max);
        }
    }

    pub(crate) fn count(&mut self, figure: &str, subject: &str, count: usize) {
        let empty = Measurements::Count(0);
        if let Measurements::Count(max) = self.entry(figure, subject, empty) {
            *max = count.max(*max);
        }
    }

    pub(crate) fn price(&mut self, figure: &str, subject: &str, usd: f64) {
        *self.entry(figure, subject, Measurements::Price(usd)) = Measurements::Price(usd);
    }

    /// The mean of times in seconds.
    pub(crate) fn mean(&self, figure: &str, subject: &str) -> f64 {
        match self.measurements(figure, subject) {
            Some(Measurements::Times(times)) => {
                times.iter().sum::<Duration>().as_secs_f64() / times.len() as f64
            }
            _ => f64::NAN,
        }
    }

    /// A statistic in the unit of the figure, or NaN if it was not measured.
    pub(crate) fn value(&self, figure: &str, subject: &str, statistic: Statistic) -> f64 {
        let measurements = self.measurements(figure, subject);
        let value = measurements.and_then(|measurements| match statistic {
            Statistic::Median => Some(measurements.median()),
            Statistic::P99 => measurements.p99(),
        });
        value.unwrap_or(f64::NAN)
    }

    fn measurements(&self, figure: &str, subject: &str) -> Option<&Measurements> {
        let (_, subjects) = self.0.iter().find(|(name, _)| name == figure)?;
        let (_, measurements) = subjects.iter().find(|(name, _)| name == subject)?;
        Some(measurements)
    }

    fn entry(&mut self, figure: &str, subject: &str, empty: Measurements) -> &mut Measurements {
        let subjects = entry(&mut self.0, figure, Vec::new());
        entry(subjects, subject, empty)
    }

    fn rows(&self) -> Vec<Row<'_>> {
        let mut rows = Vec::new();
        for (figure, subjects) in &self.0 {
            let first = subjects.first();
            let base = first.map_or(1.0, |(_, measurements)| measurements.median());
            for (subject, measurements) in subjects {
                let median = measurements.median();
                rows.push(Row {
                    figure,
                    subject,
                    median,
                    p99: measurements.p99(),
                    unit: measurements.unit(),
                    ratio: median / base,
                });
            }
        }
        rows
    }

    pub(crate) fn print(&self) {
        println!(
            "{:<46} {:<26} {:>9} {:>9}  {:<4} {:>7}",
            "", "", "median", "p99", "", "ratio"
        );
        let mut last = "";
        for row in self.rows() {
            let figure = if row.figure == last { "" } else { row.figure };
            last = row.figure;
            let number = |number: f64| match row.unit {
                "" => format!("{number:.0}"),
                "USD" => format!("{number:.5}"),
                _ => format!("{number:.3}"),
            };
            let p99 = row.p99.map(number).unwrap_or_default();
            println!(
                "{figure:<46} {:<26} {:>9} {p99:>9}  {:<4} {:>7.2}",
                row.subject,
                number(row.median),
                row.unit,
                row.ratio,
            );
        }
    }

    /// Writes `benchmark.json` and `benchmark.svg`.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let mut figures = BTreeMap::<&str, BTreeMap<&str, Value>>::new();
        for row in self.rows() {
            let value = json!({
                "median": row.median,
                "p99": row.p99,
                "unit": row.unit,
                "ratio": row.ratio,
            });
            let subjects = figures.entry(row.figure).or_default();
            subjects.insert(row.subject, value);
        }
        let json = serde_json::to_string_pretty(&figures)? + "\n";
        fs::write(folder.join("benchmark.json"), json)?;
        let file = folder.join("benchmark.svg");
        let area = SVGBackend::new(&file, (840, 560)).into_drawing_area();
        self.draw(&area)
            .map_err(|error| anyhow!("cannot draw the chart: {error}"))
    }

    fn draw(&self, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Result<(), Box<dyn Error>> {
        area.fill(&WHITE)?;
        let label = |size: i32, color: &RGBColor| ("sans-serif", size).into_font().color(color);
        let title = "milliseconds with Lambda's CPU share, median; logarithmic scale";
        area.draw(&Text::new(
            title,
            (16, 14),
            label(14, &RGBColor(71, 85, 105)),
        ))?;

        let figures = MEMORY_SIZES.iter().flat_map(|memory| {
            let names = CHART_FIGURES.iter();
            names.map(|name| figure(*memory, name))
        });
        let figures: Vec<String> = figures.collect();
        let median = |figure: &str, program| self.value(figure, program, Statistic::Median);
        let medians = |figure: &String| CHART_PROGRAMS.map(|(program, _)| median(figure, program));
        let max = figures.iter().flat_map(medians).fold(1.0, f64::max);
        let width = |value: f64| ((value / 0.05).ln() / (max / 0.05).ln() * 560.0).max(2.0) as i32;
        let mut y = 44;
        for figure in &figures {
            area.draw(&Text::new(figure.as_str(), (16, y), label(15, &BLACK)))?;
            y += 20;
            for (program, color) in CHART_PROGRAMS {
                let value = median(figure, program);
                let end = 140 + width(value);
                area.draw(&Rectangle::new([(140, y), (end, y + 14)], color.filled()))?;
                area.draw(&Text::new(program, (32, y), label(13, &BLACK)))?;
                let value = format!("{value:.2}");
                area.draw(&Text::new(value, (end + 8, y), label(13, &BLACK)))?;
                y += 18;
            }
            y += 10;
        }
        Ok(area.present()?)
    }
}

struct Row<'a> {
    figure: &'a str,
    subject: &'a str,
    median: f64,
    p99: Option<f64>,
    unit: &'static str,
    /// The median, divided by that of the figure's first subject.
    ratio: f64,
}

impl Measurements {
    fn unit(&self) -> &'static str {
        match self {
            Self::Times(_) => "ms",
            Self::Bytes(_) => "MiB",
            Self::Count(_) => "",
            Self::Price(_) => "USD",
        }
    }

    fn median(&self) -> f64 {
        match self {
            Self::Times(times) => percentile(times, 0.5),
            Self::Bytes(bytes) => *bytes as f64 / (1024.0 * 1024.0),
            Self::Count(count) => *count as f64,
            Self::Price(usd) => *usd,
        }
    }

    /// The 99th percentile of times, or `None` for anything else.
    fn p99(&self) -> Option<f64> {
        match self {
            Self::Times(times) => Some(percentile(times, 0.99)),
            Self::Bytes(_) | Self::Count(_) | Self::Price(_) => None,
        }
    }
}

/// The entry with this name, which is added if there is none.
fn entry<'a, T>(entries: &'a mut Vec<(String, T)>, name: &str, empty: T) -> &'a mut T {
    let existing = entries.iter().position(|(entry, _)| entry == name);
    let index = existing.unwrap_or_else(|| {
        entries.push((name.to_owned(), empty));
        entries.len() - 1
    });
    &mut entries[index].1
}

/// A percentile in milliseconds.
fn percentile(times: &[Duration], fraction: f64) -> f64 {
    let mut times = times.to_vec();
    times.sort_unstable();
    let index = ((times.len() - 1) as f64 * fraction).round() as usize;
    times[index].as_secs_f64() * 1000.0
}
