//! The tables and sentences of the documentation that contain figures.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};

use crate::{
    bench::{HELLO, OURS, SDK, TYPICAL},
    growth::{BY_MEMBERS, MEMBER_COUNTS, OWN_TIME_BY_MEMBERS, REQUESTS_BY_MEMBERS},
    lambda_cpu::{MEMORY_SIZES, figure},
    report::{Report, Statistic},
};

/// A row of a table: its label, the figure, and which of its statistics.
type Row = (&'static str, String, Statistic);

/// The comment after a generated part. The one before it also has the part's name.
const END: &str = "<!-- end of figures -->";

/// Replaces the generated parts of the README and of two files in `docs/`.
pub(crate) fn write(root: &Path, report: &Report) -> Result<()> {
    let speed = [
        ("start to ready", "start to ready, wall", Statistic::Median),
        (
            "CPU until the first response",
            "CPU until the first response",
            Statistic::Median,
        ),
        (
            "first response, once ready",
            "first response, wall",
            Statistic::Median,
        ),
        (
            "warm response, median",
            "warm, create_logging_instance",
            Statistic::Median,
        ),
        (
            "warm response, p99",
            "warm, create_logging_instance",
            Statistic::P99,
        ),
    ];
    let size = ["peak memory after the first response", "binary", "zip"];
    let speed = speed.map(|(label, figure, statistic)| (label, figure.to_owned(), statistic));
    let size = size.map(|figure| (figure, figure.to_owned(), Statistic::Median));
    let all = [HELLO, SDK, OURS, TYPICAL];
    let mut parts = vec![
        (
            "speed".to_owned(),
            table(report, "milliseconds", &all, 2, &speed),
        ),
        ("size".to_owned(), table(report, "MiB", &all, 1, &size)),
    ];
    for memory in MEMORY_SIZES {
        let (times, price) = lambda_rows(memory);
        let columns = [HELLO, OURS, TYPICAL];
        let heading = format!("{memory} MB, milliseconds");
        let times = table(report, &heading, &columns, 2, &times);
        let price = table(report, &format!("{memory} MB, USD"), &columns, 4, &price);
        parts.push((format!("{memory} MB"), format!("{times}\n{price}")));
    }
    let benchmarks = root.join("docs/benchmarks.md");
    for (name, text) in parts {
        replace(&benchmarks, &name, &text)?;
    }
    let architecture = root.join("docs/architecture.md");
    replace(&architecture, "growth", &growth_table(report))?;
    replace(&root.join("README.md"), "summary", &summary(report))
}

/// The rows with times, and the one with the price.
fn lambda_rows(memory: u64) -> (Vec<Row>, Vec<Row>) {
    use Statistic::{Median, P99};
    let row = |label, name, statistic| (label, figure(memory, name), statistic);
    let times = vec![
        row("start to first response", "start to first response", Median),
        row("first response, once ready", "first response", Median),
        row(
            "start to first response, if the start is limited too",
            "start to first response, limited start",
            Median,
        ),
        row("warm response, median", "warm response", Median),
        row("warm response, p99", "warm response", P99),
        row("CPU of a warm response", "CPU of a warm response", Median),
        row("warm response, busy, median", "warm response, busy", Median),
        row("warm response, busy, p99", "warm response, busy", P99),
    ];
    let price = row("a million requests", "a million requests", Median);
    (times, vec![price])
}

/// A table with a column for each program, and how ours compares with the first and the last one.
fn table(
    report: &Report,
    heading: &str,
    programs: &[&str],
    decimals: usize,
    rows: &[Row],
) -> String {
    let mut lines = vec![String::new(), String::new()];
    let column = |program: &&str| match *program {
        OURS => "ours".to_owned(),
        baseline => format!("`{baseline}`"),
    };
    let columns: Vec<String> = programs.iter().map(column).collect();
    lines[0] = format!(
        "| {heading} | {} | ours ÷ hello | typical ÷ ours |",
        columns.join(" | ")
    );
    lines[1] = "|---".repeat(programs.len() + 3) + "|";
    for (label, figure, statistic) in rows {
        let value = |program: &str| report.value(figure, program, *statistic);
        let cell = |program: &&str| match *program {
            OURS => format!("**{:.decimals$}**", value(OURS)),
            baseline => format!("{:.decimals$}", value(baseline)),
        };
        let cells: Vec<String> = programs.iter().map(cell).collect();
        lines.push(format!(
            "| {label} | {} | {:.1} | {:.1} |",
            cells.join(" | "),
            value(OURS) / value(HELLO),
            value(TYPICAL) / value(OURS),
        ));
    }
    lines.join("\n") + "\n"
}

/// A row for each number of records.
fn growth_table(report: &Report) -> String {
    let mut table = "| records in the partition | response, ms | p99, ms | without DynamoDB, ms | DynamoDB requests |\n\
                     |---|---|---|---|---|\n"
        .to_owned();
    for records in MEMBER_COUNTS {
        let subject = records.to_string();
        let value = |name, statistic| report.value(name, &subject, statistic);
        table += &format!(
            "| {} | {:.2} | {:.2} | {:.2} | {} |\n",
            grouped(records),
            value(BY_MEMBERS, Statistic::Median),
            value(BY_MEMBERS, Statistic::P99),
            value(OWN_TIME_BY_MEMBERS, Statistic::Median),
            value(REQUESTS_BY_MEMBERS, Statistic::Median),
        );
    }
    table
}

/// A number with a comma between groups of three digits.
fn grouped(number: usize) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", grouped(number / 1000), number % 1000),
    }
}

/// The sentences of the README.
fn summary(report: &Report) -> String {
    let memory = MEMORY_SIZES[1];
    let value = |name: &str, program: &str, statistic| {
        report.value(&figure(memory, name), program, statistic)
    };
    let start = |program: &str| value("start to first response", program, Statistic::Median);
    let warm = |program: &str, statistic| value("warm response", program, statistic);
    format!(
        "The first response arrives {:.1} ms after the start of the process. The same operation, written\n\
         with the SDK's defaults, takes {:.0} ms. A warm response takes {:.1} ms (p99: {:.1} ms) instead of\n\
         {:.1} ms (p99: {:.1} ms). The programs start with all CPU and then have the share that Lambda gives\n\
         to {memory} MB, the default. DynamoDB is emulated.\n",
        start(OURS),
        start(TYPICAL),
        warm(OURS, Statistic::Median),
        warm(OURS, Statistic::P99),
        warm(TYPICAL, Statistic::Median),
        warm(TYPICAL, Statistic::P99),
    )
}

/// Replaces the text between the comment with this name and the next end comment.
fn replace(file: &Path, name: &str, text: &str) -> Result<()> {
    let document = fs::read_to_string(file)?;
    let start = format!("<!-- figures: {name} -->\n");
    let parts = document.split_once(&start);
    let parts = parts.and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) =
        parts.with_context(|| format!("{} has no figures {name:?}", file.display()))?;
    Ok(fs::write(
        file,
        format!("{before}{start}{text}{END}{after}"),
    )?)
}
