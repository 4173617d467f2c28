//! Prints data to standard output, as JSON or for people.

use std::{
    io::{self, Write as _},
    time::{Duration, SystemTime},
};

use anyhow::Result;
use comfy_table::{ContentArrangement, Row, Table, presets::NOTHING};
use console::Term;
use serde_json::{Value, json};
pub(crate) use workspace_management::values::escape;
use workspace_management::values::is_escaped;

use crate::{query::Page, session::Session};

/// Prints a line. If the reader closed the pipe, the process exits with 0.
pub(crate) fn print(line: &str) -> Result<()> {
    match write_line(line) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        written => Ok(written?),
    }
}

fn print_json(value: &Value) -> Result<()> {
    print(&escape_json(&serde_json::to_string_pretty(value)?))
}

/// Writes a line and flushes it.
pub(crate) fn write_line(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Prints a record as JSON, or else the line, which a script can use without parsing it.
pub(crate) fn print_record(record: &Value, line: &str, json: bool) -> Result<()> {
    match json {
        true => print_json(record),
        false => print(line),
    }
}

/// Prints a page of records, and the cursor with which the next one begins. As JSON, prints an array,
/// or an object with `records` and `next` if the operator asked for a page.
pub(crate) fn print_page(page: &Page, columns: &[&str], session: &Session) -> Result<()> {
    if session.json && page.is_limited {
        return print_json(&json!({ "records": page.records, "next": page.cursor }));
    }
    print_records(&page.records, columns, session)?;
    if let Some(cursor) = &page.cursor {
        eprintln!("there may be more records: --after {cursor}");
    }
    Ok(())
}

/// Prints records as a JSON array, or else as a table of the given columns. On a terminal, the table
/// cuts long text to fit its width.
pub(crate) fn print_records(records: &[Value], columns: &[&str], session: &Session) -> Result<()> {
    if session.json {
        return print_json(&json!(records));
    }
    let now = (!session.utc).then(SystemTime::now);
    let terminal = Term::stdout().size_checked();
    let width = terminal.map(|(_, columns)| columns);
    print(table(records, columns, now, width).trim_fmt().as_str())
}

/// A table of records. Times are relative to `now`, or as stored.
fn table(
    records: &[Value],
    columns: &[&str],
    now: Option<SystemTime>,
    width: Option<u16>,
) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header(columns.iter().map(|column| header(column)));
    for record in records {
        let cells = columns
            .iter()
            .map(|column| cell(column, &record[*column], now));
        let mut row = Row::from(cells);
        if width.is_some() {
            row.max_height(1);
        }
        table.add_row(row);
    }
    if let Some(width) = width {
        table.set_width(width);
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    table
}

/// The header of a column: an id is called like what it identifies. The name of an attribute can be
/// any text.
fn header(column: &str) -> String {
    escape(&column.strip_suffix("_id").unwrap_or(column).to_uppercase())
}

fn cell(column: &str, value: &Value, now: Option<SystemTime>) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if column.ends_with("_at") => {
            let age = now.and_then(|now| relative_time(text, now));
            age.unwrap_or_else(|| escape(text))
        }
        Value::String(text) => escape(text),
        Value::Array(entries) => {
            let entries = entries.iter().filter_map(Value::as_str);
            escape(&entries.collect::<Vec<_>>().join(","))
        }
        other => escape(&other.to_string()),
    }
}

/// An RFC 3339 time relative to `now`, such as "3 days ago", or `None` if it is malformed.
fn relative_time(text: &str, now: SystemTime) -> Option<String> {
    let at = humantime::parse_rfc3339(text).ok()?;
    Some(match now.duration_since(at) {
        Ok(past) => format!("{} ago", humanize(past)),
        Err(future) => format!("in {}", humanize(future.duration())),
    })
}

/// A duration, rounded to its largest whole unit.
pub(crate) fn humanize(duration: Duration) -> String {
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
    counted((seconds + length / 2) / length, unit)
}

/// A number of things, such as `1 record` or `2 records`.
pub(crate) fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// JSON in which the characters of [`escape`] are escaped as JSON escapes them. They only occur in
/// strings, except for the line breaks between its lines.
pub(crate) fn escape_json(json: &str) -> String {
    let escaped = |character: char| match is_escaped(character) && character != '\n' {
        true => {
            let mut units = [0; 2];
            let units = character.encode_utf16(&mut units).iter();
            units.map(|unit| format!("\\u{unit:04x}")).collect()
        }
        false => character.to_string(),
    };
    json.chars().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_rounded_to_its_largest_unit() {
        let rows = [
            (499, "0 seconds"),
            (500, "1 second"),
            (59_499, "59 seconds"),
            (59_500, "1 minute"),
            (89_000, "1 minute"),
            (90_000, "2 minutes"),
            (86_399_000, "24 hours"),
            (86_400_000, "1 day"),
            (90 * 86_400_000, "90 days"),
        ];
        for (milliseconds, text) in rows {
            assert_eq!(humanize(Duration::from_millis(milliseconds)), text);
        }
    }

    #[test]
    fn a_time_is_shown_relative_to_now() {
        let now = humantime::parse_rfc3339("2026-03-10T12:00:00Z").expect("a time");
        let rows = [
            ("2026-03-07T12:00:00.250Z", Some("3 days ago")),
            ("2026-03-10T13:00:00Z", Some("in 1 hour")),
            ("soon", None),
        ];
        for (text, relative) in rows {
            assert_eq!(relative_time(text, now).as_deref(), relative, "{text}");
        }
    }

    #[test]
    fn a_table_fits_the_terminal_and_has_ages_or_dates() {
        let (created_at, now) = ("2026-03-07T12:00:00.250Z", "2026-03-10T12:00:00Z");
        let now = humantime::parse_rfc3339(now).expect("a time");
        let text = "long ".repeat(40);
        let records = [json!({ "team_id": "docs", "name": text, "created_at": created_at })];
        let lines = |now, width| {
            let table = table(&records, &["team_id", "name", "created_at"], now, width);
            let lines = table
                .trim_fmt()
                .lines()
                .map(str::to_owned)
                .collect::<Vec<_>>();
            assert_eq!(lines.len(), 2, "{lines:?}");
            lines[1].clone()
        };
        let cut = lines(Some(now), Some(60));
        assert!(
            cut.chars().count() <= 60 && cut.starts_with(" docs "),
            "{cut}"
        );
        assert!(
            cut.contains("long…") && cut.ends_with("3 days ago"),
            "{cut}"
        );
        let whole = lines(None, None);
        assert!(
            whole.contains(&text) && whole.ends_with(created_at),
            "{whole}"
        );
    }
}
