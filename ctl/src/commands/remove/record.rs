//! Removes a single record: the one that was read, and no other.

use std::time::SystemTime;

use anyhow::{Result, bail};
use serde_json::{Value, json};
use workspace_management::store::{Table, timestamp};

use crate::{
    deployment::Deployment,
    output::{escape, print_record},
    records::{get, unchanged},
    session::{Operator, Session},
    similar,
    write::{Condition, Deletion},
};

/// The attributes that say which write a record is from. Only voices have those of changes.
const WRITE: [&str; 4] = [
    "created_at",
    "request_id",
    "updated_at",
    "updated_request_id",
];

/// A record to remove.
pub(crate) struct Target {
    pub(crate) table: Table,
    /// What messages call it.
    pub(crate) name: String,
    /// The values of its primary key.
    pub(crate) key: [String; 2],
}

impl Target {
    /// Names similar ids if the record is of a member: see [`similar::report`].
    async fn report_similar(&self, deployment: &Deployment, was_member: bool) -> Result<()> {
        if self.table != Table::TEAM_MEMBERS {
            return Ok(());
        }
        let [team, user] = &self.key;
        similar::report(deployment, vec![team.clone()], user, was_member).await
    }
}

/// Removes a record and prints it.
///
/// # Errors
/// If there is no such record, it changes meanwhile, or DynamoDB cannot be reached.
pub(crate) async fn run(target: &Target, session: &Session) -> Result<()> {
    let deployment = session.deployment().await?;
    let operator = Operator::of(deployment).await?;
    let mut record = remove(deployment, target).await?;
    eprintln!("{} was removed", escape(&target.name));
    record["removed_at"] = json!(timestamp(SystemTime::now()));
    record["removed_by"] = json!(operator.name);
    record["removed_request_id"] = json!(operator.run_id);
    print_record(&record, &escape(&target.key[1]), session.json)?;
    target.report_similar(deployment, true).await
}

/// Deletes the record as it was read, and returns it.
async fn remove(deployment: &Deployment, target: &Target) -> Result<Value> {
    match try_remove(deployment, target).await? {
        Removal::Done(record) => Ok(record),
        Removal::Missing => {
            target.report_similar(deployment, false).await?;
            bail!("{} does not exist", target.name)
        }
        Removal::Changed => bail!(
            "{} has changed since it was read: run the command again",
            target.name
        ),
    }
}

/// What became of a removal.
pub(super) enum Removal {
    Done(Value),
    /// There is no such record, or another process has deleted it meanwhile.
    Missing,
    /// Another process has changed the record since it was read.
    Changed,
}

/// Deletes the record as it was read.
///
/// # Errors
/// If DynamoDB cannot be reached or rejects a request.
pub(super) async fn try_remove(deployment: &Deployment, target: &Target) -> Result<Removal> {
    let [partition, sort] = &target.key;
    let key = [partition.as_str(), sort];
    let Some(record) = get(deployment, target.table, &key).await? else {
        return Ok(Removal::Missing);
    };
    let (expression, values) = unchanged(&record, &WRITE);
    let condition = Condition {
        table: target.table,
        key: &key,
        expression: &format!(
            "attribute_exists({}) AND {expression}",
            target.table.primary_key[0]
        ),
        values: &values,
    };
    Ok(match condition.delete(deployment).await? {
        Deletion::Done => Removal::Done(record),
        Deletion::Missing => Removal::Missing,
        Deletion::Changed => Removal::Changed,
    })
}
