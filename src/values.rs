//! Types that cannot contain invalid values.

use deserr::{Deserr, IntoValue, Value, ValueKind, ValuePointerRef};

use crate::{
    api_key::{API_KEY_PREFIX, ApiKey},
    body::{Violations, type_mismatch},
    error::Rule,
};

mod name;
mod unique_list;

pub use crate::error::Violation;
pub use name::{DisplayName, NameWithId};
pub(crate) use unique_list::{Keyed, UniqueList};

/// A valid path parameter: 1 to `MAX_LENGTH` characters of `A-Z a-z 0-9 . _ ~ : @ -`. It is
/// case-sensitive. `.` and `..` are not valid, because clients and proxies remove these segments
/// from a path (RFC 3986, section 5.2.4). A parameter can neither begin with `wsk_` nor contain an
/// API key, so that a key in a path is neither logged nor stored.
///
/// `#` is not allowed, so that it can separate the ids in a primary key, as in `acme#apollo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathParameter<const MAX_LENGTH: usize>(String);

/// The id of an organization, project, team or bot.
pub type Identifier = PathParameter<128>;

/// The `modelType` in the path of `add_models`.
pub(crate) type ModelType = PathParameter<64>;

impl<const MAX_LENGTH: usize> PathParameter<MAX_LENGTH> {
    /// Parses a decoded segment of a path. `None` if it is not valid.
    pub fn parse(segment: &str) -> Option<Self> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._~:@-".contains(&byte);
        let has_valid_length = (1..=MAX_LENGTH).contains(&segment.len());
        let is_dot_segment = segment == "." || segment == "..";
        let is_well_formed = has_valid_length && !is_dot_segment && segment.bytes().all(is_allowed);
        if is_well_formed && !segment.starts_with(API_KEY_PREFIX) && !ApiKey::is_in(segment) {
            return Some(Self(segment.to_owned()));
        }
        None
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A string that fits on one line: 1 to `MAX_LENGTH` characters without control characters or line
/// separators. It does not start or end with white space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SingleLine<const MAX_LENGTH: usize>(String);

/// A `userid`. Even at 4 bytes per character, it fits into the 1,024 bytes of a sort key.
pub(crate) type UserId = SingleLine<256>;

/// The id of a model, such as `gpt-4o`. The contract calls it `modelid`. Even the longest
/// `<modelType>#<modelid>` fits into the 1,024 bytes of a sort key.
pub(crate) type ModelId = SingleLine<200>;

/// The `type` of a bot's voice. The contract lists no types, so any `SingleLine` is valid.
pub type VoiceType = SingleLine<64>;

impl<const MAX_LENGTH: usize> SingleLine<MAX_LENGTH> {
    /// Parses a line.
    ///
    /// # Errors
    /// At least one violation.
    pub fn parse(text: &str) -> Result<Self, Vec<Violation>> {
        let mut violations = Vec::new();
        if text.is_empty() {
            violations.push(Violation::new(Rule::MinLength, "must not be empty").with_limit(1));
        }
        violations.extend(length_violation(text, MAX_LENGTH));
        if text.contains(|c: char| c.is_control() || "\u{2028}\u{2029}".contains(c)) {
            let detail = "must not contain control characters or line separators";
            violations.push(Violation::new(Rule::Pattern, detail));
        }
        if trim(text) != text {
            let detail = "must not start or end with white space";
            violations.push(Violation::new(Rule::Pattern, detail));
        }
        if violations.is_empty() {
            Ok(Self(text.to_owned()))
        } else {
            Err(violations)
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The line.
    pub fn into_string(self) -> String {
        self.0
    }
}

/// Removes Unicode white space and byte order marks from both ends.
pub fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}')
}

/// Returns a violation if a string has more than `max` characters.
fn length_violation(text: &str, max: usize) -> Option<Violation> {
    let length = text.chars().count();
    if length <= max {
        return None;
    }
    let detail = format!("must have at most {max} characters, but has {length}");
    Some(Violation::new(Rule::MaxLength, detail).with_limit(max as i64))
}

/// A description: 0 to 1,000 characters. Line breaks and tabs are the only control characters
/// allowed. Surrounding white space is trimmed, and CRLF becomes LF, because some forms send CRLF.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Description(String);

impl Description {
    const MAX_LENGTH: usize = 1000;

    /// Parses a description.
    ///
    /// # Errors
    /// At least one violation.
    pub fn parse(text: &str) -> Result<Self, Vec<Violation>> {
        let text = trim(text).replace("\r\n", "\n");
        let mut violations = Vec::new();
        violations.extend(length_violation(&text, Self::MAX_LENGTH));
        if text.contains(|c: char| c.is_control() && !"\n\r\t".contains(c)) {
            let detail = "must not contain control characters other than line breaks and tabs";
            violations.push(Violation::new(Rule::Pattern, detail));
        }
        if violations.is_empty() {
            Ok(Self(text))
        } else {
            Err(violations)
        }
    }

    /// The description.
    pub fn into_string(self) -> String {
        self.0
    }
}

/// The number that the client chooses for a model. The contract calls it `id`. Its absolute value
/// is less than 2^53, so that all JSON libraries represent it exactly (RFC 8259, section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelNumber(i64);

impl ModelNumber {
    /// The greatest number.
    pub const MAX: i64 = (1 << 53) - 1;

    pub(crate) fn get(self) -> i64 {
        self.0
    }
}

impl Deserr<Violations> for ModelNumber {
    fn deserialize_from_value<V: IntoValue>(
        value: Value<V>,
        location: ValuePointerRef,
    ) -> Result<Self, Violations> {
        const MAX: i64 = ModelNumber::MAX;
        // Every integer from -MAX to MAX is exact as an `f64`, and no other integer is rounded into
        // this range. As in JSON Schema, 3.0 is an integer. `body` makes sure that a `Float` without
        // a fraction was sent as an integer.
        let number = match value {
            Value::Integer(number) => number as f64,
            Value::NegativeInteger(number) => number as f64,
            Value::Float(number) if number.fract() == 0.0 => number,
            other => return Err(type_mismatch(&other, ValueKind::Integer, location)),
        };
        if number.abs() <= MAX as f64 {
            return Ok(Self(number as i64));
        }
        let violation = if number < 0.0 {
            Violation::new(Rule::Minimum, format!("must be at least {}", -MAX)).with_limit(-MAX)
        } else {
            Violation::new(Rule::Maximum, format!("must be at most {MAX}")).with_limit(MAX)
        };
        Err(Violations::new(location, [violation]))
    }
}

/// Implements `Deserr` for types with `parse(&str)`, which are strings in JSON.
macro_rules! impl_deserr_for_strings {
    ($($type:ty),+) => {$(
        impl Deserr<Violations> for $type {
            fn deserialize_from_value<V: IntoValue>(
                value: Value<V>,
                location: ValuePointerRef,
            ) -> Result<Self, Violations> {
                match value {
                    Value::String(text) => {
                        let parsed = Self::parse(&text);
                        parsed.map_err(|violations| Violations::new(location, violations))
                    }
                    other => Err(type_mismatch(&other, ValueKind::String, location)),
                }
            }
        }
    )+};
}

impl_deserr_for_strings! { UserId, ModelId, VoiceType, DisplayName, NameWithId, Description }
