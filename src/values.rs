//! Values that cannot be invalid: having one is the proof that its rule holds.

use std::collections::HashMap;

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
    fn parse(text: &str) -> Result<Self, String> {
        match text.chars().count() {
            0 => Err("must not be empty".to_owned()),
            length if length > LONGEST => Err(too_long(length, LONGEST)),
            _ if text.contains(char::is_control) => {
                Err("must not hold control characters".to_owned())
            }
            _ => Ok(Self(text.to_owned())),
        }
    }

    /// The line's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A name: a line of 1 to 100 characters after white space around it is taken off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Name(Line<100>);

impl Name {
    fn parse(text: &str) -> Result<Self, String> {
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

    fn parse(text: &str) -> Result<Self, String> {
        let name = Name::parse(text)?;
        let slug = slug::slugify(name.0.as_str());
        if slug.is_empty() || !text.contains(char::is_alphanumeric) {
            Err("must hold a letter or a digit".to_owned())
        } else if slug.len() > Self::LONGEST_SLUG {
            Err(format!(
                "becomes an id of {} characters, more than {}",
                slug.len(),
                Self::LONGEST_SLUG
            ))
        } else {
            Ok(Self { name, slug })
        }
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

    fn parse(text: &str) -> Result<Self, String> {
        let forbidden = |character: char| character.is_control() && !"\n\r\t".contains(character);
        match text.chars().count() {
            length if length > Self::LONGEST => Err(too_long(length, Self::LONGEST)),
            _ if text.contains(forbidden) => {
                Err("must not hold control characters other than line breaks and tabs".to_owned())
            }
            _ => Ok(Self(text.to_owned())),
        }
    }
}

fn too_long(length: usize, longest: usize) -> String {
    format!("must have at most {longest} characters, but has {length}")
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

    fn collapse(entries: Vec<T>, at: ValuePointerRef) -> Result<Self, Violations> {
        let mut first_of = HashMap::with_capacity(entries.len());
        let mut violations = Vec::new();
        let keep: Vec<bool> = entries
            .iter()
            .enumerate()
            .map(|(index, entry)| {
                let first = *first_of.entry(entry.key()).or_insert(index);
                if entries[first] != *entry {
                    let detail = format!("contradicts entry {first}");
                    violations.push(Violations::one(at.push_index(index), detail));
                }
                first == index
            })
            .collect();
        if let Some(violations) = violations.into_iter().reduce(Violations::and) {
            return Err(violations);
        }
        let kept = entries
            .into_iter()
            .zip(keep)
            .filter_map(|(entry, keep)| keep.then_some(entry));
        Ok(Self(kept.collect()))
    }

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
        match value {
            Value::Sequence(sequence) => match sequence.len() {
                0 => Err(Violations::one(at, "must have at least 1 entry")),
                length if length > Self::MOST => Err(Violations::one(
                    at,
                    format!("must have at most {} entries, but has {length}", Self::MOST),
                )),
                _ => Self::collapse(
                    Vec::deserialize_from_value(Value::<V>::Sequence(sequence), at)?,
                    at,
                ),
            },
            other => Err(wrong_kind(&other, ValueKind::Sequence, at)),
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
                        Self::parse(&text).map_err(|detail| Violations::one(at, detail))
                    }
                    other => Err(wrong_kind(&other, ValueKind::String, at)),
                }
            }
        }
    )+};
}

from_json_string!([const LONGEST: usize] Line<LONGEST>, [] Name, [] SluggedName, [] Description);
