//! Values that cannot be invalid: having one is the proof that its rule holds.

use deserr::{Deserr, IntoValue, Sequence, Value, ValueKind, ValuePointerRef};
use serde::Serialize;

use crate::{
    body::{Violations, wrong_kind},
    error::Error,
};

/// A path parameter: 1 to `LONGEST` of `A-Z a-z 0-9 . _ ~ : @ -`, case-sensitive.
///
/// `#` is not among them, so identifiers joined by it in a table's key cannot be mistaken for others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct PathSegment<const LONGEST: usize>(String);

/// The id of an organization, project, team or bot.
pub type Identifier = PathSegment<128>;

/// The `modelType` of the models that are added.
pub type ModelType = PathSegment<64>;

impl<const LONGEST: usize> PathSegment<LONGEST> {
    /// The decoded path segment as the path's parameter of that name, or [`Error::MalformedPath`].
    pub fn parse(parameter: &'static str, segment: &str) -> Result<Self, Error> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._~:@-".contains(&byte);
        if (1..=LONGEST).contains(&segment.len()) && segment.bytes().all(allowed) {
            Ok(Self(segment.to_owned()))
        } else {
            Err(Error::MalformedPath {
                parameter,
                longest: LONGEST,
            })
        }
    }

    /// The segment's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One line of text: 1 to `LONGEST` characters, none of them a control character.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Line<const LONGEST: usize>(String);

/// A `userid`. Four bytes a character make at most the 1,024 bytes that DynamoDB allows a sort key.
pub type UserId = Line<256>;

/// A `modelid`. With the longest model type and `#` before it, it stays below DynamoDB's 1,024 bytes of a sort key.
pub type ModelId = Line<200>;

/// The `type` of a bot's voice.
pub type VoiceType = Line<64>;

impl<const LONGEST: usize> Line<LONGEST> {
    fn parse(text: &str) -> Result<Self, Vec<String>> {
        let mut broken = Vec::new();
        if text.is_empty() {
            broken.push("must not be empty".to_owned());
        }
        check_length(text, LONGEST, &mut broken);
        if text.contains(char::is_control) {
            broken.push("must not hold control characters".to_owned());
        }
        checked(broken, || Self(text.to_owned()))
    }

    /// The line's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn check_length(text: &str, longest: usize, broken: &mut Vec<String>) {
    let length = text.chars().count();
    if length > longest {
        broken.push(format!(
            "must have at most {longest} characters, but has {length}"
        ));
    }
}

fn checked<T>(broken: Vec<String>, value: impl FnOnce() -> T) -> Result<T, Vec<String>> {
    if broken.is_empty() {
        Ok(value())
    } else {
        Err(broken)
    }
}

/// A name: a line of 1 to 100 characters after white space around it is taken off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Name(Line<100>);

impl Name {
    fn parse(text: &str) -> Result<Self, Vec<String>> {
        Line::parse(text.trim()).map(Self)
    }
}

/// A name and the slug that is its record's id, as GitHub forms a team's: "My TEam Näme" has "my-team-name".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SluggedName {
    name: Name,
    slug: String,
}

impl SluggedName {
    /// Every slug can stand in a path as an [`Identifier`].
    const LONGEST_SLUG: usize = 128;

    fn parse(text: &str) -> Result<Self, Vec<String>> {
        let name = Name::parse(text)?;
        let slug = slug::slugify(name.0.as_str());
        let (length, longest) = (slug.len(), Self::LONGEST_SLUG);
        let mut broken = Vec::new();
        if slug.is_empty() || !text.contains(char::is_alphanumeric) {
            broken.push("must hold a letter or a digit".to_owned());
        }
        if length > longest {
            broken.push(format!(
                "becomes an id of {length} characters, more than {longest}"
            ));
        }
        checked(broken, || Self { name, slug })
    }

    /// The name as it was sent, without white space around it.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The id: lower-case ASCII letters, digits and single dashes.
    pub fn slug(&self) -> &str {
        &self.slug
    }
}

/// A description: 0 to 1,000 characters, of which line breaks and tabs are the only control characters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Description(String);

impl Description {
    const LONGEST: usize = 1000;

