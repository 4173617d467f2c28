//! The checks of a stack: its status, function, logs, termination protection and alarm recipients.

use anyhow::{Result, anyhow, ensure};
use aws_sdk_cloudformation::types::{Stack as StackDescription, StackStatus};
use workspace_management::{records::Table, service::FUNCTION_TIMEOUT, store::TableNames};

use super::{CheckResult, Status, log_groups};
use crate::{
    deployment::{Stack, output_value},
    errors::RequestResultExt as _,
};

/// Checks a stack. Also returns the URL of its API, or `None` if the stack cannot be read.
pub(super) async fn check(
    stack: &Stack,
    table_names: &TableNames,
) -> (Vec<CheckResult>, Option<String>) {
    let function_result = check_function(stack, table_names).await;
    let mut results = vec![CheckResult::required("Function", function_result)];
    let description = match stack.describe().await {
        Ok(description) => description,
        Err(error) => {
            results.push(CheckResult::required("Stack", Err(error)));
            return (results, None);
        }
    };
    let status = check_status(&description);
    results.push(CheckResult::required("Stack", Ok(status)));
    let log_result = log_groups::check(stack, &description).await;
    results.push(CheckResult::optional("Log groups", log_result));
    let protection_status = check_termination_protection(&description);
    results.push(CheckResult::required(
        "Termination protection",
        Ok(protection_status),
    ));
    let topic_arn = output_value(&description, "AlarmTopicArn");
    let recipients_result = check_recipients(stack, topic_arn).await;
    results.push(CheckResult::optional("Alarm recipients", recipients_result));
    (results, output_value(&description, "ApiUrl"))
}

/// The status after the last deployment.
fn check_status(description: &StackDescription) -> Status {
    let status = description.stack_status();
    let status = status.map_or("unknown", StackStatus::as_str);
    let name = description.stack_name().unwrap_or_default();
    let events = format!("see `aws cloudformation describe-stack-events --stack-name {name}`");
    if status.ends_with("ROLLBACK_FAILED") {
        let help = "\"Roll back\" in docs/operations.md";
        return Status::Failed(anyhow!("{status}: {events}, and {help}"));
    }
    if status.ends_with("_COMPLETE") && !status.contains("ROLLBACK") {
        return Status::Passed(status.to_owned());
    }
    Status::Warning(format!("{status}: {events}"))
}

/// Checks that the environment variables of the function name the tables of its stack. Requests
/// would not reveal a mistake, because they succeed with any existing table. Also checks the
/// timeout, on which the waits of other commands rely.
async fn check_function(stack: &Stack, table_names: &TableNames) -> Result<Status> {
    // Requests go to the version of the alias, if the stack has one.
    let alias = stack.physical_id("FunctionAliaslive").ok().map(|_| "live");
    let configuration = aws_sdk_lambda::Client::new(&stack.sdk_config)
        .get_function_configuration()
        .function_name(stack.physical_id("Function")?)
        .set_qualifier(alias.map(str::to_owned))
        .send()
        .await
        .aws_context("cannot read the configuration of the function")?;
    let variables = configuration
        .environment
        .and_then(|environment| environment.variables)
        .unwrap_or_default();
    let mut problems = Vec::new();
    for table in Table::ALL {
        let variable = table.env_variable;
        let expected = table_names.get(*table);
        match variables.get(variable) {
            Some(name) if name == expected => {}
            Some(name) => problems.push(format!("{variable} is {name} instead of {expected}")),
            None => problems.push(format!("{variable} is not set: it must be {expected}")),
        }
    }
    let (timeout, expected) = (configuration.timeout, FUNCTION_TIMEOUT.as_secs());
    if timeout.map(i64::from) != i64::try_from(expected).ok() {
        let actual = timeout.unwrap_or_default();
        problems.push(format!("its timeout is {actual} s instead of {expected} s"));
    }
    let problems = problems.join("; ");
    ensure!(
        problems.is_empty(),
        "{problems}: see \"Repair the stack\" in docs/runbook.md"
    );
    let detail = format!("uses the {} tables of the stack", Table::ALL.len());
    Ok(Status::Passed(detail))
}

/// Checks that the stack cannot be deleted by mistake.
fn check_termination_protection(description: &StackDescription) -> Status {
    let name = description.stack_name().unwrap_or_default();
    match description.enable_termination_protection() {
        Some(true) => Status::Passed("on".to_owned()),
        _ => Status::Warning(format!(
            "off: run `aws cloudformation update-termination-protection \
            --enable-termination-protection --stack-name {name}`"
        )),
    }
}

/// Checks that a recipient has confirmed a subscription to the alarm topic.
async fn check_recipients(stack: &Stack, topic_arn: Option<String>) -> Result<Status> {
    let Some(topic_arn) = topic_arn else {
        let detail = "none: the stack has no topic. Deploy it with the parameter AlarmEmail";
        return Ok(Status::Warning(detail.to_owned()));
    };
    let mut subscriptions = aws_sdk_sns::Client::new(&stack.sdk_config)
        .list_subscriptions_by_topic()
        .topic_arn(&topic_arn)
        .into_paginator()
        .items()
        .send();
    let mut confirmed = 0;
    let mut unconfirmed = 0;
    while let Some(subscription) = subscriptions.next().await {
        let subscription = subscription.aws_context("cannot list the topic's subscriptions")?;
        // An unconfirmed subscription has `PendingConfirmation` or `Deleted` instead of an ARN.
        match subscription.subscription_arn {
            Some(arn) if arn.starts_with("arn:") => confirmed += 1,
            _ => unconfirmed += 1,
        }
    }
    Ok(match confirmed {
        0 => Status::Warning(format!(
            "no subscription is confirmed ({unconfirmed} pending or deleted): open the link in the email from AWS, or subscribe to {topic_arn}"
        )),
        _ => Status::Passed(format!("{confirmed} confirmed")),
    })
}
