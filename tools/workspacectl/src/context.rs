//! What a command works with: the global options, the deployment, and the run.

use std::io::{self, BufRead as _, IsTerminal as _};

use anyhow::{Context as _, Result, ensure};
use gethostname::gethostname;
use workspace_management::{api_key::ApiKey, config::read_variable, values::trim};

use crate::{
    deployment::Deployment,
    errors::{RequestResultExt as _, UsageError},
    message::{print_message, print_prompt},
    text::escape,
};

const MAX_REASON_LENGTH: usize = 500;

#[derive(clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalOptions {
    /// The CloudFormation stack to work on [default: the value of WORKSPACECTL_STACK, if set]
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
    /// Show library warnings and all causes of an error
    #[arg(long, global = true)]
    pub(crate) verbose: bool,
}

impl GlobalOptions {
    /// Resolves the deployment. Commands check their arguments before, including files and standard
    /// input, so that a mistake causes no request.
    pub(crate) async fn connect(self) -> Result<Context> {
        // Not clap's `env`, which would take an empty variable as the name of a stack.
        let from_environment = || read_variable("WORKSPACECTL_STACK");
        let stack = self.stack.clone().or_else(from_environment);
        Ok(Context {
            deployment: Deployment::resolve(stack.as_deref()).await?,
            options: self,
        })
    }

    /// Checks, before a command does anything, that the operator will be able to confirm it. Fails
    /// if there is neither `--yes` nor a terminal.
    pub(crate) fn check_can_confirm(&self) -> Result<(), UsageError> {
        if self.yes || (io::stdin().is_terminal() && io::stderr().is_terminal()) {
            return Ok(());
        }
        let message = "this command needs confirmation: pass --yes, or run it in a terminal";
        Err(UsageError(message.to_owned()))
    }
}

/// What a command works with.
pub(crate) struct Context {
    pub(crate) deployment: Deployment,
    pub(crate) options: GlobalOptions,
}

impl Context {
    /// Begins a run and looks up the identity of the operator. For commands that change something.
    /// Fails if the deployment has no history.
    pub(crate) async fn begin_run(&self, args: ReasonArgs) -> Result<Run> {
        Run::begin(&self.deployment, args.reason).await
    }

    /// Prints `text`, which says what will happen, and asks the operator to type `answer`. Fails if
    /// the operator types anything else. With `--yes`, only prints the text.
    pub(crate) fn confirm(&self, text: &str, answer: &str) -> Result<()> {
        if self.options.yes {
            self.report(text);
            return Ok(());
        }
        let text = self.with_deployment(text);
        print_prompt(&format!("{text} Type {} to confirm: ", escape(answer)));
        let mut line = Vec::new();
        io::stdin().lock().read_until(b'\n', &mut line)?;
        let is_confirmed = String::from_utf8_lossy(&line).trim() == answer;
        ensure!(is_confirmed, "not confirmed: nothing was changed");
        Ok(())
    }

    /// Prints `<deployment>: <text>`, escaped, to standard error.
    pub(crate) fn report(&self, text: &str) {
        print_message(&self.with_deployment(text));
    }

    fn with_deployment(&self, text: &str) -> String {
        escape(&format!("{}: {text}", self.deployment))
    }
}

/// The option of every command that changes something.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ReasonArgs {
    /// Why, for the history: at most 500 characters
    #[arg(long, value_name = "TEXT", global = true, value_parser = parse_reason)]
    reason: Option<String>,
}

fn parse_reason(text: &str) -> Result<String, String> {
    let text = trim(text);
    let length = text.chars().count();
    if !(1..=MAX_REASON_LENGTH).contains(&length) {
        return Err(format!(
            "must have 1 to {MAX_REASON_LENGTH} characters, and has {length}"
        ));
    }
    if ApiKey::is_in(text) {
        return Err("must not contain an API key".to_owned());
    }
    Ok(text.to_owned())
}

/// One execution of a command, and who started it.
#[derive(Debug, Clone)]
pub struct Run {
    /// A random id, which is stored in the records that the run creates, edits or restores.
    pub id: String,
    /// The ARN of the AWS identity or, if the tables are not on AWS, `user@host`.
    pub operator: String,
    /// Why the operator changes something.
    pub reason: Option<String>,
    /// For how many days entries of the history are kept.
    pub history_days: u32,
}

impl Run {
    async fn begin(deployment: &Deployment, reason: Option<String>) -> Result<Self> {
        let history_days = deployment.history_days().await?;
        let operator = match deployment.aws_config() {
            Some(config) => {
                let client = aws_sdk_sts::Client::new(config);
                let result = client.get_caller_identity().send().await;
                let message = "cannot determine your AWS identity";
                let identity = result.request_context(deployment, message)?;
                identity.arn.context("your AWS identity has no ARN")?
            }
            None => {
                let user = ["USER", "USERNAME", "LOGNAME"]
                    .into_iter()
                    .find_map(read_variable)
                    .or_else(user_name)
                    .unwrap_or_else(|| "unknown".to_owned());
                format!("{user}@{}", gethostname().to_string_lossy())
            }
        };
        Ok(Self {
            id: random_id()?,
            operator,
            reason,
            history_days,
        })
    }
}

/// The name of the user who runs this process, or the user's number if it has no name.
fn user_name() -> Option<String> {
    #[cfg(unix)]
    {
        let id = uzers::get_current_uid();
        let name = uzers::get_user_by_uid(id).map(|user| user.name().to_string_lossy().into());
        name.or_else(|| Some(id.to_string()))
    }
    #[cfg(not(unix))]
    None
}

/// A random id of 16 hexadecimal digits.
pub(crate) fn random_id() -> Result<String> {
    Ok(format!("{:016x}", getrandom::u64()?))
}
