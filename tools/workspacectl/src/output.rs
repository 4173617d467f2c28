//! Prints data to standard output, as JSON or as text.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    time::SystemTime,
};

use anyhow::{Context as _, Result};
use comfy_table::{ColumnConstraint, ContentArrangement, Table as TextTable, presets::NOTHING};
use console::Term;
use serde_json::{Value, json};

use crate::{
    context::GlobalOptions,
    message::print_message,
    text::{escape, escape_json, humanize},
};

/// Prints text and a line break. A pipe closed by its reader, such as `head`, is not an error.
pub(crate) fn print(text: &str) -> Result<()> {
    allow_closed_pipe(print_or_fail_on_closed_pipe(text))
}

/// Like [`print`], but fails if the reader has closed the pipe.
pub(crate) fn print_or_fail_on_closed_pipe(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

/// The result of a print for which a pipe closed by its reader is not an error.
pub(crate) fn allow_closed_pipe(result: io::Result<()>) -> Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to standard output"),
    }
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

/// Whether standard output is closed. Rust opens `/dev/null` in its place, also for reading, which
/// `>/dev/null` in a shell does not.
pub(crate) fn is_stdout_closed() -> io::Result<bool> {
    #[cfg(unix)]
    if is_stdout_discarded()? {
        return Ok(io::Read::read(&mut stdout_file()?, &mut [0]).is_ok());
    }
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
pub(crate) fn print_json_or_text(value: &Value, text: &str, options: &GlobalOptions) -> Result<()> {
    if options.json {
        print_json(value)
    } else {
        print(text)
    }
}

/// Prints records. If `is_cut`, says that there are more.
pub(crate) fn print_listing(
    records: &[Value],
    is_cut: bool,
    columns: &[&str],
    options: &GlobalOptions,
) -> Result<()> {
    print_rows(records, columns, options)?;
    if is_cut {
        print_message("the list ends at --limit: there are more records");
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
    /// Prints the next entry. Fails if the reader has closed the pipe.
    pub(crate) fn print_next(&mut self, entry: &Value) -> io::Result<()> {
        let start = if self.has_entries { "," } else { "[" };
        self.has_entries = true;
        print_or_fail_on_closed_pipe(&format!("{start}{}", escape_json(&entry.to_string())))
    }

    /// With `--json`, prints the end of the array, even if the work on an entry failed. Returns the
    /// first error.
    pub(crate) fn close(self, work: Result<()>, options: &GlobalOptions) -> Result<()> {
        let mut printed = Ok(());
        if options.json {
            printed = print(if self.has_entries { "]" } else { "[]" });
        }
        work.and(printed)
    }
}

/// Prints rows as a JSON array or as a table. The most useful columns must come first, because a
/// narrow terminal leaves out the last ones.
pub(crate) fn print_rows(rows: &[Value], columns: &[&str], options: &GlobalOptions) -> Result<()> {
    if options.json {
        return print_json(&json!(rows));
    }
    let mut relative_to = None;
    if !options.utc {
        relative_to = Some(SystemTime::now());
    }
    // `None` for a pipe or a file, and for a terminal that does not know its width.
    let width = Term::stdout().size_checked().map(|(_height, width)| width);
    let (table, left_out) = text_table(rows, columns, relative_to, width);
    print(&table.trim_fmt())?;
    if !left_out.is_empty() {
        let headers = left_out.join(", ");
        print_message(&format!(
            "the terminal is too narrow for {headers}: widen it, or use --json"
        ));
    }
    Ok(())
}

/// A text table for a terminal of this width, and the headers of the columns that do not fit. Times
/// are relative to `relative_to`, or as stored if it is `None`.
fn text_table(
    rows: &[Value],
    columns: &[&str],
    relative_to: Option<SystemTime>,
    width: Option<u16>,
) -> (TextTable, Vec<String>) {
    let headers: Vec<String> = columns.iter().map(|column| header(column)).collect();
    let mut table = TextTable::new();
    table.load_style(NOTHING);
    table.add_row(&headers);
    for row in rows {
        let cells = columns.iter();
        table.add_row(cells.map(|column| cell(column, &row[*column], relative_to)));
    }
    let Some(width) = width else {
        return (table, vec![]);
    };
    for text_row in table.row_iter_mut() {
        // Truncates what does not fit, instead of wrapping it.
        text_row.max_height(1);
    }
    table.set_width(width);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    let left_out = fit(&mut table, columns, width);
    let left_out = left_out.into_iter().map(|index| headers[index].clone());
    (table, left_out.collect())
}

/// Hides the last columns, so that the others fit a terminal of this width, and returns the indexes
/// of the hidden ones. Only texts may be truncated. Ids and the advice of `doctor` are always shown:
/// if they do not fit, the terminal wraps the line, so that they can still be copied.
fn fit(table: &mut TextTable, columns: &[&str], width: u16) -> Vec<usize> {
    const MIN_TEXT_WIDTH: u16 = 12;
    let is_text = |column: &str| {
        ["label", "changes", "name", "reason", "reference"].contains(&column)
            || column.ends_with("_name")
            || column.ends_with("_description")
    };
    let is_always_shown = |column: &str| {
        column.ends_with("_id") || ["model_type", "status", "check", "detail"].contains(&column)
    };
    let mut widths = table.column_max_content_widths();
    for (index, column) in columns.iter().enumerate() {
        if is_text(column) {
            widths[index] = widths[index].min(MIN_TEXT_WIDTH);
        } else if let Some(text_column) = table.column_mut(index) {
            text_column.set_constraint(ColumnConstraint::ContentWidth);
        }
        // The padding.
        widths[index] = widths[index].saturating_add(2);
    }
    let (always_shown, others): (Vec<usize>, Vec<usize>) =
        (0..columns.len()).partition(|index| is_always_shown(columns[*index]));
    let take = |space: u16, index: &usize| space.saturating_sub(widths[*index]);
    let mut space = always_shown.iter().fold(width, take);
    let mut left_out = Vec::new();
    for index in others {
        if widths[index] <= space {
            space -= widths[index];
            continue;
        }
        left_out.push(index);
        if let Some(text_column) = table.column_mut(index) {
            text_column.set_constraint(ColumnConstraint::Hidden);
        }
    }
    left_out
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
        Value::String(text) if column == "at" || column.ends_with("_at") => {
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
    fn a_table_fits_the_terminal_without_cutting_ids_and_has_ages_or_dates() {
        let (created_at, now) = ("2026-03-07T12:00:00.250Z", "2026-03-10T12:00:00Z");
        let now = humantime::parse_rfc3339(now).expect("a time");
        // Wide, combining and zero-width characters.
        let (text, user) = ("long ".repeat(40), "市场e\u{301}👩\u{fe0f}\u{fe0f}");
        let row = json!({ "user_id": user, "team_name": text, "created_at": created_at });
        let rows = [row];
        let lines = |relative_to, width| {
            let columns = ["user_id", "team_name", "created_at"];
            let (table, left_out) = text_table(&rows, &columns, relative_to, width);
            (table.trim_fmt(), left_out.join(" "))
        };
        for (width, end, expected_left_out) in [
            (60, "3 days ago", ""),
            (40, "3 days ago", ""),
            (26, "…", "CREATED_AT"),
            (20, "\u{fe0f}", "TEAM_NAME CREATED_AT"),
            (1, "\u{fe0f}", "TEAM_NAME CREATED_AT"),
        ] {
            let (cut, left_out) = lines(Some(now), Some(width));
            assert_eq!(left_out, expected_left_out, "{width}: {cut}");
            assert_eq!(cut.lines().count(), 2, "{cut}");
            let line = cut.lines().last().expect("a line");
            assert!(line.contains(user) && line.ends_with(end), "{width}: {cut}");
            assert!(line.chars().count() <= usize::from(width.max(20)), "{cut}");
        }
        let (whole, _) = lines(None, None);
        assert!(
            whole.contains(&text) && whole.ends_with(created_at),
            "{whole}"
        );
    }
}
