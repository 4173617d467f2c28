//! Checks the tables.

use anyhow::{Context as _, Result, ensure};
use aws_sdk_dynamodb::types::{
    BillingMode, GlobalSecondaryIndexDescription, IndexStatus, OnDemandThroughput, SseDescription,
    SseStatus, StreamSpecification, TableDescription, TableStatus, TimeToLiveStatus,
};
use workspace_management::records::Table;
use workspace_records::{kinds::HISTORY, tables::TableDeclaration};

use super::Status;
use crate::{deployment::Deployment, errors::RequestResultExt as _, text::pluralize};

/// Checks that a table matches the template.
pub(super) async fn check(
    table: Table,
    table_name: &str,
    deployment: &Deployment,
) -> Result<Status> {
    let response = deployment
        .dynamodb
        .describe_table()
        .table_name(table_name)
        .send()
        .await
        .request_context(deployment, "cannot describe the table")?;
    let description = response.table.context("DynamoDB returned no description")?;
    let mut problems = differences(&TableDeclaration::of(table)?, &description);
    if deployment.is_on_aws() {
        problems.extend(protection_problems(&description));
        let backups = deployment
            .dynamodb
            .describe_continuous_backups()
            .table_name(table_name)
            .send()
            .await
            .request_context(deployment, "cannot describe the backups")?;
        let recovery = backups
            .continuous_backups_description
            .and_then(|backups| backups.point_in_time_recovery_description)
            .and_then(|recovery| recovery.point_in_time_recovery_status);
        if recovery.is_none_or(|status| status.as_str() != "ENABLED") {
            problems.push("point-in-time recovery is off".to_owned());
        }
        if table == HISTORY {
            problems.extend(time_to_live_problem(table_name, deployment).await?);
        }
    }
    ensure!(problems.is_empty(), problems.join("; "));
    let count = description.item_count.unwrap_or_default();
    let detail = format!("about {}", pluralize(count, "record"));
    Ok(Status::Passed(detail))
}

/// What is wrong with the protection, the encryption and the limits of a table on AWS.
fn protection_problems(description: &TableDescription) -> Vec<String> {
    let mut problems = Vec::new();
    if description.deletion_protection_enabled != Some(true) {
        problems.push("deletion protection is off".to_owned());
    }
    let encryption = description.sse_description();
    let status = encryption.and_then(SseDescription::status);
    if !matches!(status, Some(SseStatus::Enabled | SseStatus::Updating)) {
        problems.push("its encryption does not use AWS KMS".to_owned());
    }
    let has_limit = |limit: Option<&OnDemandThroughput>| {
        let units = limit.and_then(OnDemandThroughput::max_write_request_units);
        units.is_some_and(|units| units > 0)
    };
    if !has_limit(description.on_demand_throughput()) {
        problems.push("its write units have no maximum".to_owned());
    }
    for index in description.global_secondary_indexes() {
        if !has_limit(index.on_demand_throughput()) {
            let name = index.index_name().unwrap_or_default();
            problems.push(format!(
                "the write units of its index {name} have no maximum"
            ));
        }
    }
    problems
}

/// What is wrong with the time to live of the history.
async fn time_to_live_problem(table_name: &str, deployment: &Deployment) -> Result<Option<String>> {
    let request = deployment.dynamodb.describe_time_to_live();
    let result = request.table_name(table_name).send().await;
    let response = result.request_context(deployment, "cannot describe the time to live")?;
    let status = response
        .time_to_live_description
        .filter(|it| it.attribute_name.as_deref() == Some("expires_at"))
        .and_then(|it| it.time_to_live_status);
    let is_on = matches!(
        status,
        Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling)
    );
    Ok((!is_on).then(|| "its entries do not expire: the time to live is off".to_owned()))
}

/// How a table differs from its declaration.
fn differences(declared: &TableDeclaration, actual: &TableDescription) -> Vec<String> {
    let mut differences = Vec::new();
    let status = actual.table_status().map_or("unknown", TableStatus::as_str);
    if status != "ACTIVE" {
        differences.push(format!("its status is {status}"));
    }
    if actual.key_schema() != declared.key_schema {
        differences.push("its primary key differs from the template".to_owned());
    }
    let definitions = actual.attribute_definitions();
    let mut declared_definitions = declared.attribute_definitions.iter();
    if declared_definitions.any(|definition| !definitions.contains(definition)) {
        differences.push("the type of a key attribute differs from the template".to_owned());
    }
    let billing = actual.billing_mode_summary();
    let billing_mode = billing.and_then(|billing| billing.billing_mode.as_ref());
    if billing_mode != Some(&BillingMode::PayPerRequest) {
        differences.push("its billing mode is not PAY_PER_REQUEST".to_owned());
    }
    for declared_index in &declared.global_secondary_indexes {
        let name = declared_index.index_name();
        let mut indexes = actual.global_secondary_indexes().iter();
        let index = indexes.find(|index| {
            index.index_name() == Some(name)
                && index.key_schema() == declared_index.key_schema()
                && index.projection() == declared_index.projection()
        });
        match index.map(GlobalSecondaryIndexDescription::index_status) {
            None => differences.push(format!(
                "its index {name} is missing or differs from the template"
            )),
            // DynamoDB is still building or deleting it.
            Some(Some(status)) if *status != IndexStatus::Active => {
                differences.push(format!("the status of its index {name} is {status}"));
            }
            Some(_) => {}
        }
    }
    // A table without a declared stream may have one, such as for a global table.
    if let Some(declared_stream) = &declared.stream_specification
        && actual
            .stream_specification()
            .and_then(StreamSpecification::stream_view_type)
            != declared_stream.stream_view_type()
    {
        differences.push("its change stream differs from the template".to_owned());
    }
    differences
}
