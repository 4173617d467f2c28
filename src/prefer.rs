//! `Prefer` headers (RFC 7240).

use std::iter;

/// Whether a client prefers this value of a preference, such as `strict` of `handling`. If a
/// preference is repeated, only its first value counts.
pub(crate) fn prefers(header_values: &[&str], preference: &str, value: &str) -> bool {
    let lists = header_values.iter();
    let mut found = lists
        .flat_map(|list| split_unquoted(list, ','))
        .filter_map(|item| {
            // No preference of this API has parameters.
            let without_parameters = split_unquoted(item, ';').next()?;
            let (name, found) = without_parameters
                .split_once('=')
                .unwrap_or((without_parameters, ""));
            let is_same = name.trim_ascii().eq_ignore_ascii_case(preference);
            is_same.then(|| unquote(found.trim_ascii()))
        });
    found
        .next()
        .is_some_and(|first| first.eq_ignore_ascii_case(value))
}

/// Splits a header value at the separators that are not in a quoted string.
pub(crate) fn split_unquoted(value: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    value.split(move |c| {
        let is_separator = c == separator && !is_quoted;
        is_quoted ^= c == '"' && !is_escaped;
        is_escaped = c == '\\' && is_quoted && !is_escaped;
        is_separator
    })
}

/// The text in a quoted string, or the text itself if it is not quoted.
fn unquote(text: &str) -> String {
    let quoted = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    let Some(quoted) = quoted else {
        return text.to_owned();
    };
    // A backslash stands before a character that is taken literally.
    let mut characters = quoted.chars();
    let unescaped = iter::from_fn(|| match characters.next()? {
        '\\' => characters.next(),
        c => Some(c),
    });
    unescaped.collect()
}
