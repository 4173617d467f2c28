//! What the tool says: data on standard output, everything else on standard error.

use std::io::{self, Write as _};

use anyhow::Result;
use comfy_table::{Table, presets::NOTHING};
use serde_json::Value;

/// Prints a line of data. Whoever reads it may have read enough: then the program ends well.
///
/// # Errors
/// If standard output cannot be written.
pub fn print(line: &str) -> Result<()> {
    match write_line(line) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        written => Ok(written?),
    }
}

/// Writes a line of data that somebody must read.
///
/// # Errors
/// If standard output cannot be written, or nobody reads it.
pub fn write_line(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Prints records: as a JSON array, whole, or as a table of some of their attributes.
///
/// # Errors
/// If standard output cannot be written.
pub fn print_records(records: &[Value], columns: &[&str], json: bool) -> Result<()> {
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

/// A text as it can stand in one line of a terminal, whoever wrote it.
fn one_line(text: &str) -> String {
    let escaped = |character: char| match character.is_control() {
        true => character.escape_default().to_string(),
        false => character.to_string(),
    };
    text.chars().map(escaped).collect()
}
