//! Conditional writes: of one record, and of many records in transactions.

mod condition;

use anyhow::{Context as _, Result};
use aws_sdk_dynamodb::types::{
    Delete, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem,
};
use serde_json::Value;
use workspace_management::store::{FailedCondition, Item, Table, failed_conditions};

pub(crate) use self::condition::{Condition, Deletion, Values};
use crate::{
    deployment::Deployment, export::AppendedExport, progress::Counter, query::Query,
    records::to_json,
};

/// The maximum number of actions in a transaction of DynamoDB.
pub(crate) const MAX_ACTIONS: usize = 100;

/// The action of a transaction that stores a record, which must not exist.
pub(crate) fn put(
    deployment: &Deployment,
    table: Table,
    record: &Value,
) -> Result<TransactWriteItem> {
    let put = Put::builder()
        .table_name(deployment.tables.name(table))
        .set_item(Some(serde_dynamo::to_item(record)?))
        .condition_expression(format!("attribute_not_exists({})", last_of_key(table)))
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
        .build()?;
    Ok(TransactWriteItem::builder().put(put).build())
}

/// The attribute of a primary key that conditions name: the last one, because DynamoDB reserves the
/// name `project`.
fn last_of_key(table: Table) -> &'static str {
    table.primary_key.last().copied().unwrap_or_default()
}

/// Sends a transaction. Returns the actions whose condition failed. If there are any, nothing was
/// written.
pub(crate) async fn transact(
    deployment: &Deployment,
    actions: Vec<TransactWriteItem>,
) -> Result<Vec<FailedCondition>> {
    let sent = deployment
        .client
        .transact_write_items()
        .set_transact_items(Some(actions))
        .send()
        .await;
    let Err(error) = sent else {
        return Ok(vec![]);
    };
    let failed = error.as_service_error().map(failed_conditions);
    match failed.filter(|failed| !failed.is_empty()) {
        Some(failed) => Ok(failed),
        None => Err(error.into()),
    }
}

/// Deletes what queries find, until they find nothing, and then the record of the condition, which
/// every transaction checks. Appends what it finds to the export before. Returns how many records were
/// found and deleted, and whether this run deleted the record of the condition, or another run has.
pub(crate) async fn delete_all(
    deployment: &Deployment,
    condition: &Condition<'_>,
    queries: impl Fn() -> Vec<Query>,
    mut export: Option<&mut AppendedExport>,
) -> Result<(usize, bool)> {
    let mut counter = Counter::new("records deleted");
    loop {
        let mut found = 0;
        for mut query in queries() {
            while let Some(items) = query.next(deployment).await? {
                let keys: Vec<_> = items.iter().map(|item| query.key(item)).collect();
                found += keys.len();
                if let Some(export) = &mut export {
                    export.append(query.table(), items.into_iter().map(to_json))?;
                }
                if !delete_keys(deployment, condition, query.table(), keys, &mut counter).await? {
                    return Ok((counter.finish(), false));
                }
            }
        }
        if found == 0 {
            break;
        }
    }
    let is_last = condition.delete(deployment).await? == Deletion::Done;
    Ok((counter.finish(), is_last))
}

/// Deletes records in transactions that also check a condition. Returns false if it failed: then the
/// rest is not deleted.
async fn delete_keys(
    deployment: &Deployment,
    condition: &Condition<'_>,
    table: Table,
    keys: Vec<Item>,
    counter: &mut Counter,
) -> Result<bool> {
    for keys in keys.chunks(MAX_ACTIONS - 1) {
        let mut actions = vec![condition.check(deployment)?];
        for key in keys {
            let delete = Delete::builder()
                .table_name(deployment.tables.name(table))
                .set_key(Some(key.clone()))
                .build()?;
            actions.push(TransactWriteItem::builder().delete(delete).build());
        }
        let failed = transact(deployment, actions).await;
        let name = deployment.tables.name(table);
        let failed = failed.with_context(|| format!("cannot delete records in {name}"))?;
        if !failed.is_empty() {
            return Ok(false);
        }
        counter.add(keys.len());
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::{Client, config::http::HttpRequest};
    use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
    use workspace_local::{
        dynamodb::{DynamoDb, http_client},
        fixtures,
    };
    use workspace_records::local::sdk_config;

    use super::*;

    /// Loses the first response to every request, so that the SDK sends it again.
    #[derive(Debug)]
    struct Lossy(DynamoDb);

    impl HttpConnector for Lossy {
        fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
            drop(self.0.handle(&request));
            HttpConnectorFuture::ready(Ok(self.0.handle(&request)))
        }
    }

    #[tokio::test]
    async fn a_write_whose_response_is_lost_has_the_outcome_of_its_first_attempt() {
        let dynamodb = DynamoDb::with_tables().await.expect("a DynamoDB");
        let network = http_client(Lossy(dynamodb.clone()));
        let config = sdk_config("http://dynamodb").http_client(network);
        let mut deployment = Deployment::local("http://dynamodb");
        deployment.client = Client::from_conf(config.build());
        let team = fixtures::team("acme", "apollo", "docs", "Docs");
        let action = put(&deployment, Table::TEAMS, &team).expect("an action");
        let condition = Condition::unchanged(Table::TEAMS, &team, &["created_at"]);

        let failed = transact(&deployment, vec![action]).await;
        assert!(failed.is_ok_and(|failed| failed.is_empty()));
        assert_eq!(dynamodb.records(Table::TEAMS).len(), 1);
        let mut other = team.clone();
        other["created_at"] = "2026-02-02T00:00:00.000Z".into();
        for (stored, expected) in [
            (&other, Deletion::Changed),
            (&team, Deletion::Done),
            (&team, Deletion::Missing),
        ] {
            if expected != Deletion::Missing {
                dynamodb.put(Table::TEAMS, stored);
            }
            let deletion = condition.delete(&deployment).await;
            assert!(deletion.is_ok_and(|deletion| deletion == expected));
            let count = dynamodb.records(Table::TEAMS).len();
            assert_eq!(count, usize::from(expected == Deletion::Changed));
        }
    }
}
