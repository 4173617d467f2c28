//! Prints data to standard output, as JSON or as text.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    time::SystemTime,
};

use anyhow::{Context as _, Result};
use comfy_table::{ContentArrangement, Row, Table as TextTable, presets::NOTHING};
use console::Term;
use serde_json::{Value, json};

use crate::{
    message::print_message,
    read::Listing,
    session::Session,
    text::{escape, escape_json, humanize},
};

/// Prints text and a line break. A pipe closed by its reader, such as `head`, is not an error.
pub(crate) fn print(text: &str) -> Result<()> {
    match print_or_fail_on_closed_pipe(text) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to standard output"),
    }
}

/// Like [`print`], but fails if the reader has closed the pipe.
pub(crate) fn print_or_fail_on_closed_pipe(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

/// Whether standard output is `/dev/null`, which Rust also opens in place of a closed one.
pub(crate) fn is_stdout_discarded() -> io::Result<bool> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let output = stdout_file()?.metadata()?;
        Ok(fs::metadata("/dev/null").is_ok_and(|null| null.rdev() == output.rdev()))
    }
    #[cfg(not(unix))]
    Ok(false)
}

/// Waits until what was printed is on the disk, if standard output is a file.
pub(crate) fn sync_stdout() -> io::Result<()> {
    #[cfg(unix)]
    {
        let output = stdout_file()?;
        if output.metadata()?.is_file() {
            output.sync_all()?;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn stdout_file() -> io::Result<File> {
    use std::os::fd::AsFd as _;
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

pub(crate) fn print_json(value: &Value) -> Result<()> {
    print(&escape_json(&serde_json::to_string_pretty(value)?))
}

/// With `--json`, prints `value`. Otherwise prints `text`, usually an id, for scripts.
pub(crate) fn print_json_or_text(value: &Value, text: &str, session: &Session) -> Result<()> {
    if session.global_args.json {
        print_json(value)
    } else {
        print(text)
    }
}

/// Prints records and, to standard error, the cursor of the next page.
pub(crate) fn print_listing(listing: &Listing, columns: &[&str], session: &Session) -> Result<()> {
    print_rows(&listing.records, columns, session)?;
    if let Some(cursor) = &listing.cursor {
        print_message(&format!(
            "the list ends at --limit: for more records, repeat the command with --after {cursor}"
        ));
    }
    Ok(())
}

/// A JSON array that is printed entry by entry, for entries that must not be lost if a later one
/// fails.
#[derive(Default)]
pub(crate) struct JsonArray {
    has_entries: bool,
}

impl JsonArray {
    /// The line of the next entry.
    pub(crate) fn next_line(&mut self, entry: &Value) -> String {
        let start = if self.has_entries { "," } else { "[" };
        self.has_entries = true;
        format!("{start}{}", escape_json(&entry.to_string()))
    }

    /// With `--json`, prints the last line.
    pub(crate) fn close(self, session: &Session) -> Result<()> {
        if session.global_args.json {
            print(if self.has_entries { "]" } else { "[]" })?;
        }
        Ok(())
    }
}

/// Prints rows as a JSON array or as a table. On a terminal, the table truncates text to fit.
pub(crate) fn print_rows(rows: &[Value], columns: &[&str], session: &Session) -> Result<()> {
    if session.global_args.json {
        return print_json(&json!(rows));
    }
    let mut relative_to = None;
    if !session.global_args.utc {
        relative_to = Some(SystemTime::now());
    }
    let width = Term::stdout().size_checked().map(|(_height, width)| width);
    print(&text_table(rows, columns, relative_to, width).trim_fmt())
}

/// A text table. Times are relative to `relative_to`, or as stored if it is `None`.
fn text_table(
    rows: &[Value],
    columns: &[&str],
    relative_to: Option<SystemTime>,
    width: Option<u16>,
) -> TextTable {
    let mut table = TextTable::new();
    table.load_style(NOTHING);
    table.set_header(columns.iter().map(|column| header(column)));
    for row in rows {
        let cells = columns
            .iter()
            .map(|column| cell(column, &row[*column], relative_to));
        let mut text_row = Row::from(cells);
        if width.is_some() {
            // On a terminal, each row has one line.
            text_row.max_height(1);
        }
        table.add_row(text_row);
    }
    if let Some(width) = width {
        table.set_width(width);
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    table
}

/// The header of a column: the attribute's name in upper case, without the suffix `_id`. It is
/// escaped, because an attribute's name can contain any character.
fn header(column: &str) -> String {
    escape(&column.strip_suffix("_id").unwrap_or(column).to_uppercase())
}

/// The text of a cell: a relative time, the strings of a list, or the value.
fn cell(column: &str, value: &Value, relative_to: Option<SystemTime>) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if column.ends_with("_at") => {
            let relative = relative_to.and_then(|now| relative_time(text, now));
            relative.unwrap_or_else(|| escape(text))
        }
        Value::String(text) => escape(text),
        Value::Array(entries) => {
            let texts: Vec<_> = entries.iter().filter_map(Value::as_str).collect();
            escape(&texts.join(","))
        }
        other => escape(&other.to_string()),
    }
}

/// An RFC 3339 time relative to `now`, such as "3 days ago", or `None` if it is malformed.
fn relative_time(text: &str, now: SystemTime) -> Option<String> {
    let time = humantime::parse_rfc3339(text).ok()?;
    Some(match now.duration_since(time) {
        Ok(past) => format!("{} ago", humanize(past)),
        Err(future) => format!("in {}", humanize(future.duration())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_fits_the_terminal_and_has_ages_or_dates() {
        let (created_at, now) = ("2026-03-07T12:00:00.250Z", "2026-03-10T12:00:00Z");
        let now = humantime::parse_rfc3339(now).expect("a time");
        let text = "long ".repeat(40);
        let rows = [json!({ "team_id": "docs", "name": text, "created_at": created_at })];
        let lines = |relative_to, width| {
            let columns = ["team_id", "name", "created_at"];
            text_table(&rows, &columns, relative_to, width).trim_fmt()
        };
        let cut = lines(Some(now), Some(60));
        assert!(cut.lines().all(|line| line.chars().count() <= 60), "{cut}");
        assert_eq!(cut.lines().count(), 2, "{cut}");
        assert!(cut.contains("\n docs ") && cut.contains("long…"), "{cut}");
        assert!(cut.ends_with("3 days ago"), "{cut}");
        let whole = lines(None, None);
        assert!(
            whole.contains(&text) && whole.ends_with(created_at),
            "{whole}"
        );
    }
}
