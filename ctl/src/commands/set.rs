//! `set`: changes parameters of a stack. Its template, its code and its other parameters do not
//! change.

mod parameters;
mod update;

use std::collections::HashSet;

use anyhow::{Context as _, Result, bail};
use aws_sdk_cloudformation::{
    Client,
    types::{Parameter, Stack, StackStatus, TemplateStage},
};
use serde_json::{Value, json};

use self::parameters::Parameters;
use crate::{
    deployment::aws_config,
    output::print_records,
    session::{Session, random_id},
    usage::UsageError,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl set KeyCacheSeconds=0 --stack workspace-management
  workspacectl set Alarms=true AlarmTopic=arn:aws:sns:us-east-1:123456789012:alarms --stack workspace-management
  workspacectl set AlarmTopic= --stack workspace-management --no-wait";

/// The parameter that must match the binary.
const ARCHITECTURE: &str = "Architecture";

/// The options of `set`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The parameters to change, with their new values
    #[arg(value_name = "NAME=VALUE", required = true, value_parser = assignment)]
    assignments: Vec<Assignment>,
    /// Exit when CloudFormation has accepted the update, before the update ends
    #[arg(long)]
    no_wait: bool,
}

/// A parameter and its new value.
#[derive(Debug, Clone)]
struct Assignment {
    name: String,
    value: String,
}

/// Shows the old and the new values, updates the stack and waits until the update has ended.
///
/// # Errors
/// If the arguments are invalid, the stack cannot be read or updated, or the update fails.
pub(crate) async fn run(options: Options, session: &Session) -> Result<()> {
    let stack = session.stack.as_deref().ok_or_else(|| {
        UsageError("no stack is given: name the stack to change with --stack".to_owned())
    })?;
    check_names(&options.assignments)?;
    let client = Client::new(&aws_config().await?);
    set(&options, &client, stack, session.json)
        .await
        .with_context(|| format!("stack {stack}"))
}

async fn set(options: &Options, client: &Client, name: &str, json: bool) -> Result<()> {
    let stack = describe(client, name).await?;
    let status = status(&stack);
    if status.ends_with("_IN_PROGRESS") {
        bail!("its status is {status}: wait until that operation has ended, then try again");
    }
    let parameters = template_parameters(client, name).await?;
    for Assignment { name, value } in &options.assignments {
        parameters.check(name, value)?;
    }
    let rows: Vec<_> = options
        .assignments
        .iter()
        .map(|assignment| row(&stack, assignment))
        .collect();
    print_records(&rows, &["name", "before", "after"], json)?;
    if rows.iter().all(|row| row["changed"] == false) {
        eprintln!("the parameters already have these values: the stack was not updated");
        return Ok(());
    }
    let token = random_id()?;
    if !update::start(client, name, &stack, &options.assignments, &token).await? {
        eprintln!("no resource depends on this change: CloudFormation did not update the stack");
        return Ok(());
    }
    if options.no_wait {
        eprintln!("the update of the stack {name} has started");
        return Ok(());
    }
    update::wait(client, name, &token).await?;
    eprintln!("the stack {name} was updated");
    Ok(())
}

/// Parses `NAME=VALUE`. The value may be empty.
fn assignment(text: &str) -> Result<Assignment, &'static str> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok(Assignment {
            name: name.to_owned(),
            value: value.to_owned(),
        }),
        _ => Err("give a parameter and its value, such as MemorySize=512"),
    }
}

/// Checks what can be checked without the stack.
fn check_names(assignments: &[Assignment]) -> Result<(), UsageError> {
    let mut names = HashSet::new();
    for Assignment { name, .. } in assignments {
        if name == ARCHITECTURE {
            return Err(UsageError(format!(
                "{name} must match the binary: change it with `sam build && sam deploy`"
            )));
        }
        if !names.insert(name) {
            return Err(UsageError(format!(
                "{name} is given more than once: give it one value"
            )));
        }
    }
    Ok(())
}

async fn describe(client: &Client, name: &str) -> Result<Stack> {
    let response = client.describe_stacks().stack_name(name).send().await;
    let stacks = response.context("cannot read the stack")?.stacks;
    let mut stacks = stacks.into_iter().flatten();
    stacks.next().context("CloudFormation returned no stack")
}

fn status(stack: &Stack) -> &str {
    let status = stack.stack_status();
    status.map_or("unknown", StackStatus::as_str)
}

/// The parameters of the template with which the stack was deployed.
async fn template_parameters(client: &Client, name: &str) -> Result<Parameters> {
    let response = client
        .get_template()
        .stack_name(name)
        .template_stage(TemplateStage::Original)
        .send()
        .await;
    let template = response.context("cannot read the stack's template")?;
    Parameters::parse(template.template_body().unwrap_or_default())
}

/// What an assignment changes.
fn row(stack: &Stack, Assignment { name, value }: &Assignment) -> Value {
    let mut current = stack.parameters().iter();
    let current = current.find(|parameter| parameter.parameter_key() == Some(name));
    let before = current.and_then(Parameter::parameter_value);
    let changed = before != Some(value);
    json!({ "name": name, "before": before, "after": value, "changed": changed })
}
