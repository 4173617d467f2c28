//! Names, and the ids that are derived from them.

use sha2::{Digest as _, Sha256};

use super::{SingleLine, trim};
use crate::{
    error::{Rule, Violation},
    text::is_visible,
};

/// A line of 1 to 100 characters, at least one of them visible. Surrounding white space is trimmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisplayName(SingleLine<100>);

impl DisplayName {
    /// Parses a name.
    ///
    /// # Errors
    /// At least one violation.
    pub fn parse(text: &str) -> Result<Self, Vec<Violation>> {
        let name = SingleLine::parse(trim(text))?;
        if name.as_str().contains(is_visible) {
            return Ok(Self(name));
        }
        let detail = "must contain a visible character";
        Err(vec![Violation::new(Rule::Pattern, detail)])
    }

    /// The name.
    pub fn into_string(self) -> String {
        self.0.0
    }
}

/// A name with at least one letter or digit, and the id that is derived from it, such as
/// `research-team` from "Research Team".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameWithId {
    name: DisplayName,
    id: String,
}

impl NameWithId {
    /// Parses a name and derives the id.
    ///
    /// # Errors
    /// At least one violation.
    pub fn parse(text: &str) -> Result<Self, Vec<Violation>> {
        let name = DisplayName::parse(text)?;
        let trimmed = name.0.as_str();
        // Some letters are invisible, such as the Hangul filler U+3164.
        if trimmed.contains(|c: char| c.is_alphanumeric() && is_visible(c)) {
            let id = derive_id(trimmed);
            return Ok(Self { name, id });
        }
        let detail = "must contain a letter or a digit";
        Err(vec![Violation::new(Rule::Pattern, detail)])
    }

    /// The name and the id. The id contains lower-case ASCII letters, digits and single hyphens.
    pub fn into_name_and_id(self) -> (String, String) {
        (self.name.into_string(), self.id)
    }
}

/// Derives the id of a name by the rule in docs/api.md. Without the hash, `C++` and `C#` would have
/// the same id. An id has at most 111 characters, fewer than an `Identifier` can have.
fn derive_id(name: &str) -> String {
    let runs = name.split(|c: char| !c.is_ascii_alphanumeric());
    let mut parts: Vec<_> = runs
        .filter(|run| !run.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    if name.contains(|c: char| !c.is_ascii_alphanumeric() && !" -_.".contains(c)) {
        parts.push(hex::encode(&Sha256::digest(name)[..5]));
    }
    parts.join("-")
}
