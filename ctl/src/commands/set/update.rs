//! An update of a stack: how it starts and how it ends.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use aws_sdk_cloudformation::{
    Client,
    error::ProvideErrorMetadata as _,
    types::{Capability, Parameter, Stack, StackEvent},
};
use tokio::time::sleep;

use super::{Assignment, describe, status};
use crate::progress::spinner;

/// How long to wait between two reads of the stack's status.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Starts an update. Returns false if CloudFormation has nothing to change.
pub(super) async fn start(
    client: &Client,
    name: &str,
    stack: &Stack,
    assignments: &[Assignment],
    token: &str,
) -> Result<bool> {
    let mut request = client
        .update_stack()
        .stack_name(name)
        .use_previous_template(true)
        .client_request_token(token)
        // Expands the same template again, whose transform was reviewed when it was deployed.
        .capabilities(Capability::CapabilityAutoExpand);
    for capability in stack.capabilities() {
        if *capability != Capability::CapabilityAutoExpand {
            request = request.capabilities(capability.clone());
        }
    }
    let names = stack.parameters().iter();
    for name in names.filter_map(Parameter::parameter_key) {
        let mut assignments = assignments.iter();
        let assignment = assignments.find(|assignment| assignment.name == name);
        let parameter = Parameter::builder().parameter_key(name);
        request = request.parameters(match assignment {
            Some(Assignment { value, .. }) => parameter.parameter_value(value).build(),
            None => parameter.use_previous_value(true).build(),
        });
    }
    match request.send().await {
        Ok(_) => Ok(true),
        Err(error) if is_without_changes(error.message()) => Ok(false),
        Err(error) => Err(error).context("CloudFormation rejected the update"),
    }
}

/// CloudFormation has no error code for an update without changes.
fn is_without_changes(message: Option<&str>) -> bool {
    message.is_some_and(|message| message.starts_with("No updates are to be performed"))
}

/// Waits until an update has ended.
///
/// # Errors
/// If the update fails. The error contains the reason of the first failure.
pub(super) async fn wait(client: &Client, name: &str, token: &str) -> Result<()> {
    let spinner = spinner("updating the stack");
    let stack = loop {
        let stack = describe(client, name)
            .await
            .context("the update has started, but its result is unknown")?;
        if !status(&stack).ends_with("_IN_PROGRESS") {
            break stack;
        }
        sleep(POLL_INTERVAL).await;
    };
    spinner.finish_and_clear();
    let result = match status(&stack) {
        "UPDATE_COMPLETE" => return Ok(()),
        "UPDATE_ROLLBACK_COMPLETE" => {
            "the update failed, and CloudFormation restored the previous values".to_owned()
        }
        status => format!("the update failed, and the status of the stack is {status}"),
    };
    let reason = first_failure(client, name, token)
        .await
        .with_context(|| format!("{result}, but its events cannot be read"))?;
    bail!(
        "{result}: {}",
        reason
            .as_deref()
            .unwrap_or("CloudFormation gives no reason")
    )
}

/// The resource and the reason of the first failure in the update with this token.
async fn first_failure(client: &Client, name: &str, token: &str) -> Result<Option<String>> {
    let request = client.describe_stack_events().stack_name(name);
    let mut events = request.into_paginator().items().send();
    let mut failure = None;
    // CloudFormation returns the events of the last update first, and its last event first.
    while let Some(event) = events.next().await {
        let event = event?;
        if event.client_request_token() == Some(token) {
            failure = reason(&event).or(failure);
        } else if failure.is_some() {
            break;
        }
    }
    Ok(failure)
}

/// The resource and the reason, if the event is a failure. If a transform fails, the only such event
/// is the rollback of the stack.
fn reason(event: &StackEvent) -> Option<String> {
    let status = event.resource_status()?.as_str();
    let is_failure = status.ends_with("_FAILED") || status == "UPDATE_ROLLBACK_IN_PROGRESS";
    let resource = event.logical_resource_id()?;
    let reason = event.resource_status_reason()?;
    is_failure.then(|| format!("{resource}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_described_with_its_resource() {
        for (status, expected) in [
            ("UPDATE_FAILED", Some("Function: Why")),
            ("CREATE_FAILED", Some("Function: Why")),
            ("UPDATE_ROLLBACK_IN_PROGRESS", Some("Function: Why")),
            ("UPDATE_IN_PROGRESS", None),
            ("UPDATE_ROLLBACK_COMPLETE", None),
        ] {
            let event = StackEvent::builder()
                .logical_resource_id("Function")
                .resource_status(status.into())
                .resource_status_reason("Why");
            assert_eq!(reason(&event.build()).as_deref(), expected, "{status}");
        }
    }
}
