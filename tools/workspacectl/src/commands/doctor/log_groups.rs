//! Checks the log groups of a stack: without them, nothing is logged, and two alarms have no data.

use anyhow::{Result, anyhow};
use aws_sdk_cloudformation::types::{Parameter, Stack as StackDescription};
use aws_sdk_cloudwatchlogs::Client;

use super::Status;
use crate::{deployment::Stack, errors::RequestResultExt as _};

/// As in template.yaml.
const API_LOG_DAYS: &str = "30";

/// The metric filters on the log of the function. Deleting the log deletes them.
const FILTERS: [&str; 2] = ["UnauthenticatedFilter", "CheckFilter"];

/// Checks that the log groups exist, with their retention and metric filters.
pub(super) async fn check(stack: &Stack, description: &StackDescription) -> Result<Status> {
    let client = Client::new(&stack.sdk_config);
    let mut parameters = description.parameters().iter();
    let days = parameters.find(|it| it.parameter_key() == Some("LogRetentionDays"));
    let days = days.and_then(Parameter::parameter_value);
    let mut problems = Vec::new();
    for (id, days) in [("LogGroup", days), ("ApiLogGroup", Some(API_LOG_DAYS))] {
        problems.extend(group_problem(&client, stack, id, days).await?);
    }
    if problems.is_empty() {
        problems = filter_problems(&client, stack).await?;
    }
    Ok(match &*problems {
        [] => Status::Passed("exist, with their retention and metric filters".to_owned()),
        _ => Status::Failed(anyhow!(
            "{}: see \"Repair the stack\" in docs/runbook.md",
            problems.join("; ")
        )),
    })
}

/// What is wrong with a log group that must keep its lines for a number of days.
async fn group_problem(
    client: &Client,
    stack: &Stack,
    id: &str,
    days: Option<&str>,
) -> Result<Option<String>> {
    let name = stack.physical_id(id)?;
    let request = client.describe_log_groups().log_group_name_prefix(name);
    let response = request.send().await;
    let response = response.aws_context("cannot describe the log groups")?;
    let mut groups = response.log_groups().iter();
    let Some(group) = groups.find(|group| group.log_group_name() == Some(name)) else {
        return Ok(Some(format!("the log group {name} does not exist")));
    };
    let actual = group.retention_in_days().map(|days| days.to_string());
    let actual = actual.as_deref().unwrap_or("unlimited");
    let expected = days.filter(|expected| *expected != actual);
    let problem = |expected| {
        format!("the log group {name} keeps its lines for {actual} days instead of {expected}")
    };
    Ok(expected.map(problem))
}

/// The metric filters of the stack that are missing.
async fn filter_problems(client: &Client, stack: &Stack) -> Result<Vec<String>> {
    let group = stack.physical_id("LogGroup")?;
    let request = client.describe_metric_filters().log_group_name(group);
    let response = request.send().await;
    let response = response.aws_context("cannot describe the metric filters")?;
    let filters = response.metric_filters().iter();
    let names: Vec<_> = filters.filter_map(|filter| filter.filter_name()).collect();
    // Without SilenceHours, a stack has no CheckFilter.
    let expected = FILTERS.iter().flat_map(|id| stack.physical_id(id));
    let missing = expected.filter(|name| !names.contains(name));
    let problem = |name| format!("the metric filter {name} of {group} does not exist");
    Ok(missing.map(problem).collect())
}
