//! Checks what only a stack has.

use anyhow::{Result, bail};
use aws_sdk_cloudformation::types::Stack as Description;
use workspace_management::store::{Table, TableNames};

use super::Outcome;
use crate::{deployment::Stack, errors::Response as _};

pub(super) fn output(description: &Description, key: &str) -> Option<String> {
    let mut outputs = description.outputs().iter();
    let output = outputs.find(|output| output.output_key() == Some(key))?;
    output.output_value.clone()
}

/// Checks that the function uses the tables of its stack. A request shows this only for the tables
/// that it reads, and only if the others do not exist.
pub(super) async fn check_function(stack: &Stack, tables: &TableNames) -> Result<String> {
    let configuration = aws_sdk_lambda::Client::new(&stack.config)
        .get_function_configuration()
        .function_name(stack.resource("Function")?)
        .send()
        .await
        .or_fail(|| "cannot read the configuration of the function".to_owned())?;
    let environment = configuration.environment;
    let variables = environment.and_then(|environment| environment.variables);
    let variables = variables.unwrap_or_default();
    let mut problems = Vec::new();
    for table in Table::ALL {
        let (variable, expected) = (table.variable, tables.name(*table));
        match variables.get(variable) {
            Some(name) if name == expected => {}
            Some(name) => problems.push(format!("{variable} is {name} instead of {expected}")),
            None => problems.push(format!("{variable} is not set: it must be {expected}")),
        }
    }
    if !problems.is_empty() {
        bail!("{}. Deploy the stack again", problems.join("; "));
    }
    Ok(format!("uses the {} tables of the stack", Table::ALL.len()))
}

/// Checks that the stack cannot be deleted by mistake.
pub(super) fn check_protection(description: &Description) -> Outcome {
    let name = description.stack_name().unwrap_or_default();
    match description.enable_termination_protection() {
        Some(true) => Outcome::Ok("on".to_owned()),
        _ => Outcome::Warning(format!(
            "off: run `aws cloudformation update-termination-protection \
            --enable-termination-protection --stack-name {name}`"
        )),
    }
}

/// Checks that alarms reach someone: that a recipient has confirmed a subscription to their topic.
pub(super) async fn check_recipients(stack: &Stack, description: &Description) -> Outcome {
    let Some(topic) = output(description, "AlarmTopicArn") else {
        let detail =
            "none, because the stack has no topic: deploy it with the parameter AlarmEmail";
        return Outcome::Warning(detail.to_owned());
    };
    let mut subscriptions = aws_sdk_sns::Client::new(&stack.config)
        .list_subscriptions_by_topic()
        .topic_arn(&topic)
        .into_paginator()
        .items()
        .send();
    let (mut confirmed, mut pending) = (0, 0);
    while let Some(subscription) = subscriptions.next().await {
        let what = || "cannot list the subscriptions of the topic".to_owned();
        match subscription.or_fail(what) {
            // Instead of an ARN, others have `PendingConfirmation` or `Deleted`.
            Ok(subscription) => match subscription.subscription_arn {
                Some(arn) if arn.starts_with("arn:") => confirmed += 1,
                _ => pending += 1,
            },
            Err(error) => return Outcome::Skipped(error),
        }
    }
    match confirmed {
        0 => Outcome::Warning(format!(
            "none has confirmed, {pending} not yet: open the link in the e-mail of AWS, or subscribe to {topic}"
        )),
        _ => Outcome::Ok(format!("{confirmed} confirmed")),
    }
}
