//! Checks the indexes: commands such as `list members --user` query them, and so do readers.

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::types::AttributeValue;
use workspace_records::tables::TableDeclaration;

use super::{ORGANIZATION, Status};
use crate::{deployment::Deployment, errors::RequestResultExt as _, expressions::Expressions};

/// Checks that queries of each index are allowed. Fails if one is denied.
pub(super) async fn check(deployment: &Deployment) -> Result<Status> {
    let mut count = 0;
    for (table, table_name) in deployment.tables() {
        for index in TableDeclaration::of(table)?.global_secondary_indexes {
            let key = index.key_schema().first();
            let key = key.context("template.yaml declares an index without a key")?;
            let (index_name, key_name) = (index.index_name(), key.attribute_name());
            query(deployment, table_name, index_name, key_name).await?;
            count += 1;
        }
    }
    Ok(Status::Passed(format!("{count} can be queried")))
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
