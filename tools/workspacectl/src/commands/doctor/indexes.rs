//! Checks the indexes: commands such as `list members --user` query them, and so do readers.

use anyhow::{Context as _, Result, anyhow};
use aws_sdk_dynamodb::types::{AttributeValue, IndexStatus, TableDescription};
use workspace_records::tables::TableDeclaration;

use super::{ORGANIZATION, Status};
use crate::{deployment::Deployment, errors::RequestResultExt as _, expressions::Expressions};

/// Checks that each index is active and that queries of it are allowed. Fails if one is denied.
pub(super) async fn check(deployment: &Deployment) -> Result<Status> {
    let mut count = 0;
    for (table, table_name) in deployment.tables() {
        for index in TableDeclaration::of(table)?.global_secondary_indexes {
            let index_name = index.index_name();
            let key = index.key_schema().first();
            let key = key.context("template.yaml declares an index without a key")?;
            query(deployment, table_name, index_name, key.attribute_name()).await?;
            let request = deployment.dynamodb.describe_table().table_name(table_name);
            let response = request.send().await;
            let response = response.request_context(deployment, "cannot describe the table")?;
            if let Some(status) = inactive_status(response.table.as_ref(), index_name) {
                let name = table.logical_id;
                let error = anyhow!("the index {index_name} of {name} is {status}, not ACTIVE");
                return Ok(Status::Failed(error));
            }
            count += 1;
        }
    }
    Ok(Status::Passed(format!("{count} are active")))
}

/// Reads at most one entry. The role of the scheduled check may only read those of `doctor`.
async fn query(deployment: &Deployment, table: &str, index: &str, key: &str) -> Result<()> {
    let mut expressions = Expressions::default();
    let name = expressions.name(key);
    let value = expressions.value(key, AttributeValue::S(ORGANIZATION.to_owned()));
    let query = deployment.dynamodb.query();
    let query = query.table_name(table).index_name(index).limit(1);
    let query = query
        .key_condition_expression(format!("{name} = {value}"))
        .set_expression_attribute_names(expressions.names)
        .set_expression_attribute_values(expressions.values);
    let message = format!("cannot query the index {index} of {table}");
    let result = query.send().await;
    result.request_context(deployment, message).map(drop)
}

/// The status of an index that is not active, such as one that DynamoDB is still building.
fn inactive_status<'a>(table: Option<&'a TableDescription>, name: &str) -> Option<&'a IndexStatus> {
    let mut indexes = table?.global_secondary_indexes().iter();
    let index = indexes.find(|index| index.index_name() == Some(name))?;
    let status = index.index_status()?;
    (*status != IndexStatus::Active).then_some(status)
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::types::GlobalSecondaryIndexDescription;

    use super::*;

    #[test]
    fn an_index_that_is_being_built_is_not_active() {
        for status in [IndexStatus::Creating, IndexStatus::Active] {
            let index = GlobalSecondaryIndexDescription::builder().index_name("by_user");
            let index = index.index_status(status.clone()).build();
            let table = TableDescription::builder().global_secondary_indexes(index);
            let is_active = inactive_status(Some(&table.build()), "by_user").is_none();
            assert_eq!(is_active, status == IndexStatus::Active);
        }
    }
}
