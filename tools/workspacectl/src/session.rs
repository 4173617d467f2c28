//! What a command works with: its session (global arguments and deployment) and its run.

use std::io::{self, BufRead as _, IsTerminal as _};

use anyhow::{Context as _, Result, ensure};
use gethostname::gethostname;
use tokio::sync::OnceCell;
use workspace_management::config::read_variable;

use crate::{
    deployment::Deployment,
    errors::{RequestResultExt as _, UsageError},
    message::{print_message, print_prompt},
    text::escape,
};

#[derive(clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
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

/// The global arguments and the deployment, which is resolved when a command first asks for it.
/// Commands check their arguments first, so that a mistyped argument causes no request.
pub(crate) struct Session {
    pub(crate) global_args: GlobalArgs,
    /// Empty until a command has asked for the deployment.
    pub(crate) resolved_deployment: OnceCell<Deployment>,
}

impl Session {
    /// The deployment to work on. Resolves it on the first call.
    pub(crate) async fn deployment(&self) -> Result<&Deployment> {
        // Not clap's `env`, which would take an empty variable as the name of a stack.
        let from_environment = || read_variable("WORKSPACECTL_STACK");
        let stack = self.global_args.stack.clone().or_else(from_environment);
        self.resolved_deployment
            .get_or_try_init(|| Deployment::resolve(stack.as_deref()))
            .await
    }

    /// The deployment to work on, and a new run with the identity of the operator.
    pub(crate) async fn deployment_and_run(&self) -> Result<(&Deployment, Run)> {
        let deployment = self.deployment().await?;
        Ok((deployment, Run::begin(deployment).await?))
    }

    /// Checks, before a command does anything, that the operator will be able to confirm it. Fails
    /// if there is neither `--yes` nor a terminal.
    pub(crate) fn check_can_confirm(&self) -> Result<(), UsageError> {
        if self.global_args.yes || (io::stdin().is_terminal() && io::stderr().is_terminal()) {
            return Ok(());
        }
        let message = "this command needs confirmation: pass --yes, or run it in a terminal";
        Err(UsageError(message.to_owned()))
    }

    /// Prints `text`, which says what will happen, and asks the operator to type `answer`. Fails if
    /// the operator types anything else. With `--yes`, only prints the text.
    pub(crate) fn confirm(&self, text: &str, answer: &str) -> Result<()> {
        if self.global_args.yes {
            self.report(text);
            return Ok(());
        }
        let text = self.escaped_with_deployment_name(text);
        print_prompt(&format!("{text} Type {} to confirm: ", escape(answer)));
        let mut line = Vec::new();
        io::stdin().lock().read_until(b'\n', &mut line)?;
        let is_confirmed = String::from_utf8_lossy(&line).trim() == answer;
        ensure!(is_confirmed, "not confirmed: nothing was changed");
        Ok(())
    }

    /// Prints `<deployment>: <text>`, escaped, to standard error.
    pub(crate) fn report(&self, text: &str) {
        print_message(&self.escaped_with_deployment_name(text));
    }

    fn escaped_with_deployment_name(&self, text: &str) -> String {
        let deployment = self.resolved_deployment.get();
        let name = deployment.map_or("no deployment", |deployment| &deployment.display_name);
        escape(&format!("{name}: {text}"))
    }
}

/// One execution of a command, and who started it.
#[derive(Debug, Clone)]
pub struct Run {
    /// A random id, which is stored in the records that the run creates, edits or restores.
    pub id: String,
    /// The ARN of the AWS identity or, if the tables are not on AWS, `user@host`.
    pub operator: String,
}

impl Run {
    /// Begins a run and looks up the identity of the operator.
    async fn begin(deployment: &Deployment) -> Result<Self> {
        let operator = match &deployment.sts {
            Some(client) => {
                let result = client.get_caller_identity().send().await;
                let identity = result.request_context("cannot determine your AWS identity")?;
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
