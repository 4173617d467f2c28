//! Messages on standard error.

use std::io::{self, Write as _};

/// Prints a message and a line break.
pub(crate) fn print_message(text: &str) {
    print_prompt(&format!("{text}\n"));
}

/// Prints text to which the operator answers on the same line. Ignores failures, because what a
/// command does must not depend on whether standard error can be written.
pub(crate) fn print_prompt(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}
