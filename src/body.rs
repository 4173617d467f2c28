//! Parses a JSON body into the input of an operation, or collects every violation in the body.
//!
//! `serde` would stop at the first violation, and would accept an array in place of an object.

use std::ops::ControlFlow;

use deserr::{
    DeserializeError, Deserr, ErrorKind, IntoValue, MergeWithError, ValueKind, ValuePointerRef,
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::{
    api_key::ApiKey,
    error::{Error, Result, Rule, Violation},
};

mod numbers;

use numbers::with_exact_integers;

/// The maximum number of violations in a response. Only bodies with many unknown fields or API keys
/// have more.
const MAX_VIOLATIONS: usize = 400;

/// The maximum length of a pointer, as in the contract.
const MAX_POINTER_LENGTH: usize = 1000;

/// The maximum size of a body, in bytes.
const MAX_BYTES: usize = 256 * 1024;

/// Parses a body. Skips a byte order mark, which some editors and libraries add. Ignores unknown
/// fields unless `is_strict`.
///
/// # Errors
/// [`Error::BodyTooLarge`], [`Error::NotJson`], or [`Error::InvalidBody`] with all violations.
pub(crate) fn parse<T: Deserr<Violations>>(body: &[u8], is_strict: bool) -> Result<T> {
    if body.len() > MAX_BYTES {
        return Err(Error::BodyTooLarge {
            max_bytes: MAX_BYTES,
        });
    }
    let json = parse_json(body)?;
    let mut keys = Vec::new();
    find_api_keys(&json, ValuePointerRef::Origin, &mut keys);
    if !keys.is_empty() {
        return Err(invalid_body(keys));
    }
    let result: Result<T, Violations> = match deserr::deserialize(json) {
        // `deserr` returns no input if it finds an unknown field.
        Err(Violations { unknown_fields, .. }) if !is_strict && !unknown_fields.is_empty() => {
            let mut json = parse_json(body)?;
            for (object, name) in unknown_fields {
                let object = json.pointer_mut(&object).and_then(Value::as_object_mut);
                object.and_then(|object| object.remove(&name));
            }
            deserr::deserialize(json)
        }
        result => result,
    };
    result.map_err(|found| invalid_body(found.violations))
}

fn invalid_body(mut violations: Vec<Violation>) -> Error {
    violations.truncate(MAX_VIOLATIONS);
    Error::InvalidBody(violations)
}

fn parse_json(body: &[u8]) -> Result<Value> {
    let body = body.strip_prefix("\u{feff}".as_bytes()).unwrap_or(body);
    serde_json::from_slice(&with_exact_integers(body))
        .map_err(|error| Error::NotJson(json_error_detail(body, &error)))
}

/// Finds the API keys in a body, even in unknown fields and names of fields.
fn find_api_keys(json: &Value, location: ValuePointerRef, found: &mut Vec<Violation>) {
    let key_at = |location| {
        let violation = Violation::new(Rule::Pattern, "must not contain an API key");
        let mut pointer = pointer(location);
        // The key can be deep in an unknown field. Then an object around it is named.
        while pointer.len() > MAX_POINTER_LENGTH {
            let parent = pointer.rfind('/').unwrap_or_default();
            pointer.truncate(parent);
        }
        violation.at(pointer)
    };
    match json {
        Value::String(text) if ApiKey::is_in(text) => found.push(key_at(location)),
        Value::Array(entries) => {
            for (index, entry) in entries.iter().enumerate() {
                find_api_keys(entry, location.push_index(index), found);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                // A pointer must not repeat the key.
                if ApiKey::is_in(name) {
                    found.push(key_at(location));
                } else {
                    find_api_keys(value, location.push_key(name), found);
                }
            }
        }
        _ => {}
    }
}

/// Says why a body is not JSON. The parser's own message is for Rust developers.
fn json_error_detail(body: &[u8], error: &serde_json::Error) -> String {
    if body.trim_ascii().is_empty() {
        return "It is empty.".to_owned();
    }
    let line = error.line();
    let column = error.column();
    format!("It is invalid at line {line}, column {column}.")
}

/// One or more violations in a body.
#[derive(Debug)]
pub(crate) struct Violations {
    violations: Vec<Violation>,
    /// The JSON pointer of the object and the name of each unknown field, which is one of the
    /// violations.
    unknown_fields: Vec<(String, String)>,
}

impl Violations {
    /// Violations at one location in the body.
    pub(crate) fn new(
        location: ValuePointerRef,
        violations: impl IntoIterator<Item = Violation>,
    ) -> Self {
        let violations = violations.into_iter();
        Self {
            violations: violations
                .map(|violation| violation.at(pointer(location)))
                .collect(),
            unknown_fields: Vec::new(),
        }
    }

    pub(crate) fn merged_with(mut self, mut others: Self) -> Self {
        self.violations.append(&mut others.violations);
        self.unknown_fields.append(&mut others.unknown_fields);
        self
    }
}

impl MergeWithError<Violations> for Violations {
    fn merge(earlier: Option<Self>, new: Self, _: ValuePointerRef) -> ControlFlow<Self, Self> {
        // deserr calls this for each violation. `Continue` makes deserr check the rest of the body.
        ControlFlow::Continue(match earlier {
            Some(earlier) => earlier.merged_with(new),
            None => new,
        })
    }
}

impl DeserializeError for Violations {
    fn error<V: IntoValue>(
        earlier: Option<Self>,
        error: ErrorKind<V>,
        location: ValuePointerRef,
    ) -> ControlFlow<Self, Self> {
        let new = match error {
            ErrorKind::MissingField { field } => {
                let violation = Violation::new(Rule::Required, "is required");
                Self::new(location.push_key(field), [violation])
            }
            ErrorKind::IncorrectValueKind { actual, accepted } => {
                // Every input type accepts exactly one kind, so the default is never used.
                let accepted = accepted.first().copied().unwrap_or(ValueKind::Map);
                type_mismatch(&actual, accepted, location)
            }
            ErrorKind::UnknownKey { key, accepted } => {
                let detail = format!("is not a known field. Known are: {}", accepted.join(", "));
                let violation = Violation::new(Rule::AdditionalProperties, detail);
                let object = pointer(location).trim_start_matches('#').to_owned();
                Self {
                    unknown_fields: vec![(object, key.to_owned())],
                    ..Self::new(location.push_key(key), [violation])
                }
            }
            // Not reached, because no type is an enum.
            _ => Self::new(location, [Violation::new(Rule::Type, "is not allowed")]),
        };
        Self::merge(earlier, new, location)
    }
}

/// The violation for a value of the wrong JSON type.
pub(crate) fn type_mismatch<V: IntoValue>(
    actual: &deserr::Value<V>,
    accepted: ValueKind,
    location: ValuePointerRef,
) -> Violations {
    let accepted = json_type_name(accepted);
    let actual = json_type_name(actual.kind());
    let detail = format!("must be {accepted}, but is {actual}");
    Violations::new(location, [Violation::new(Rule::Type, detail)])
}

/// The name of a JSON type, with its article.
fn json_type_name(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::Null => "null",
        ValueKind::Boolean => "a boolean",
        ValueKind::Integer | ValueKind::NegativeInteger => "an integer",
        ValueKind::Float => "a number",
        ValueKind::String => "a string",
        ValueKind::Sequence => "an array",
        ValueKind::Map => "an object",
    }
}

/// Formats a location in the body as a JSON pointer in a URI fragment (RFC 6901, section 6). The
/// name of an unknown field is cut off, so that a pointer to it in a known object is short enough.
fn pointer(location: ValuePointerRef) -> String {
    const MAX_NAME_LENGTH: usize = 64;
    match location {
        ValuePointerRef::Origin => "#".to_owned(),
        ValuePointerRef::Index { index, prev } => format!("{}/{index}", pointer(*prev)),
        ValuePointerRef::Key { key, prev } => {
            let name: String = key.chars().take(MAX_NAME_LENGTH).collect();
            let escaped = name.replace('~', "~0").replace('/', "~1");
            let encoded = utf8_percent_encode(&escaped, NON_ALPHANUMERIC);
            format!("{}/{encoded}", pointer(*prev))
        }
    }
}
