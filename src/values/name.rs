//! Names, and the ids that are derived from them.

use sha2::{Digest as _, Sha256};
use unicode_script::{Script, UnicodeScript as _};

use super::{SingleLine, ok_unless, reject_if, trim};
use crate::error::Violation;

/// A name: a line of 1 to 100 characters, one of which is visible. Surrounding white space is
/// trimmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DisplayName(SingleLine<100>);

impl DisplayName {
    pub(super) fn parse(text: &str) -> Result<Self, Vec<Violation>> {
        let name = SingleLine::parse(trim(text))?;
        let is_invisible = !name.as_str().contains(is_visible);
        let violation = reject_if(is_invisible, "must contain a visible character");
        ok_unless([violation], || Self(name))
    }

    pub(crate) fn into_string(self) -> String {
        self.0.0
    }
}

/// A name with a letter or a digit, and the id that is derived from it: "My Team Näme" has the id
/// `my-team-name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NameWithId {
    name: DisplayName,
    id: String,
}

impl NameWithId {
    pub(super) fn parse(text: &str) -> Result<Self, Vec<Violation>> {
        let name = DisplayName::parse(text)?;
        let is_letter_or_digit = |c: char| c.is_alphanumeric() && is_visible(c);
        let has_none = !name.0.as_str().contains(is_letter_or_digit);
        let violation = reject_if(has_none, "must contain a letter or a digit");
        let id = id_of(name.0.as_str());
        ok_unless([violation], || Self { name, id })
    }

    /// The id (lower-case ASCII letters, digits and single hyphens), then the name.
    pub(crate) fn into_id_and_name(self) -> (String, String) {
        (self.id, self.name.into_string())
    }
}

/// The id of a name: its slug. A hash is appended in two cases: the name is not Latin, because many
/// such names share a slug, or the slug is longer than an `Identifier`.
fn id_of(name: &str) -> String {
    /// The maximum length of an `Identifier`.
    const MAX: usize = 128;
    /// The maximum length of the slug before a hash.
    const MAX_BEFORE_HASH: usize = 100;
    let slug = slug::slugify(name);
    if is_latin(name) && (1..=MAX).contains(&slug.len()) {
        return slug;
    }
    let hash = hex::encode(&Sha256::digest(name)[..4]);
    let start = slug.get(..MAX_BEFORE_HASH).unwrap_or(&slug);
    match start.trim_end_matches('-') {
        // The characters have no transliteration.
        "" => hash,
        start => format!("{start}-{hash}"),
    }
}

/// Whether every letter and digit of a text is Latin or common to several scripts.
fn is_latin(text: &str) -> bool {
    let is_other = |c: char| {
        let scripts = [Script::Latin, Script::Common, Script::Inherited];
        c.is_alphanumeric() && !scripts.contains(&c.script())
    };
    text.is_ascii() || !text.contains(is_other)
}

/// Whether a character is visible on its own. White space is not, nor are control characters and
/// those that Unicode calls ignorable because they only affect how others are shown.
pub fn is_visible(c: char) -> bool {
    let is_invisible = c.is_whitespace()
        || c.is_control()
        // Default_Ignorable_Code_Point in DerivedCoreProperties.txt of Unicode 17
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
        // a blank Braille pattern, and marks of annotations
        || matches!(c, '\u{2800}' | '\u{fff9}'..='\u{fffb}');
    !is_invisible
}

