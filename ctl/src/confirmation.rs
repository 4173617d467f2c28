//! Asks before what cannot be undone.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use anyhow::{Result, bail};

use crate::{output::escape, usage::UsageError};

/// The option of commands that change or delete records. Scripts can give it to those that never ask.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Confirmation {
    /// Do not ask for confirmation
    #[arg(long, global = true)]
    yes: bool,
}

impl Confirmation {
    /// Checks that the command can ask, before it does anything.
    ///
    /// # Errors
    /// A [`UsageError`] if it would have to ask, and there is no terminal.
    pub(crate) fn check(self) -> Result<(), UsageError> {
        if self.yes || (io::stdin().is_terminal() && io::stderr().is_terminal()) {
            return Ok(());
        }
        let message = "this cannot be undone: confirm it with --yes, or run it on a terminal";
        Err(UsageError(message.to_owned()))
    }

    /// Asks the operator to type a word, unless the command line has `--yes`. Escapes both texts.
    pub(crate) fn ask(self, question: &str, word: &str) -> Result<()> {
        let question = escape(question);
        if self.yes {
            eprintln!("{question}");
            return Ok(());
        }
        let shown = escape(word);
        eprint!("{question} This cannot be undone. Type {shown} to confirm: ");
        io::stderr().flush()?;
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line)?;
        if line.trim() != word {
            bail!("nothing was changed, because it was not confirmed");
        }
        Ok(())
    }
}
