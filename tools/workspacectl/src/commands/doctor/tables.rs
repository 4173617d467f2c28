//! Checks the tables.

use anyhow::{Context as _, Result, ensure};
use aws_sdk_dynamodb::types::{
    BillingMode, StreamSpecification, TableDescription, TableStatus, TimeToLiveStatus,
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
        if description.deletion_protection_enabled != Some(true) {
            problems.push("deletion protection is off".to_owned());
        }
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
        let has_index = indexes.any(|index| {
            index.index_name() == Some(name)
                && index.key_schema() == declared_index.key_schema()
                && index.projection() == declared_index.projection()
        });
        if !has_index {
            differences.push(format!(
                "its index {name} is missing or differs from the template"
            ));
        }
    }
    let stream = actual.stream_specification();
    let declared_stream = declared.stream_specification.as_ref();
    if stream.and_then(StreamSpecification::stream_view_type)
        != declared_stream.and_then(StreamSpecification::stream_view_type)
    {
        differences.push("its change stream differs from the template".to_owned());
    }
    differences
}
