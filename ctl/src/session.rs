//! What every command on a deployment starts from.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use anyhow::{Context as _, Result, bail};
use gethostname::gethostname;
use tokio::sync::OnceCell;
use workspace_management::config::variable;

use crate::{deployment::Deployment, errors::Response as _, text::escape, usage::UsageError};

const STACK_HELP: &str = "Use this CloudFormation stack [env: WORKSPACECTL_STACK]";

/// The options of all commands, and the deployment once a command has asked for it. A command checks
/// its own arguments first, so that a mistyped one is reported without contacting anything.
#[derive(clap::Args)]
pub(crate) struct Session {
    #[arg(long, global = true, value_name = "NAME", help = STACK_HELP)]
    stack: Option<String>,
    /// Print JSON, with times in RFC 3339
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print dates instead of ages in tables
    #[arg(long, global = true)]
    pub(crate) utc: bool,
    /// Do not ask for confirmation
    #[arg(long, global = true)]
    yes: bool,
    /// Show all causes of an error, and library warnings
    #[arg(long, global = true)]
    pub(crate) verbose: bool,
    #[arg(skip)]
    pub(crate) deployment: OnceCell<Deployment>,
}

impl Session {
    /// The deployment to work on.
    pub(crate) async fn deployment(&self) -> Result<&Deployment> {
        let stack = self.stack.clone();
        let stack = stack.or_else(|| variable("WORKSPACECTL_STACK"));
        let find = || Deployment::find(stack.as_deref());
        self.deployment.get_or_try_init(find).await
    }

    /// The deployment to work on, and who changes it.
    pub(crate) async fn start(&self) -> Result<(&Deployment, Operator)> {
        let deployment = self.deployment().await?;
        let operator = Operator::of(deployment).await?;
        Ok((deployment, operator))
    }

    /// Checks that the command can ask for a confirmation, before it does anything.
    ///
    /// # Errors
    /// If it would have to ask, and there is no terminal.
    pub(crate) fn check_confirmation(&self) -> Result<(), UsageError> {
        if self.yes || (io::stdin().is_terminal() && io::stderr().is_terminal()) {
            return Ok(());
        }
        let message = "the command asks: confirm it with --yes, or run it on a terminal";
        Err(UsageError(message.to_owned()))
    }

    /// Says what will happen on which deployment, and asks the operator to type a word, unless the
    /// command line has `--yes`. Escapes both texts.
    pub(crate) fn confirm(&self, what: &str, word: &str) -> Result<()> {
        if self.yes {
            self.say(what);
            return Ok(());
        }
        let (question, word_shown) = (self.on_deployment(what), escape(word));
        eprint!("{question} Type {word_shown} to confirm: ");
        io::stderr().flush()?;
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line)?;
        if line.trim() != word {
            bail!("nothing was changed, because it was not confirmed");
        }
        Ok(())
    }

    /// Prints what a command did or will do, and on which deployment. Escapes the text.
    pub(crate) fn say(&self, what: &str) {
        eprintln!("{}", self.on_deployment(what));
    }

    fn on_deployment(&self, what: &str) -> String {
        let deployment = self.deployment.get();
        let name = deployment.map_or("", |deployment| &deployment.name);
        escape(&format!("{name}: {what}"))
    }
}

/// Who runs a command, for the records that it writes.
#[derive(Debug, Clone)]
pub struct Operator {
    /// The ARN of the AWS identity or, for a local deployment, the user and the host.
    pub name: String,
    /// A random id of this run. Records have it instead of the id of a request.
    pub run_id: String,
}

impl Operator {
    /// Identifies the operator of a deployment.
    async fn of(deployment: &Deployment) -> Result<Self> {
        let name = match &deployment.sts {
            Some(client) => {
                let identity = client.get_caller_identity().send().await;
                let identity =
                    identity.or_fail(|| "cannot find out your AWS identity".to_owned())?;
                identity.arn.context("your AWS identity has no ARN")?
            }
            None => format!("{}@{}", user(), gethostname().to_string_lossy()),
        };
        Ok(Self {
            name,
            run_id: random_id()?,
        })
    }
}

fn user() -> String {
    let mut variables = ["USER", "USERNAME", "LOGNAME"].into_iter();
    variables
        .find_map(variable)
        .unwrap_or_else(|| "unknown".to_owned())
}

/// A random id of 16 hexadecimal digits.
pub(crate) fn random_id() -> Result<String> {
    let id = getrandom::u64().context("the operating system provides no random numbers")?;
    Ok(format!("{id:016x}"))
}
