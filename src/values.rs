//! Types that cannot contain an invalid value.

use deserr::{Deserr, IntoValue, Value, ValueKind, ValuePointerRef};
use serde::Serialize;

use crate::{
    api_key::PREFIX,
    body::{Violations, type_mismatch},
    error::{Rule, Violation},
};

mod name;
mod unique_list;

pub(crate) use name::{DisplayName, NameWithId};
pub use name::{escape, is_escaped, is_visible};
pub(crate) use unique_list::{Keyed, UniqueList};

/// A path parameter: 1 to `MAX` characters of `A-Z a-z 0-9 . _ ~ : @ -`, case-sensitive. Not `.` or
/// `..`, because clients and proxies remove these segments from a path (RFC 3986, section 5.2.4). It does
/// not begin with `wsk_`: an API key that a client puts into a path must not be logged or stored.
///
/// `#` is not allowed, so it is a safe separator in the key of a record, such as `acme#apollo`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PathSegment<const MAX: usize>(String);

/// The id of an organization, project, team or bot.
pub type Identifier = PathSegment<128>;

/// The `modelType` in the path of `add_models`.
pub(crate) type ModelType = PathSegment<64>;

impl<const MAX: usize> PathSegment<MAX> {
    /// Parses a text, such as a decoded segment of a path. `None` if it is not valid.
    pub fn new(text: &str) -> Option<Self> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._~:@-".contains(&byte);
        let is_valid = (1..=MAX).contains(&text.len()) && text.bytes().all(is_allowed);
        let is_dot_segment = [".", ".."].contains(&text);
        let is_key = text.starts_with(PREFIX);
        (is_valid && !is_dot_segment && !is_key).then(|| Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A line of text: 1 to `MAX` characters without control characters and line separators. It does
/// not start or end with white space.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct SingleLine<const MAX: usize>(String);

/// A `userid`. At 4 bytes a character, it fits into the 1,024 bytes of a DynamoDB sort key.
pub(crate) type UserId = SingleLine<256>;

/// A `modelid`. Together with the longest model type and `#`, it fits into a DynamoDB sort key.
pub(crate) type ModelName = SingleLine<200>;

/// The `type` of a bot's voice.
pub(crate) type VoiceType = SingleLine<64>;

impl<const MAX: usize> SingleLine<MAX> {
    fn parse(text: &str) -> Result<Self, Vec<Violation>> {
        let checks = [
            text.is_empty()
                .then(|| Violation::new(Rule::MinLength, "must not be empty").with_limit(1)),
            too_long(text, MAX),
            reject_if(
                text.contains(|c: char| c.is_control() || "\u{2028}\u{2029}".contains(c)),
                "must not contain control characters or line separators",
            ),
            reject_if(trim(text) != text, "must not start or end with white space"),
        ];
        ok_unless(checks, || Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Parses a new value of an attribute by the rules of the API. Returns it and, for a name from which ids
/// are derived, the id that a new record with this name gets.
///
/// # Errors
/// The rules that the text violates, as the rest of a sentence.
pub fn parse_attribute(name: &str, text: &str) -> Result<(String, Option<String>), String> {
    let parsed = match name {
        "team_name" | "data_store_name" => NameWithId::parse(text).map(|name| {
            let (id, name) = name.into_id_and_name();
            (name, Some(id))
        }),
        "project_name" => DisplayName::parse(text).map(|name| (name.into_string(), None)),
        _ => Description::parse(text).map(|description| (description.into_string(), None)),
    };
    parsed.map_err(|violations| {
        let details = violations.into_iter().map(|violation| violation.detail);
        Vec::from_iter(details).join(" and ")
    })
}

/// A text without the white space around it: Unicode's White_Space and the byte order mark.
fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}')
}

fn reject_if(is_violated: bool, detail: &str) -> Option<Violation> {
    is_violated.then(|| Violation::new(Rule::Pattern, detail))
}

fn too_long(text: &str, max: usize) -> Option<Violation> {
    let length = text.chars().count();
    (length > max).then(|| {
        let detail = format!("must have at most {max} characters, but has {length}");
        Violation::new(Rule::MaxLength, detail).with_limit(max as i64)
    })
}

/// The value, or every violation.
fn ok_unless<T>(
    checks: impl IntoIterator<Item = Option<Violation>>,
    value: impl FnOnce() -> T,
) -> Result<T, Vec<Violation>> {
    let violations: Vec<_> = checks.into_iter().flatten().collect();
    if violations.is_empty() {
        Ok(value())
    } else {
        Err(violations)
    }
}

/// A description: 0 to 1,000 characters. Line breaks and tabs are the only control characters
/// allowed. Surrounding white space is trimmed, and CRLF becomes LF, so that forms on different
/// systems send the same description.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Description(String);

impl Description {
    const MAX: usize = 1000;

    fn parse(text: &str) -> Result<Self, Vec<Violation>> {
        let text = trim(text).replace("\r\n", "\n");
        let checks = [
            too_long(&text, Self::MAX),
            reject_if(
                text.contains(|c: char| c.is_control() && !"\n\r\t".contains(c)),
                "must not contain control characters other than line breaks and tabs",
            ),
        ];
        ok_unless(checks, || Self(text))
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

/// The `id` of a model, which is not its key: an integer from -(2^53 - 1) to 2^53 - 1, the range in
/// which every JSON implementation is exact (RFC 8259, section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct ModelNumber(i64);

impl Deserr<Violations> for ModelNumber {
    fn deserialize_from_value<V: IntoValue>(
        value: Value<V>,
        at: ValuePointerRef,
    ) -> Result<Self, Violations> {
        const MAX: i64 = (1 << 53) - 1;
        // `f64` represents the integers from -MAX to MAX exactly. 3.0 is an integer, as in JSON
        // Schema.
        let number = match value {
            Value::Integer(number) => number as f64,
            Value::NegativeInteger(number) => number as f64,
            Value::Float(number) if number.fract() == 0.0 => number,
            other => return Err(type_mismatch(&other, ValueKind::Integer, at)),
        };
        let (rule, limit, words) = if number < -MAX as f64 {
            (Rule::Minimum, -MAX, "at least")
        } else if number > MAX as f64 {
            (Rule::Maximum, MAX, "at most")
        } else {
            return Ok(Self(number as i64));
        };
        let violation = Violation::new(rule, format!("must be {words} {limit}"));
        Err(Violations::new(at, [violation.with_limit(limit)]))
    }
}

/// Implements `Deserr` for types that `parse` a JSON string. The brackets contain the generic
/// parameters of the type.
macro_rules! from_json_string {
    ($([$($generics:tt)*] $type:ty),+) => {$(
        impl<$($generics)*> Deserr<Violations> for $type {
            fn deserialize_from_value<V: IntoValue>(
                value: Value<V>,
                at: ValuePointerRef,
            ) -> Result<Self, Violations> {
                match value {
                    Value::String(text) => {
                        Self::parse(&text).map_err(|violations| Violations::new(at, violations))
                    }
                    other => Err(type_mismatch(&other, ValueKind::String, at)),
                }
            }
        }
    )+};
}

from_json_string!([const MAX: usize] SingleLine<MAX>, [] DisplayName, [] NameWithId, [] Description);

#[cfg(test)]
mod tests {
    use super::*;

    /// What the violations say.
    pub(super) fn details<T: std::fmt::Debug>(parsed: Result<T, Vec<Violation>>) -> Vec<String> {
        let violations = parsed.unwrap_err().into_iter();
        violations.map(|violation| violation.detail).collect()
    }

    #[test]
    fn identifiers_have_1_to_128_characters_of_a_small_set() {
        for valid in ["a", "A0._~:@-", "...", ".a", &"x".repeat(128)] {
            assert_eq!(Identifier::new(valid).unwrap().as_str(), valid);
        }
        for invalid in [
            "",
            ".",
            "..",
            "a b",
            "a#b",
            "a/b",
            "a%20b",
            "ä",
            "a\n",
            "\u{0}",
            "wsk_a",
            &"x".repeat(129),
        ] {
            assert!(Identifier::new(invalid).is_none(), "{invalid:?}");
        }
    }

    #[test]
    fn every_violation_of_a_line_is_reported() {
        assert_eq!(SingleLine::<3>::parse("abc").unwrap().as_str(), "abc");
        assert!(SingleLine::<3>::parse("𝄞𝄞𝄞").is_ok());
        assert_eq!(
            details(SingleLine::<3>::parse("ab\ncd")),
            [
                "must have at most 3 characters, but has 5",
                "must not contain control characters or line separators",
            ]
        );
        for separated in ["a\u{2028}b", "a\u{2029}b"] {
            let found = details(SingleLine::<3>::parse(separated));
            let expected = ["must not contain control characters or line separators"];
            assert_eq!(found, expected, "{separated:?}");
        }
        let padding = ["must not start or end with white space"];
        for padded in [" a", "a\u{feff}", "\u{a0}a", "a\u{3000}"] {
            assert_eq!(
                details(SingleLine::<3>::parse(padded)),
                padding,
                "{padded:?}"
            );
        }
    }

    #[test]
    fn descriptions_may_contain_line_breaks_and_tabs() {
        for (sent, stored) in [
            ("", ""),
            (" \u{feff}\r\n", ""),
            (" one\r\n\ttwo\nthree\r ", "one\n\ttwo\nthree"),
        ] {
            assert_eq!(Description::parse(sent).unwrap().into_string(), stored);
        }
        for control in ["\u{0}", "x\u{b}x", "\u{7f}", "\u{9f}"] {
            assert!(Description::parse(control).is_err(), "{control:?}");
        }
        assert!(Description::parse(&"é".repeat(1000)).is_ok());
        assert!(Description::parse(&"é".repeat(1001)).is_err());
    }
}
