//! A body: bytes to a request, or every rule that they break, in one reading.
//!
//! `serde` stops at the first violation and takes an array for an object; `deserr` walks the parsed JSON to its end.

use std::{fmt, ops::ControlFlow};

use deserr::{
    DeserializeError, Deserr, ErrorKind, IntoValue, MergeWithError, Value, ValueKind,
    ValuePointerRef,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value as Json};

use crate::error::{Error, Violation};

/// How many bytes a body may have.
pub const LARGEST: usize = 256 * 1024;

/// How many repetitions of members are looked at, and how many bytes their pointers may have before the last one, so that
/// a body costs no more than its size: a pointer repeats the name of every object around it.
const MOST_REPETITIONS: (usize, usize) = (100, 64 * 1024);

/// Reads a request from a body.
///
/// # Errors
/// [`Error::BodyTooLarge`], [`Error::NotJson`], or [`Error::InvalidBody`] with every violation.
pub fn read<T: Deserr<Violations>>(body: &[u8]) -> Result<T, Error> {
    if body.len() > LARGEST {
        return Err(Error::BodyTooLarge { limit: LARGEST });
    }
    if body.is_empty() {
        return Err(Error::NotJson("it is empty".to_owned()));
    }
    let mut repeated = Repeated::default();
    let mut parser = serde_json::Deserializer::from_slice(body);
    let json = Members {
        at: ValuePointerRef::Origin,
        repeated: &mut repeated,
    }
    .deserialize(&mut parser)
    .and_then(|json| parser.end().map(|()| json))
    .map_err(|reason| Error::NotJson(reason.to_string()))?;
    let mut repeated = repeated.violations;
    match deserr::deserialize::<T, _, Violations>(json) {
        Ok(request) if repeated.is_empty() => Ok(request),
        Ok(_) => Err(Error::InvalidBody(repeated)),
        Err(mut violations) => {
            violations.0.append(&mut repeated);
            Err(Error::InvalidBody(violations.0))
        }
    }
}

/// The rules that a body breaks, at least one.
#[derive(Debug)]
pub struct Violations(Vec<Violation>);

impl Violations {
    /// One violation at that place.
    pub fn one(at: ValuePointerRef, detail: impl Into<String>) -> Self {
        Self::all(at, vec![detail.into()])
    }

    /// A violation at that place for each detail.
    pub fn all(at: ValuePointerRef, details: Vec<String>) -> Self {
        let pointer = pointer(at);
        let violation = |detail| Violation {
            pointer: pointer.clone(),
            detail,
        };
        Self(details.into_iter().map(violation).collect())
    }

    /// These violations and others.
    pub fn and(mut self, mut others: Self) -> Self {
        self.0.append(&mut others.0);
        self
    }
}

impl MergeWithError<Violations> for Violations {
    fn merge(earlier: Option<Self>, found: Self, _: ValuePointerRef) -> ControlFlow<Self, Self> {
        ControlFlow::Continue(match earlier {
            Some(earlier) => earlier.and(found),
            None => found,
        })
    }
}

impl DeserializeError for Violations {
    fn error<V: IntoValue>(
        earlier: Option<Self>,
        error: ErrorKind<V>,
        at: ValuePointerRef,
    ) -> ControlFlow<Self, Self> {
        let found = match error {
            ErrorKind::MissingField { field } => Self::one(at.push_key(field), "is required"),
            ErrorKind::IncorrectValueKind { actual, accepted } => wrong_kind(
                &actual,
                accepted.first().copied().unwrap_or(ValueKind::Map),
                at,
            ),
            ErrorKind::UnknownKey { key, .. } => Self::one(at.push_key(key), "is not known"),
            ErrorKind::UnknownValue { .. } => Self::one(at, "is not one of the values allowed"),
            ErrorKind::BadSequenceLen { expected, .. } => {
                Self::one(at, format!("must have {expected} entries"))
            }
            ErrorKind::Unexpected { msg } => Self::one(at, msg),
        };
        Self::merge(earlier, found, at)
    }
}

/// The violation of a value that is of another kind of JSON than its place takes.
pub fn wrong_kind<V: IntoValue>(
    actual: &Value<V>,
    accepted: ValueKind,
    at: ValuePointerRef,
) -> Violations {
    let name = |kind| match kind {
        ValueKind::Null => "null",
        ValueKind::Boolean => "a boolean",
        ValueKind::Integer | ValueKind::NegativeInteger => "an integer",
        ValueKind::Float => "a number",
        ValueKind::String => "a string",
        ValueKind::Sequence => "an array",
        ValueKind::Map => "an object",
    };
    Violations::one(
        at,
        format!("must be {}, but is {}", name(accepted), name(actual.kind())),
    )
}

/// What a URI fragment shows of a pointer as it is (RFC 3986, "unreserved").
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

fn pointer(at: ValuePointerRef) -> String {
    match at {
        ValuePointerRef::Origin => "#".to_owned(),
        ValuePointerRef::Index { index, prev } => format!("{}/{index}", pointer(*prev)),
        ValuePointerRef::Key { key, prev } => {
            let key = key.replace('~', "~0").replace('/', "~1");
            format!(
                "{}/{}",
                pointer(*prev),
                utf8_percent_encode(&key, UNRESERVED)
            )
        }
    }
}

/// Parses any JSON and notes each member that its object holds twice; `serde_json` alone would keep the last in silence.
struct Members<'a> {
    at: ValuePointerRef<'a>,
    repeated: &'a mut Repeated,
}

/// The members that stand more than once in their object, and what was done to report them.
#[derive(Default)]
struct Repeated {
    violations: Vec<Violation>,
    repetitions: usize,
    bytes: usize,
}

impl Repeated {
    fn note(&mut self, at: ValuePointerRef) {
        if self.repetitions < MOST_REPETITIONS.0 && self.bytes < MOST_REPETITIONS.1 {
            let pointer = pointer(at);
            self.repetitions += 1;
            self.bytes += pointer.len();
            if !self.violations.iter().any(|noted| noted.pointer == pointer) {
                let detail = "must stand only once in its object".to_owned();
                self.violations.push(Violation { pointer, detail });
            }
        }
    }
}

impl<'de> DeserializeSeed<'de> for Members<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = Json;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Json, E> {
        Number::from_f64(value)
            .map(Json::Number)
            .ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Json, E> {
        Ok(Json::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut array = Vec::new();
        while let Some(entry) = entries.next_element_seed(Members {
            at: self.at.push_index(array.len()),
            repeated: &mut *self.repeated,
        })? {
            array.push(entry);
        }
        Ok(Json::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Json, A::Error> {
        let mut object = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            let value = members.next_value_seed(Members {
                at: self.at.push_key(&key),
                repeated: &mut *self.repeated,
            })?;
            if object.contains_key(&key) {
                self.repeated.note(self.at.push_key(&key));
            }
            object.insert(key, value);
        }
        Ok(Json::Object(object))
    }
}
