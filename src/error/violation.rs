//! The violations in a body. A value has one violation for each rule that it breaks.

use serde::Serialize;
use serde_json::json;

/// A value in the body that violates a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The location of the value, as a JSON pointer in a URI fragment (RFC 6901, section 6), such
    /// as `#/usersAddingToTeam/3/userid`.
    pub(crate) pointer: String,
    pub(crate) rule: Rule,
    /// The limit of the rule, if it has one, such as the maximum length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<i64>,
    /// What is wrong, as a predicate that follows the name of the value, such as `is required`.
    pub detail: String,
}

impl Violation {
    /// Creates a violation with an empty pointer, which [`at`](Self::at) replaces.
    pub(crate) fn new(rule: Rule, detail: impl Into<String>) -> Self {
        Self {
            pointer: String::new(),
            rule,
            limit: None,
            detail: detail.into(),
        }
    }

    pub(crate) fn with_limit(self, limit: i64) -> Self {
        let limit = Some(limit);
        Self { limit, ..self }
    }

    /// Sets the pointer to the value.
    pub(crate) fn at(self, pointer: String) -> Self {
        Self { pointer, ..self }
    }
}

/// A rule, named after its keyword in JSON Schema. Clients can show their own message for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Rule {
    Required,
    Type,
    MinLength,
    MaxLength,
    Pattern,
    MinItems,
    MaxItems,
    Minimum,
    Maximum,
    AdditionalProperties,
    /// The value contradicts an earlier entry or a stored record. JSON Schema has no such keyword.
    Conflict,
}

impl Rule {
    /// The keyword, as in the response.
    pub(crate) fn keyword(self) -> String {
        // Uses the names that `Serialize` writes, so that each keyword is in one place.
        json!(self).as_str().unwrap_or_default().to_owned()
    }
}
