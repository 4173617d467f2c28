//! What every command on a deployment starts from.

use anyhow::{Context as _, Result};
use gethostname::gethostname;
use tokio::sync::OnceCell;

use crate::deployment::{Deployment, variable};

/// The global options, and the deployment once a command has asked for it. A command checks its own
/// arguments first, so that a mistyped one is reported without contacting anything.
pub(crate) struct Session {
    /// Whether to print JSON.
    pub(crate) json: bool,
    /// Whether tables show times as stored, in UTC, and not how long ago they were.
    pub(crate) utc: bool,
    /// The CloudFormation stack that the operator named.
    stack: Option<String>,
    deployment: OnceCell<Deployment>,
}

impl Session {
    pub(crate) fn new(stack: Option<String>, json: bool, utc: bool) -> Self {
        Self {
            json,
            utc,
            stack,
            deployment: OnceCell::new(),
        }
    }

    /// The deployment to work on.
    pub(crate) async fn deployment(&self) -> Result<&Deployment> {
        let find = || Deployment::find(self.stack.as_deref());
        self.deployment.get_or_try_init(find).await
    }

    /// What error messages call the deployment, if a command has used it.
    pub(crate) fn deployment_name(&self) -> Option<&str> {
        self.deployment
            .get()
            .map(|deployment| deployment.name.as_str())
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
    pub(crate) async fn of(deployment: &Deployment) -> Result<Self> {
        let name = match &deployment.sts {
            Some(client) => {
                let identity = client.get_caller_identity().send().await;
                let identity = identity.context("cannot find out your AWS identity")?;
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
