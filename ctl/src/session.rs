//! The session of a command, which is its global options and its deployment, and who runs it.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use anyhow::{Context as _, Result, ensure};
use gethostname::gethostname;
use tokio::sync::OnceCell;
use workspace_management::config::read_variable;

use crate::{
    deployment::Deployment, errors::RequestResultExt as _, text::escape, usage::UsageError,
};

/// The global options, and the deployment, which is found when a command first asks for it. Commands
/// check their arguments before they ask, so that a mistyped argument causes no request.
#[derive(clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Session {
    /// Use this CloudFormation stack, or else the one in WORKSPACECTL_STACK
    #[arg(long, global = true, value_name = "NAME")]
    stack: Option<String>,
    /// Print JSON, with times in RFC 3339
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print times as stored (UTC), instead of relative times such as `3 days ago`
    #[arg(long, global = true)]
    pub(crate) utc: bool,
    /// Do not ask for confirmation
    #[arg(long, global = true)]
    yes: bool,
    /// Show all causes of an error, and library warnings
    #[arg(long, global = true)]
    pub(crate) verbose: bool,
    /// Empty until a command has asked for the deployment.
    #[arg(skip)]
    pub(crate) known_deployment: OnceCell<Deployment>,
}

impl Session {
    /// The deployment to work on.
    pub(crate) async fn deployment(&self) -> Result<&Deployment> {
        let variable = || read_variable("WORKSPACECTL_STACK");
        let stack = self.stack.clone().or_else(variable);
        self.known_deployment
            .get_or_try_init(|| Deployment::find(stack.as_deref()))
            .await
    }

    /// The deployment to work on, and who changes it.
    pub(crate) async fn deployment_and_operator(&self) -> Result<(&Deployment, Operator)> {
        let deployment = self.deployment().await?;
        let operator = Operator::identify(deployment).await?;
        Ok((deployment, operator))
    }

    /// Checks that the operator can confirm the command, before the command does anything.
    /// Fails if there is neither `--yes` nor a terminal.
    pub(crate) fn check_can_confirm(&self) -> Result<(), UsageError> {
        if self.yes || (io::stdin().is_terminal() && io::stderr().is_terminal()) {
            return Ok(());
        }
        let message = "the command asks for confirmation: pass --yes, or run it in a terminal";
        Err(UsageError::new(message))
    }

    /// Says what will happen, and on which deployment. Then asks the operator to type a word,
    /// unless the command line has `--yes`. Escapes both texts.
    pub(crate) fn confirm(&self, what: &str, word: &str) -> Result<()> {
        if self.yes {
            self.say(what);
            return Ok(());
        }
        let question = self.on_deployment(what);
        eprint!("{question} Type {} to confirm: ", escape(word));
        io::stderr().flush()?;
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line)?;
        ensure!(line.trim() == word, "not confirmed: nothing was changed");
        Ok(())
    }

    /// Prints what the command did or will do, and on which deployment. Escapes the text.
    pub(crate) fn say(&self, what: &str) {
        eprintln!("{}", self.on_deployment(what));
    }

    fn on_deployment(&self, what: &str) -> String {
        let deployment = self.known_deployment.get();
        let name = deployment.map_or("", |deployment| &deployment.name);
        escape(&format!("{name}: {what}"))
    }
}

/// Who runs a command. The records that the command writes name the operator and the run.
#[derive(Debug, Clone)]
pub struct Operator {
    /// The ARN of the AWS identity or, for a local deployment, the user and the host.
    pub name: String,
    /// A random id of this run, which records store as `request_id`, `updated_request_id` and so on.
    pub run_id: String,
}

impl Operator {
    /// Identifies who runs this command on a deployment.
    async fn identify(deployment: &Deployment) -> Result<Self> {
        let name = match &deployment.sts {
            Some(client) => {
                let identity = client.get_caller_identity().send().await;
                let identity = identity.explain("cannot determine your AWS identity")?;
                identity.arn.context("your AWS identity has no ARN")?
            }
            None => {
                let mut variables = ["USER", "USERNAME", "LOGNAME"].into_iter();
                let user = variables.find_map(read_variable);
                let user = user.as_deref().unwrap_or("unknown");
                format!("{user}@{}", gethostname().to_string_lossy())
            }
        };
        Ok(Self {
            name,
            run_id: random_id()?,
        })
    }
}

/// A random id of 16 hexadecimal digits.
pub(crate) fn random_id() -> Result<String> {
    let id = getrandom::u64().context("the operating system provides no random numbers")?;
    Ok(format!("{id:016x}"))
}