    fn parse(text: &str) -> Result<Self, Vec<String>> {
        let mut broken = Vec::new();
        check_length(text, Self::LONGEST, &mut broken);
        if text.contains(|character: char| character.is_control() && !"\n\r\t".contains(character))
        {
            broken.push(
                "must not hold control characters other than line breaks and tabs".to_owned(),
            );
        }
        checked(broken, || Self(text.to_owned()))
    }
}

/// The `id` of a model: an integer that every JSON implementation carries exactly, 0 to 2^53 - 1 (RFC 8259, section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ModelNumber(u64);

impl ModelNumber {
    const LARGEST: u64 = (1 << 53) - 1;
}

/// 1 to 100 entries of an array, equal ones collapsed. DynamoDB allows 100 actions in one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entries<T>(Vec<T>);

/// What can stand in [`Entries`]: two entries with one key are one entry, or contradict each other.
pub trait Entry: PartialEq {
    /// What the entry is known by.
    fn key(&self) -> &str;
}

impl<T: Entry> Entries<T> {
    const MOST: usize = 100;

    /// The entries, each once, in the order they were sent.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }
}

impl<T: Deserr<Violations> + Entry> Deserr<Violations> for Entries<T> {
    fn deserialize_from_value<V: IntoValue>(
        value: Value<V>,
        at: ValuePointerRef,
    ) -> Result<Self, Violations> {
        let Value::Sequence(sequence) = value else {
            return Err(wrong_kind(&value, ValueKind::Sequence, at));
        };
        let (length, most) = (sequence.len(), Self::MOST);
        if length == 0 {
            return Err(Violations::one(at, "must have at least 1 entry"));
        }
        if length > most {
            let detail = format!("must have at most {most} entries, but has {length}");
            return Err(Violations::one(at, detail));
        }
        let mut entries: Vec<(usize, T)> = Vec::with_capacity(length);
        let mut broken: Option<Violations> = None;
        for (index, value) in sequence.into_iter().enumerate() {
            let at = at.push_index(index);
            let found = match T::deserialize_from_value(value.into_value(), at) {
                Err(found) => found,
                Ok(entry) => match entries.iter().find(|(_, other)| other.key() == entry.key()) {
                    None => {
                        entries.push((index, entry));
                        continue;
                    }
                    Some((_, other)) if *other == entry => continue,
                    Some((other, _)) => Violations::one(at, format!("contradicts entry {other}")),
                },
            };
            broken = Some(match broken {
                Some(broken) => broken.and(found),
                None => found,
            });
        }
        match broken {
            Some(broken) => Err(broken),
            None => Ok(Self(entries.into_iter().map(|(_, entry)| entry).collect())),
        }
    }
}

impl Deserr<Violations> for ModelNumber {
    fn deserialize_from_value<V: IntoValue>(
        value: Value<V>,
        at: ValuePointerRef,
    ) -> Result<Self, Violations> {
        match value {
            Value::Integer(number) if number <= Self::LARGEST => Ok(Self(number)),
            // 3.0 is the integer 3, in JSON Schema too.
            Value::Float(number)
                if number.fract() == 0.0 && (0.0..=Self::LARGEST as f64).contains(&number) =>
            {
                Ok(Self(number as u64))
            }
            Value::Integer(_) | Value::NegativeInteger(_) | Value::Float(_) => {
                Err(Violations::one(
                    at,
                    format!("must be an integer from 0 to {}", Self::LARGEST),
                ))
            }
            other => Err(wrong_kind(&other, ValueKind::Integer, at)),
        }
    }
}

/// Reads a value from a JSON string, under the rule of its `parse`.
macro_rules! from_json_string {
    ($([$($generics:tt)*] $value:ty),+) => {$(
        impl<$($generics)*> Deserr<Violations> for $value {
            fn deserialize_from_value<V: IntoValue>(
                value: Value<V>,
                at: ValuePointerRef,
            ) -> Result<Self, Violations> {
                match value {
                    Value::String(text) => {
                        Self::parse(&text).map_err(|details| Violations::all(at, details))
                    }
                    other => Err(wrong_kind(&other, ValueKind::String, at)),
                }
            }
        }
    )+};
}

from_json_string!([const LONGEST: usize] Line<LONGEST>, [] Name, [] SluggedName, [] Description);
