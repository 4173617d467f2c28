//! What the tool says: data on standard output, everything else on standard error.

use std::{
    io::{self, Write as _},
    time::{Duration, SystemTime},
};

use anyhow::Result;
use comfy_table::{Table, presets::NOTHING};
use serde_json::Value;

/// Prints a line of data. Whoever reads it may have read enough: then the program ends well.
///
/// # Errors
/// If standard output cannot be written.
pub(crate) fn print(line: &str) -> Result<()> {
    match write_line(line) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        written => Ok(written?),
    }
}

/// Writes a line of data that somebody must read.
///
/// # Errors
/// If standard output cannot be written, or nobody reads it.
pub(crate) fn write_line(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Prints one record, or whatever stands for one: as JSON, or as the line that a script wants of it.
///
/// # Errors
/// If standard output cannot be written.
pub(crate) fn print_record(record: &Value, line: &str, json: bool) -> Result<()> {
    match json {
        true => print(&serde_json::to_string_pretty(record)?),
        false => print(line),
    }
}

/// Prints records: as a JSON array, whole, or as a table of some of their attributes, with moments as a person says them.
///
/// # Errors
/// If standard output cannot be written.
pub(crate) fn print_records(records: &[Value], columns: &[&str], json: bool) -> Result<()> {
    if json {
        return print(&serde_json::to_string_pretty(records)?);
    }
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header(columns.iter().map(|column| column.to_uppercase()));
    for record in records {
        table.add_row(columns.iter().map(|column| {
            match &record[*column] {
                Value::Null => "-".to_owned(),
                Value::String(text) if column.ends_with("_at") => {
                    moment(text, SystemTime::now()).unwrap_or_else(|| one_line(text))
                }
                Value::String(text) => one_line(text),
                Value::Array(entries) => entries
                    .iter()
                    .filter_map(Value::as_str)
                    .collect::<Vec<_>>()
                    .join(","),
                other => other.to_string(),
            }
        }));
    }
    print(table.trim_fmt().as_str())
}

/// A moment (RFC 3339) as it lies from now, such as "3 days ago"; `None` if it is none.
fn moment(text: &str, now: SystemTime) -> Option<String> {
    let at = humantime::parse_rfc3339(text).ok()?;
    Some(match now.duration_since(at) {
        Ok(past) => format!("{} ago", span(past)),
        Err(future) => format!("in {}", span(future.duration())),
    })
}

/// A duration in the largest unit that it fills, to the nearest.
pub(crate) fn span(duration: Duration) -> String {
    const UNITS: [(u64, &str); 4] = [
        (86_400, "day"),
        (3_600, "hour"),
        (60, "minute"),
        (1, "second"),
    ];
    let seconds = (duration + Duration::from_millis(500)).as_secs();
    let (length, unit) = UNITS
        .into_iter()
        .find(|(length, _)| seconds >= *length)
        .unwrap_or(UNITS[3]);
    let count = (seconds + length / 2) / length;
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural}")
}

/// A text as it can stand in one line of a terminal, whoever wrote it.
fn one_line(text: &str) -> String {
    let escaped = |character: char| match character.is_control() {
        true => character.escape_default().to_string(),
        false => character.to_string(),
    };
    text.chars().map(escaped).collect()
}
