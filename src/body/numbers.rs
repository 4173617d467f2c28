//! Numbers whose exact value matters.

use std::borrow::Cow;

use serde::de::IgnoredAny;

/// Replaces numbers so that the JSON parser reads a number as an integer if and only if its exact
/// value is an integer. The parser rounds numbers with a fraction or an exponent to an `f64`, so that
/// `1.00000000000000000001` would be 1, and rejects a body with a number as large as `1e400`. A
/// replacement is as long as the number, so that the positions in the parser's errors stay right.
pub(super) fn with_exact_integers(json: &[u8]) -> Cow<'_, [u8]> {
    let mut exact = Cow::Borrowed(json);
    let (mut position, mut is_in_string) = (0, false);
    while let Some(&byte) = json.get(position) {
        let mut length = 1;
        match byte {
            b'"' => is_in_string = !is_in_string,
            b'\\' if is_in_string => length = 2,
            b'-' | b'0'..=b'9' if !is_in_string => {
                let is_in_number = |byte: &&u8| b"+-.eE0123456789".contains(byte);
                length = json[position..].iter().take_while(is_in_number).count();
                let number = &json[position..position + length];
                if let Some(replacement) = replacement(number) {
                    let number = &mut exact.to_mut()[position..position + length];
                    number.fill(b' ');
                    number[..replacement.len()].copy_from_slice(replacement.as_bytes());
                }
            }
            _ => {}
        }
        position += length;
    }
    exact
}

/// A number that is not longer, and replaces one that the parser would misread. `None` for any other
/// number, and for text that is not a number.
fn replacement(number: &[u8]) -> Option<&'static str> {
    // Checks the format without parsing the number.
    serde_json::from_slice::<IgnoredAny>(number).ok()?;
    let number = str::from_utf8(number).ok()?;
    let rounded: f64 = number.parse().ok()?;
    match (is_integer(number), rounded.is_finite()) {
        (false, _) => Some("0.5"),
        (true, true) => None,
        (true, false) => Some(if rounded > 0.0 { "9e99" } else { "-9e99" }),
    }
}

/// Whether the exact value of a number in JSON's format is an integer.
fn is_integer(number: &str) -> bool {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() || significant == "-" {
        return true; // zero
    }
    let huge = if exponent.starts_with('-') {
        i64::MIN
    } else {
        i64::MAX
    };
    let exponent: i64 = exponent.parse().unwrap_or(huge);
    let trailing_zeros = (digits.len() - significant.len()) as i64;
    exponent.saturating_add(trailing_zeros) >= fraction.len() as i64
}
