//! What was measured, as a table, as JSON, and as a picture for the README.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use anyhow::{Result, anyhow};
use plotters::prelude::*;
use serde_json::{Value, json};

/// Figures by what was measured and of what, in the order in which they came.
#[derive(Default)]
pub(crate) struct Report(Vec<(String, Vec<(String, Figures)>)>);

#[derive(Clone)]
enum Figures {
    Times(Vec<Duration>),
    Bytes(u64),
    /// The most that was counted.
    Count(usize),
}

impl Report {
    pub(crate) fn time(&mut self, figure: &str, subject: &str, time: Duration) {
        if let Figures::Times(times) = self.entry(figure, subject, Figures::Times(Vec::new())) {
            times.push(time);
        }
    }

    pub(crate) fn size(&mut self, figure: &str, subject: &str, bytes: u64) {
        if let Figures::Bytes(most) = self.entry(figure, subject, Figures::Bytes(0)) {
            *most = bytes.max(*most);
        }
    }

    pub(crate) fn count(&mut self, figure: &str, subject: &str, count: usize) {
        if let Figures::Count(most) = self.entry(figure, subject, Figures::Count(0)) {
            *most = count.max(*most);
        }
    }

    fn entry(&mut self, figure: &str, subject: &str, empty: Figures) -> &mut Figures {
        let subjects = find(&mut self.0, figure, Vec::new);
        find(subjects, subject, || empty)
    }

    fn rows(&self) -> Vec<Row<'_>> {
        let mut rows = Vec::new();
        for (figure, subjects) in &self.0 {
            let base = subjects
                .first()
                .map(|(_, figures)| middle(figures))
                .unwrap_or(1.0);
            for (subject, figures) in subjects {
                let (median, p99) = (middle(figures), high(figures));
                let unit = match figures {
                    Figures::Times(_) => "ms",
                    Figures::Bytes(_) => "MiB",
                    Figures::Count(_) => "",
                };
                rows.push(Row {
                    figure,
                    subject,
                    median,
                    p99,
                    unit,
                    ratio: median / base,
                });
            }
        }
        rows
    }

    pub(crate) fn print(&self) {
        println!(
            "{:<40} {:<26} {:>9} {:>9}  {:<4} {:>7}",
            "", "", "median", "p99", "", "ratio"
        );
        let mut last = "";
        for row in self.rows() {
            let figure = if row.figure == last { "" } else { row.figure };
            last = row.figure;
            let number = |number: f64| {
                if row.unit.is_empty() {
                    format!("{number:.0}")
                } else {
                    format!("{number:.3}")
                }
            };
            let p99 = row.p99.map(number).unwrap_or_default();
            println!(
                "{figure:<40} {:<26} {:>9} {p99:>9}  {:<4} {:>7.2}",
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
            let value = json!({ "median": row.median, "p99": row.p99, "unit": row.unit, "ratio": row.ratio });
            figures
                .entry(row.figure)
                .or_default()
                .insert(row.subject, value);
        }
        fs::write(
            folder.join("benchmark.json"),
            serde_json::to_string_pretty(&figures)? + "\n",
        )?;
        self.draw(&folder.join("benchmark.svg"))
            .map_err(|error| anyhow!("{error}"))
    }

    fn draw(&self, file: &Path) -> Result<(), Box<dyn std::error::Error>> {
        let figures = [
            "start to ready, wall",
            "CPU until the first answer",
            "first answer, wall",
            "warm, create_logging_instance",
        ];
        let programs = [
            ("baseline-hello", RGBColor(148, 163, 184)),
            ("ours", RGBColor(5, 150, 105)),
            ("baseline-typical", RGBColor(217, 119, 6)),
        ];
        let area = SVGBackend::new(file, (840, 380)).into_drawing_area();
        area.fill(&WHITE)?;
        let rows = self.rows();
        let value = |figure: &str, program: &str| {
            rows.iter()
                .find(|row| row.figure == figure && row.subject == program)
                .map_or(0.0, |row| row.median)
        };
        let label = |size: i32, color: &RGBColor| ("sans-serif", size).into_font().color(color);
        let most = figures
            .iter()
            .flat_map(|figure| programs.iter().map(|(program, _)| value(figure, program)))
            .fold(1.0, f64::max);
        area.draw(&Text::new(
            "milliseconds, median; logarithmic scale",
            (16, 14),
            label(14, &RGBColor(71, 85, 105)),
        ))?;
        let mut y = 44;
        for figure in figures {
            area.draw(&Text::new(figure, (16, y), label(15, &BLACK)))?;
            y += 20;
            for (program, color) in &programs {
                let value = value(figure, program);
                let width = ((value / 0.05).ln() / (most / 0.05).ln() * 560.0).max(2.0) as i32;
                area.draw(&Rectangle::new(
                    [(140, y), (140 + width, y + 14)],
                    color.filled(),
                ))?;
                area.draw(&Text::new(*program, (32, y), label(13, &BLACK)))?;
                area.draw(&Text::new(
                    format!("{value:.2}"),
                    (148 + width, y),
                    label(13, &BLACK),
                ))?;
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
    ratio: f64,
}

fn find<'a, T>(
    entries: &'a mut Vec<(String, T)>,
    name: &str,
    new: impl FnOnce() -> T,
) -> &'a mut T {
    let index = entries
        .iter()
        .position(|(entry, _)| entry == name)
        .unwrap_or_else(|| {
            entries.push((name.to_owned(), new()));
            entries.len() - 1
        });
    &mut entries[index].1
}

fn percentile(times: &[Duration], part: f64) -> f64 {
    let mut times = times.to_vec();
    times.sort_unstable();
    let index = ((times.len() - 1) as f64 * part).round() as usize;
    times
        .get(index)
        .map_or(0.0, |time| time.as_secs_f64() * 1000.0)
}

fn middle(figures: &Figures) -> f64 {
    match figures {
        Figures::Times(times) => percentile(times, 0.5),
        Figures::Bytes(bytes) => *bytes as f64 / (1024.0 * 1024.0),
        Figures::Count(count) => *count as f64,
    }
}

fn high(figures: &Figures) -> Option<f64> {
    match figures {
        Figures::Times(times) => Some(percentile(times, 0.99)),
        _ => None,
    }
}
