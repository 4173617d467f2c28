//! Decides which characters are visible, and escapes text for responses, logs and terminals.

/// Whether a character is visible on its own: not white space, not a control character, and not one
/// that only affects how other characters are shown.
pub fn is_visible(c: char) -> bool {
    // the blank Braille pattern, and interlinear annotation characters
    let is_other_invisible = matches!(c, '\u{2800}' | '\u{fff9}'..='\u{fffb}');
    !c.is_whitespace() && !c.is_control() && !is_default_ignorable(c) && !is_other_invisible
}

/// Whether a character is a `Default_Ignorable_Code_Point` (DerivedCoreProperties.txt, Unicode 17).
fn is_default_ignorable(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Escapes control characters, line separators and characters that reorder or hide text. The result
/// fits on one line and cannot control a terminal.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if needs_escape(c) {
            escaped.extend(c.escape_default());
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Escapes text like [`escape`], and cuts off what is longer than 400 bytes, because the `detail` of
/// an error has at most 1,000 characters.
pub(crate) fn shorten(text: &str) -> String {
    const MAX_BYTES: usize = 400;
    let mut shortened = String::new();
    for c in text.chars() {
        let escaped = escape(&c.to_string());
        if shortened.len() + escaped.len() > MAX_BYTES {
            return shortened + "…";
        }
        shortened += &escaped;
    }
    shortened
}

/// Whether a character can control a terminal, or reorder or hide text.
pub fn needs_escape(c: char) -> bool {
    match c {
        '\u{2028}' | '\u{2029}' => true, // line separators
        // variation selectors, which choose how a symbol such as an emoji looks
        '\u{fe00}'..='\u{fe0f}' => false,
        _ if c.is_control() => true,
        _ if c.is_whitespace() => false,
        _ => !is_visible(c),
    }
}
