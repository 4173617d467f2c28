//! Parses a JSON body into the request of an operation, or into a list of every violation.
//!
//! `serde` would stop at the first violation and accept an array in place of an object. `deserr`
//! checks the whole body.

use std::ops::ControlFlow;

use deserr::{
    DeserializeError, Deserr, ErrorKind, IntoValue, MergeWithError, Value, ValueKind,
    ValuePointerRef,
};

use crate::error::{Error, Result, Rule, Violation};

/// The maximum size of a body, in bytes.
const MAX_BYTES: usize = 256 * 1024;

/// Parses a body. Skips the byte order mark that some editors and libraries add.
///
/// # Errors
/// [`Error::BodyTooLarge`], [`Error::NotJson`], or [`Error::InvalidBody`] with every violation.
pub(crate) fn parse<T: Deserr<Violations>>(body: &[u8]) -> Result<T> {
    if body.len() > MAX_BYTES {
        return Err(Error::BodyTooLarge(MAX_BYTES));
    }
    let text = body.strip_prefix("\u{feff}".as_bytes()).unwrap_or(body);
    let json: serde_json::Value =
        serde_json::from_slice(text).map_err(|error| Error::NotJson(why_not_json(text, &error)))?;
    deserr::deserialize(json).map_err(|Violations(violations)| Error::InvalidBody(violations))
}

/// Says why a body is not JSON. The parser's own words are for Rust developers.
fn why_not_json(body: &[u8], error: &serde_json::Error) -> String {
    if body.trim_ascii().is_empty() {
        "It is empty.".to_owned()
    } else {
        let (line, column) = (error.line(), error.column());
        format!("It is invalid at line {line}, column {column}.")
    }
}

/// The violations of a body: at least one.
#[derive(Debug)]
pub(crate) struct Violations(Vec<Violation>);

impl Violations {
    /// Violations at one place in the body.
    pub(crate) fn new(
        at: ValuePointerRef,
        violations: impl IntoIterator<Item = Violation>,
    ) -> Self {
        let pointer = pointer(at);
        let place = |violation| Violation {
            pointer: pointer.clone(),
            ..violation
        };
        Self(violations.into_iter().map(place).collect())
    }

    /// These violations and others.
    pub(crate) fn and(mut self, mut others: Self) -> Self {
        self.0.append(&mut others.0);
        self
    }
}

impl MergeWithError<Violations> for Violations {
    fn merge(earlier: Option<Self>, found: Self, _: ValuePointerRef) -> ControlFlow<Self, Self> {
        // `Continue` makes deserr check the rest of the body.
        ControlFlow::Continue(earlier.unwrap_or(Self(vec![])).and(found))
    }
}

impl DeserializeError for Violations {
    fn error<V: IntoValue>(
        earlier: Option<Self>,
        error: ErrorKind<V>,
        at: ValuePointerRef,
    ) -> ControlFlow<Self, Self> {
        let found = match error {
            ErrorKind::MissingField { field } => {
                let violation = Violation::new(Rule::Required, "is required");
                Self::new(at.push_key(field), [violation])
            }
            ErrorKind::IncorrectValueKind { actual, accepted } => {
                let expected = accepted.first().copied().unwrap_or(ValueKind::Map);
                type_mismatch(&actual, expected, at)
            }
            // Not reached: unknown members are ignored, and no type is an enum.
            _ => Self::new(at, [Violation::new(Rule::Type, "is not allowed")]),
        };
        Self::merge(earlier, found, at)
    }
}

/// The violation of a value whose JSON type is not the accepted one.
pub(crate) fn type_mismatch<V: IntoValue>(
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
    let (expected, actual) = (name(accepted), name(actual.kind()));
    let detail = format!("must be {expected}, but is {actual}");
    Violations::new(at, [Violation::new(Rule::Type, detail)])
}

/// A place in the body as a JSON pointer in a URI fragment (RFC 6901, section 6). Nothing needs an
/// escape: only members of the contract are reported, whose names have letters only.
fn pointer(at: ValuePointerRef) -> String {
    match at {
        ValuePointerRef::Origin => "#".to_owned(),
        ValuePointerRef::Index { index, prev } => format!("{}/{index}", pointer(*prev)),
        ValuePointerRef::Key { key, prev } => format!("{}/{key}", pointer(*prev)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserr)]
    #[deserr(error = Violations)]
    struct Example {
        #[allow(dead_code, reason = "only its type matters")]
        flag: bool,
    }

    fn violations(body: &str) -> Vec<String> {
        match parse::<Example>(body.as_bytes()) {
            Err(Error::InvalidBody(violations)) => violations
                .iter()
                .map(|violation| format!("{} {}", violation.pointer, violation.detail))
                .collect(),
            other => panic!("{body}: {other:?}"),
        }
    }

    #[test]
    fn parse_names_the_expected_and_the_actual_type() {
        for (value, name) in [
            ("null", "null"),
            ("1", "an integer"),
            ("-1", "an integer"),
            ("1.5", "a number"),
            ("\"true\"", "a string"),
            ("[]", "an array"),
            ("{}", "an object"),
        ] {
            let body = format!("{{\"flag\": {value}}}");
            assert_eq!(
                violations(&body),
                [format!("#/flag must be a boolean, but is {name}")]
            );
        }
        assert_eq!(
            violations("[true]"),
            ["# must be an object, but is an array"]
        );
        assert_eq!(violations("{}"), ["#/flag is required"]);
    }

    #[test]
    fn the_place_at_which_a_body_is_not_json_is_reported() {
        let nested = "[".repeat(200);
        for (body, reason) in [
            (&b""[..], "It is empty."),
            (b"\xef\xbb\xbf \n", "It is empty."),
            (b"teamName=Docs", "It is invalid at line 1, column 2."),
            (b"{\"flag\": tr", "It is invalid at line 1, column 11."),
            (b"{\n \"flag\": yes}", "It is invalid at line 2, column 10."),
            (b"{} {}", "It is invalid at line 1, column 4."),
            // half a surrogate pair
            (
                br#"{"flag": "\ud800"}"#,
                "It is invalid at line 1, column 17.",
            ),
            (
                b"{\"flag\": \"\xe9\"}",
                "It is invalid at line 1, column 11.",
            ),
            (nested.as_bytes(), "It is invalid at line 1, column 128."),
        ] {
            let error = parse::<Example>(body).unwrap_err().to_string();
            let expected = format!("The request body is not JSON. {reason}");
            assert_eq!(error, expected, "{}", body.escape_ascii());
        }
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        assert!(parse::<Example>("\u{feff}{\"flag\": true}".as_bytes()).is_ok());
        assert!(parse::<Example>("\u{feff}\u{feff}{\"flag\": true}".as_bytes()).is_err());
    }

    #[test]
    fn the_last_of_repeated_members_is_used() {
        assert!(parse::<Example>(br#"{"flag": 1, "flag": true}"#).is_ok());
        let body = r#"{"flag": true, "flag": 1}"#;
        assert_eq!(
            violations(body),
            ["#/flag must be a boolean, but is an integer"]
        );
    }
}
