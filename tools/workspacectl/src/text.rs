//! Formats text for people and for terminals.

use std::time::Duration;

pub(crate) use workspace_management::text::escape;
use workspace_management::text::needs_escape;

/// Escapes the same characters as [`escape`] in JSON text, as `\uXXXX`. Keeps line breaks, which
/// occur only between the tokens of the JSON text.
pub(crate) fn escape_json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for character in json.chars() {
        if !needs_escape(character) || character == '\n' {
            escaped.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            escaped += &format!("\\u{unit:04x}");
        }
    }
    escaped
}

/// Text on one line, with single spaces.
pub(crate) fn join_lines(text: &str) -> String {
    Vec::from_iter(text.split_whitespace()).join(" ")
}

/// A duration in its largest unit, such as `3 days`. Rounds to whole seconds, then to that unit.
pub(crate) fn humanize(duration: Duration) -> String {
    let seconds = (duration + Duration::from_millis(500)).as_secs();
    let (unit_seconds, unit) = match seconds {
        86_400.. => (86_400, "day"),
        3_600.. => (3_600, "hour"),
        60.. => (60, "minute"),
        _ => (1, "second"),
    };
    pluralize((seconds + unit_seconds / 2) / unit_seconds, unit)
}

/// A count and its noun: `1 record` or `2 records`.
pub(crate) fn pluralize(count: impl ToString, noun: &str) -> String {
    let count = count.to_string();
    let plural = if count == "1" { "" } else { "s" };
    format!("{count} {noun}{plural}")
}
