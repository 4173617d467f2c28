//! Names, and the ids that are derived from them.

use sha2::{Digest as _, Sha256};
use unicode_script::{Script, UnicodeScript as _};

use super::{MAX_IDENTIFIER_LENGTH, SingleLine, trim};
use crate::{
    error::{Rule, Violation},
    text::is_visible,
};

/// A line of 1 to 100 characters, at least one of them visible. Surrounding white space is trimmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DisplayName(SingleLine<100>);

impl DisplayName {
    pub(super) fn parse(text: &str) -> Result<Self, Vec<Violation>> {
        let name = SingleLine::parse(trim(text))?;
        if name.as_str().contains(is_visible) {
            return Ok(Self(name));
        }
        let detail = "must contain a visible character";
        Err(vec![Violation::new(Rule::Pattern, detail)])
    }

    pub(crate) fn into_string(self) -> String {
        self.0.0
    }
}

/// A name with at least one letter or digit, and the id that is derived from it, such as
/// `my-team-name` from "My Team Näme".
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NameWithId {
    name: DisplayName,
    id: String,
}

impl NameWithId {
    pub(super) fn parse(text: &str) -> Result<Self, Vec<Violation>> {
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
    pub(crate) fn into_name_and_id(self) -> (String, String) {
        (self.name.into_string(), self.id)
    }
}

/// Derives the id of a name from its slug. A hash is appended if the slug is empty or too long for
/// an `Identifier`, or if the name is not Latin, because many such names share a slug.
fn derive_id(name: &str) -> String {
    /// The maximum length of the slug before a hash, so that both fit into an `Identifier`.
    const MAX_BEFORE_HASH: usize = 100;
    let slug = slug::slugify(name);
    if is_latin(name) && (1..=MAX_IDENTIFIER_LENGTH).contains(&slug.len()) {
        return slug;
    }
    let hash = hex::encode(&Sha256::digest(name)[..4]);
    let prefix = slug.get(..MAX_BEFORE_HASH).unwrap_or(&slug);
    match prefix.trim_end_matches('-') {
        // No character of the name has a transliteration.
        "" => hash,
        prefix => format!("{prefix}-{hash}"),
    }
}

/// Whether every letter and digit of a text is Latin or common to several scripts.
fn is_latin(text: &str) -> bool {
    const SCRIPTS: [Script; 3] = [Script::Latin, Script::Common, Script::Inherited];
    // A fast path, because most names are ASCII and looking up scripts takes longer.
    if text.is_ascii() {
        return true;
    }
    let mut letters_and_digits = text.chars().filter(|c| c.is_alphanumeric());
    letters_and_digits.all(|c| SCRIPTS.contains(&c.script()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::{Identifier, tests::details};

    fn id(name: &str) -> String {
        NameWithId::parse(name).unwrap().into_name_and_id().1
    }

    /// The first cell of a row can have several names with the same id, each in backticks.
    #[test]
    fn the_ids_in_the_documentation_are_right() {
        let documentation = include_str!("../../docs/api.md");
        let (_, table) = documentation.split_once("| name | id | note |").unwrap();
        let mut checked = 0;
        for row in table.lines().skip(2) {
            if !row.starts_with('|') {
                break;
            }
            let cells: Vec<_> = row.split('|').map(str::trim).collect();
            let expected = cells[2].trim_matches('`');
            for name in cells[1].split(", ") {
                // Text without backticks describes a name instead of quoting it.
                if let Some(name) = name.strip_prefix('`')
                    && let Some(name) = name.strip_suffix('`')
                {
                    assert_eq!(id(name), expected, "{row}");
                    checked += 1;
                }
            }
        }
        assert!(checked >= 9, "{checked}");
        let long_id = id(&"語".repeat(100));
        let (_, hash) = long_id.rsplit_once('-').unwrap();
        let cell = format!("| `yu-yu-yu-…-yu-{hash}` |");
        assert!(documentation.contains(&cell), "{long_id}");
    }

    /// A line of the file has a topic, and then names, each followed by its id, separated by tabs.
    #[test]
    fn ids_are_permanent() {
        let mut checked = 0;
        for line in include_str!("ids.tsv").lines() {
            let (_, names) = line.split_once('\t').unwrap();
            let names: Vec<_> = names.split('\t').collect();
            for pair in names.chunks_exact(2) {
                let advice = "docs/decisions.md says what to do if an update changes an id";
                assert_eq!(id(pair[0]), pair[1], "{}: {advice}", pair[0]);
                assert!(Identifier::parse(pair[1]).is_some(), "{}", pair[1]);
                checked += 1;
            }
        }
        assert!(checked >= 297, "{checked}");
    }

    #[test]
    fn names_with_an_id_need_a_letter_or_a_digit() {
        for name in ["---", "…", "🎉", "\u{3164}!", "\u{fe0f}☃"] {
            let details = details(NameWithId::parse(name));
            assert_eq!(details, ["must contain a letter or a digit"], "{name:?}");
        }
    }

    #[test]
    fn names_are_trimmed_before_they_are_checked() {
        let padded = format!(" \t\u{feff}{}\u{3000}\u{2028}", "x".repeat(100));
        let name = DisplayName::parse(&padded).unwrap();
        assert_eq!(name.into_string(), "x".repeat(100));
        for blank in ["", " \u{a0} ", "\u{feff}"] {
            assert_eq!(details(DisplayName::parse(blank)), ["must not be empty"]);
        }
    }

    #[test]
    fn names_need_a_visible_character() {
        let expected = ["must contain a visible character"];
        for name in [
            "\u{200b}",
            "\u{3164}",
            "\u{2060}\u{ad}",
            "\u{2800} \u{e0020}",
        ] {
            assert_eq!(details(DisplayName::parse(name)), expected, "{name:?}");
        }
        for visible in ["🎉", "…", "a\u{200b}", "한"] {
            assert!(DisplayName::parse(visible).is_ok(), "{visible:?}");
        }
    }
}
