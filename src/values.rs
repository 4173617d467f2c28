//! Types that cannot contain an invalid value.

use deserr::{Deserr, IntoValue, Value, ValueKind, ValuePointerRef};
use serde::Serialize;

use crate::{
    body::{Violations, type_mismatch},
    error::{Error, Result, Rule, Violation},
};

/// A path parameter: 1 to `MAX` characters of `A-Z a-z 0-9 . _ ~ : @ -`, case-sensitive.
///
/// `#` is not allowed, so it is a safe separator between identifiers in a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
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
        is_valid.then(|| Self(text.to_owned()))
    }

    /// Parses the segment of a path that has the parameter of this name in the contract.
    pub(crate) fn parse(parameter: &'static str, segment: &str) -> Result<Self> {
        Self::new(segment).ok_or(Error::MalformedPath(parameter, MAX))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A line of text: 1 to `MAX` characters without control characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct SingleLine<const MAX: usize>(String);

/// A `userid`. At 4 bytes a character, it fits into the 1,024 bytes of a DynamoDB sort key.
pub(crate) type UserId = SingleLine<256>;

/// A `modelid`. Together with the longest model type and `#`, it fits into a DynamoDB sort key.
pub(crate) type ModelId = SingleLine<200>;

/// The `type` of a bot's voice.
pub(crate) type VoiceType = SingleLine<64>;

impl<const MAX: usize> SingleLine<MAX> {
    fn parse(text: &str) -> Result<Self, Vec<Violation>> {
        let violations = [
            text.is_empty()
                .then(|| Violation::new(Rule::MinLength, "must not be empty").with_limit(1)),
            too_long(text, MAX),
            text.contains(char::is_control)
                .then(|| Violation::new(Rule::Pattern, "must not contain control characters")),
        ];
        ok_unless(violations, || Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

fn too_long(text: &str, max: usize) -> Option<Violation> {
    let length = text.chars().count();
    (length > max).then(|| {
        let detail = format!("must have at most {max} characters, but has {length}");
        Violation::new(Rule::MaxLength, detail).with_limit(max as u64)
    })
}

/// The value, or every violation.
fn ok_unless<T>(
    violations: impl IntoIterator<Item = Option<Violation>>,
    value: impl FnOnce() -> T,
) -> Result<T, Vec<Violation>> {
    let violations: Vec<_> = violations.into_iter().flatten().collect();
    if violations.is_empty() {
        Ok(value())
    } else {
        Err(violations)
    }
}

/// A name: a line of 1 to 100 characters. Surrounding white space is trimmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DisplayName(SingleLine<100>);

impl DisplayName {
    fn parse(text: &str) -> Result<Self, Vec<Violation>> {
        SingleLine::parse(text.trim()).map(Self)
    }

    pub(crate) fn into_string(self) -> String {
        self.0.0
    }
}

/// A name, and the slug that becomes the record's id: "My Team Näme" has the slug `my-team-name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NameWithSlug {
    name: DisplayName,
    slug: String,
}

impl NameWithSlug {
    /// The maximum length of an [`Identifier`], so that every slug can be in a path.
    const MAX_SLUG: usize = 128;

    fn parse(text: &str) -> Result<Self, Vec<Violation>> {
        let name = DisplayName::parse(text)?;
        let slug = slug::slugify(name.0.as_str());
        let (length, max) = (slug.len(), Self::MAX_SLUG);
        let violations = [
            // An emoji has a slug (🎉 is `tada`), and some letters have none.
            (slug.is_empty() || !text.contains(char::is_alphanumeric))
                .then(|| Violation::new(Rule::Pattern, "must contain a letter or a digit")),
            (length > max).then(|| {
                let detail = format!("produces an id of {length} characters; the maximum is {max}");
                Violation::new(Rule::MaxLength, detail)
            }),
        ];
        ok_unless(violations, || Self { name, slug })
    }

    /// The slug (lower-case ASCII letters, digits and single hyphens), then the name.
    pub(crate) fn into_slug_and_name(self) -> (String, String) {
        (self.slug, self.name.into_string())
    }
}

/// A description: 0 to 1,000 characters. Line breaks and tabs are the only control characters
/// allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Description(String);

impl Description {
    const MAX: usize = 1000;

    fn parse(text: &str) -> Result<Self, Vec<Violation>> {
        let is_rejected = |c: char| c.is_control() && !"\n\r\t".contains(c);
        let violations = [
            too_long(text, Self::MAX),
            text.contains(is_rejected).then(|| {
                let detail = "must not contain control characters other than line breaks and tabs";
                Violation::new(Rule::Pattern, detail)
            }),
        ];
        ok_unless(violations, || Self(text.to_owned()))
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

/// The `id` of a model: an integer from 0 to 2^53 - 1, the range in which every JSON
/// implementation is exact (RFC 8259, section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct ModelNumber(u64);

impl Deserr<Violations> for ModelNumber {
    fn deserialize_from_value<V: IntoValue>(
        value: Value<V>,
        at: ValuePointerRef,
    ) -> Result<Self, Violations> {
        const MAX: u64 = (1 << 53) - 1;
        let violation = |rule, limit: u64, words: &str| {
            let detail = format!("must be {words} {limit}");
            Violations::one(at, Violation::new(rule, detail).with_limit(limit))
        };
        match value {
            Value::Integer(number) if number <= MAX => Ok(Self(number)),
            // 3.0 is an integer, as in JSON Schema.
            Value::Float(number)
                if number.fract() == 0.0 && (0.0..=MAX as f64).contains(&number) =>
            {
                Ok(Self(number as u64))
            }
            Value::Float(number) if number.fract() != 0.0 => Err(type_mismatch::<V>(
                &Value::Float(number),
                ValueKind::Integer,
                at,
            )),
            Value::NegativeInteger(_) => Err(violation(Rule::Minimum, 0, "at least")),
            Value::Float(number) if number < 0.0 => Err(violation(Rule::Minimum, 0, "at least")),
            Value::Integer(_) | Value::Float(_) => Err(violation(Rule::Maximum, MAX, "at most")),
            other => Err(type_mismatch(&other, ValueKind::Integer, at)),
        }
    }
}

/// Implements `Deserr` for types that `parse` a JSON string.
macro_rules! from_json_string {
    ($([$($generics:tt)*] $type:ty),+) => {$(
        impl<$($generics)*> Deserr<Violations> for $type {
            fn deserialize_from_value<V: IntoValue>(
                value: Value<V>,
                at: ValuePointerRef,
            ) -> Result<Self, Violations> {
                match value {
                    Value::String(text) => {
                        Self::parse(&text).map_err(|violations| Violations::all(at, violations))
                    }
                    other => Err(type_mismatch(&other, ValueKind::String, at)),
                }
            }
        }
    )+};
}

from_json_string!([const MAX: usize] SingleLine<MAX>, [] DisplayName, [] NameWithSlug, [] Description);

#[cfg(test)]
mod tests {
    use super::*;

    /// What the violations say.
    fn details<T: std::fmt::Debug>(parsed: Result<T, Vec<Violation>>) -> Vec<String> {
        let violations = parsed.unwrap_err().into_iter();
        violations.map(|violation| violation.detail).collect()
    }

    #[test]
    fn identifiers_have_1_to_128_characters_of_a_small_set() {
        for valid in ["a", "A0._~:@-", "..", &"x".repeat(128)] {
            assert_eq!(Identifier::new(valid).unwrap().as_str(), valid);
        }
        for invalid in [
            "",
            "a b",
            "a#b",
            "a/b",
            "a%20b",
            "ä",
            "a\n",
            "\u{0}",
            &"x".repeat(129),
        ] {
            assert!(Identifier::new(invalid).is_none(), "{invalid:?}");
        }
        let error = ModelType::parse("modelType", &"x".repeat(65)).unwrap_err();
        assert!(error.to_string().contains("`modelType` must be 1 to 64"));
    }

    #[test]
    fn slugs_are_made_of_names() {
        for (name, slug) in [
            ("My TEam Näme", "my-team-name"),
            ("  Research  Team  ", "research-team"),
            ("C++", "c"),
            ("a--b__c", "a-b-c"),
            ("-a-", "a"),
            ("2026", "2026"),
            ("語", "yu"),
        ] {
            let (found, _) = NameWithSlug::parse(name).unwrap().into_slug_and_name();
            assert_eq!(found, slug, "{name}");
            assert!(Identifier::new(&found).is_some());
        }
    }

    #[test]
    fn a_name_needs_a_letter_or_a_digit_to_have_a_slug() {
        for name in ["---", "…", "🎉"] {
            let details = details(NameWithSlug::parse(name));
            assert_eq!(details, ["must contain a letter or a digit"], "{name}");
        }
    }

    #[test]
    fn names_are_trimmed_before_they_are_checked() {
        let padded = format!(" \t{}\u{3000}", "x".repeat(100));
        let name = DisplayName::parse(&padded).unwrap();
        assert_eq!(name.into_string(), "x".repeat(100));
        assert_eq!(
            details(DisplayName::parse(" \u{a0} ")),
            ["must not be empty"]
        );
    }

    #[test]
    fn every_violation_of_a_line_is_reported() {
        assert_eq!(SingleLine::<3>::parse("abc").unwrap().as_str(), "abc");
        assert!(SingleLine::<3>::parse("𝄞𝄞𝄞").is_ok());
        assert_eq!(
            details(SingleLine::<3>::parse("ab\ncd")),
            [
                "must have at most 3 characters, but has 5",
                "must not contain control characters",
            ]
        );
    }

    #[test]
    fn descriptions_may_contain_line_breaks_and_tabs() {
        assert!(Description::parse("").is_ok());
        assert!(Description::parse("one\r\n\ttwo").is_ok());
        for control in ["\u{0}", "\u{b}", "\u{7f}", "\u{9f}"] {
            assert!(Description::parse(control).is_err(), "{control:?}");
        }
        assert!(Description::parse(&"é".repeat(1000)).is_ok());
        assert!(Description::parse(&"é".repeat(1001)).is_err());
    }
}