/// Text with its control characters, line separators and characters that reorder or hide text
/// escaped, so that it fits a line and cannot control a terminal.
pub fn escape(text: &str) -> String {
    let escaped = |c: char| match is_escaped(c) {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(escaped).collect()
}

/// Whether a character can control a terminal, or reorder or hide text.
pub fn is_escaped(c: char) -> bool {
    match c {
        '\u{2028}' | '\u{2029}' => true,  // line separators
        '\u{fe00}'..='\u{fe0f}' => false, // how a symbol looks, such as an emoji
        _ if c.is_control() => true,
        _ => !is_visible(c) && !c.is_whitespace(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::{Identifier, tests::details};

    fn id(name: &str) -> String {
        NameWithId::parse(name).unwrap().into_id_and_name().0
    }

    #[test]
    fn the_id_of_a_latin_name_is_its_slug() {
        for (name, expected) in [
            ("My TEam Näme", "my-team-name"),
            ("  Research  Team  ", "research-team"),
            ("C++", "c"),
            ("C#", "c"),
            ("a--b__c", "a-b-c"),
            ("-a-", "a"),
            ("2026", "2026"),
            ("½ x", "1-2-x"),
            ("👍 up", "1-up"),
            ("Café", "cafe"),
            ("Cafe\u{301}", "cafe"),
            (&"ß".repeat(64), &"ss".repeat(64)),
        ] {
            assert_eq!(id(name), expected, "{name}");
        }
    }

    /// The first column can have several names with the same id, each in backticks.
    #[test]
    fn the_ids_in_the_documentation_are_right() {
        let documentation = include_str!("../../docs/api.md");
        let (_, table) = documentation.split_once("| name | id | |").unwrap();
        let rows = table
            .lines()
            .skip(2)
            .take_while(|line| line.starts_with('|'));
        let mut checked = 0;
        for row in rows {
            let cells: Vec<_> = row.split('|').map(str::trim).collect();
            let expected = cells[2].trim_matches('`');
            for name in cells[1].split(", ") {
                // Other cells describe a name.
                let name = name
                    .strip_prefix('`')
                    .and_then(|name| name.strip_suffix('`'));
                if let Some(name) = name {
                    assert_eq!(id(name), expected, "{row}");
                    checked += 1;
                }
            }
        }
        assert!(checked >= 9, "{checked}");
        let long_id = id(&"語".repeat(100));
        let (_, hash) = long_id.rsplit_once('-').unwrap();
        assert!(
            documentation.contains(&format!("| `yu-yu-yu-…-yu-{hash}` |")),
            "{long_id}"
        );
    }

    /// Each line of the file has a script or a topic, and then names, each with its id, separated by tabs.
    #[test]
    fn ids_are_permanent() {
        let mut checked = 0;
        for line in include_str!("ids.tsv").lines() {
            let (_, names) = line.split_once('\t').unwrap();
            let names: Vec<_> = names.split('\t').collect();
            for pair in names.chunks_exact(2) {
                let advice = "docs/decisions.md says what to do if an update changes an id";
                assert_eq!(id(pair[0]), pair[1], "{}: {advice}", pair[0]);
                checked += 1;
            }
        }
        assert!(checked >= 297, "{checked}");
    }

    #[test]
    fn the_id_of_a_name_that_is_not_latin_ends_with_a_hash() {
        for (name, expected) in [
            ("市场", "shi-chang-"),
            ("试场", "shi-chang-"),
            ("東京", "dong-jing-"),
            ("東経", "dong-jing-"),
            ("C++ и C#", "c-i-c-"),
            ("٣", "3-"),
        ] {
            let id = id(name);
            assert_eq!(id.len(), expected.len() + 8, "{name}: {id}");
            assert!(id.starts_with(expected), "{name}: {id}");
            assert!(Identifier::new(&id).is_some(), "{name}: {id}");
        }
        assert_ne!(id("市场"), id("试场"));
        assert_ne!(id("東京"), id("東経"));
        assert_eq!(id(" 市场 "), id("市场"));
    }

    #[test]
    fn a_long_slug_is_cut_before_the_hash() {
        let chinese = id(&"語".repeat(100));
        assert!(chinese.starts_with("yu-yu-yu"), "{chinese}");
        let latin = id(&"ß".repeat(65));
        for id in [&chinese, &latin] {
            let (start, hash) = id.rsplit_once('-').unwrap();
            assert!(start.len() <= 100 && !start.ends_with('-'), "{id}");
            assert_eq!(hash.len(), 8, "{id}");
        }
        assert!(latin.starts_with(&"s".repeat(100)), "{latin}");
    }

    #[test]
    fn a_name_without_a_transliteration_has_a_hash_as_its_id() {
        let id = id("\u{31350}\u{31351}");
        assert_eq!(id.len(), 8, "{id}");
        assert!(id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    }

    #[test]
    fn a_name_needs_a_letter_or_a_digit_to_have_an_id() {
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
        for invisible in [
            "\u{200b}",
            "\u{3164}",
            "\u{2060}\u{ad}",
            "\u{2800} \u{e0020}",
        ] {
            let details = details(DisplayName::parse(invisible));
            assert_eq!(
                details,
                ["must contain a visible character"],
                "{invisible:?}"
            );
        }
        for visible in ["🎉", "…", "a\u{200b}", "한"] {
            assert!(DisplayName::parse(visible).is_ok(), "{visible:?}");
        }
    }
}
