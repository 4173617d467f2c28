//! Reads the `Prefer` header (RFC 7240).

/// Whether the client prefers to get what was created in headers: `return=headers-only`. If it sends
/// several `return` preferences, only the first one counts (section 2). Others are ignored.
pub(crate) fn prefers_headers_only(values: &[&str]) -> bool {
    let mut preferences = values.iter().flat_map(|value| split(value, ','));
    let value = preferences.find_map(|preference| {
        // What follows a semicolon is a parameter.
        let preference = split(preference, ';').next()?;
        let (name, value) = preference.split_once('=').unwrap_or((preference, ""));
        let is_return = name.trim().eq_ignore_ascii_case("return");
        is_return.then(|| unquoted(value.trim()))
    });
    value.is_some_and(|value| value.eq_ignore_ascii_case("headers-only"))
}

/// The value of a token or of a quoted string.
fn unquoted(text: &str) -> String {
    let quoted = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    quoted.map_or(text.to_owned(), |quoted| quoted.replace('\\', ""))
}

/// The parts of a text between separators that are not in a quoted string (RFC 9110, section 5.6.4).
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |character| {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ => {}
        }
        character == separator && !is_quoted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_return_preference_of_all_headers_counts() {
        for values in [
            &["return=headers-only"][..],
            &["RETURN = \"headers-only\""],
            &[r#"return="headers\-only""#],
            &["Return=Headers-Only"],
            &["respond-async, wait=10, return=headers-only; foo=bar"],
            &["handling=lenient", "return=headers-only"],
            &["return=headers-only, return=minimal"],
            &[r#"x="a, \", return=minimal", return=headers-only"#],
            &[",, return=headers-only"],
        ] {
            assert!(prefers_headers_only(values), "{values:?}");
        }
        for values in [
            &[][..],
            &[""],
            &["return"],
            &["return="],
            &["return=minimal"],
            &["return=representation"],
            &["return=minimal, return=headers-only"],
            &["return", "return=headers-only"],
            &[r#"return="headers-only"#],
            &["returns=headers-only"],
            &["headers-only"],
            &["wait=10; return=headers-only"],
            &[r#"x="a, return=headers-only""#],
            &[r#"x="unclosed, return=headers-only"#],
        ] {
            assert!(!prefers_headers_only(values), "{values:?}");
        }
    }
}
