//! Copies records, in transactions that check what they belong to.

use std::{mem::take, time::SystemTime};

use anyhow::Result;
use aws_sdk_dynamodb::{
    error::{ProvideErrorMetadata as _, SdkError},
    operation::transact_write_items::TransactWriteItemsError,
    types::TransactWriteItem,
};
use serde_json::{Value, json};
use workspace_management::store::{Table, timestamp};

use super::{
    parent::{Parent, Parents},
    record::{MAX_SIZE, size},
    report::{Outcome, Report},
    source::Source,
};
use crate::{
    deployment::Deployment,
    records::{has, primary_key, to_json},
    session::Operator,
    write::{MAX_ACTIONS, put, transact},
};

/// The attributes that a restore adds, which do not count as a difference.
const MARKS: [&str; 3] = ["restored_at", "restored_by", "restored_request_id"];

/// The maximum size of the records in a transaction. DynamoDB's limit is 4 MB.
const MAX_BATCH_SIZE: usize = 3_000_000;

const TOO_LARGE: &str = "it is larger than 400 KB, the maximum of DynamoDB";
const NO_HASH: &str = "exports omit its hash: create a new key";
const CHANGED: &str = "its organization or team changed meanwhile: run the command again";

/// The tables in the order in which they are restored: a record needs those that it belongs to.
fn order() -> [Vec<Table>; 3] {
    let (first, last) = (Table::ORGANIZATIONS, Table::TEAM_MEMBERS);
    let others = Table::ALL.iter().copied();
    let others = others.filter(|table| ![first, last].contains(table));
    [vec![first], others.collect(), vec![last]]
}

/// A restore of records that were checked.
pub(super) struct Restore<'a> {
    pub(super) deployment: &'a Deployment,
    pub(super) operator: Operator,
    pub(super) parents: Parents<'a>,
    pub(super) report: Report,
}

/// Records that are copied in one transaction: they belong to the same organization and team.
#[derive(Default)]
struct Batch {
    parents: Vec<Parent>,
    records: Vec<(Table, Value)>,
    size: usize,
}

impl Restore<'_> {
    pub(super) async fn run(&mut self, source: &Source<'_>) -> Result<()> {
        for tables in &order() {
            let mut batch = Batch::default();
            for line in source.lines()? {
                let line = line?;
                if line.is_selected && tables.contains(&line.table) {
                    self.add(line.table, line.record, &mut batch).await?;
                }
            }
            self.copy(batch).await?;
        }
        Ok(())
    }

    /// Adds a record to a batch, which is copied first if the record does not fit.
    async fn add(&mut self, table: Table, record: Value, batch: &mut Batch) -> Result<()> {
        let size = size(&record);
        let parents = if size > MAX_SIZE {
            Err(TOO_LARGE)
        } else if table == Table::KEYS && !has(&record, "secret_sha256") {
            Err(NO_HASH)
        } else {
            self.parents.of(table, &record).await?
        };
        let parents = match parents {
            Ok(parents) => parents,
            Err(reason) => return self.report.add(table, &record, Outcome::Skipped, reason),
        };
        let is_full = batch.records.len() + parents.len() >= MAX_ACTIONS
            || batch.size + size > MAX_BATCH_SIZE;
        if is_full || batch.parents != parents {
            self.copy(take(batch)).await?;
        }
        batch.parents = parents;
        batch.records.push((table, record));
        batch.size += size;
        Ok(())
    }

    /// Copies the records that do not exist, if what they belong to is as it was read.
    async fn copy(&mut self, batch: Batch) -> Result<()> {
        if self.report.is_dry_run {
            return self.plan(batch).await;
        }
        let mut parts = vec![batch.records];
        while let Some(mut records) = parts.pop() {
            if records.is_empty() {
                continue;
            }
            let actions = self.actions(&batch.parents, &records)?;
            let failed = match transact(self.deployment, actions).await {
                Ok(failed) => failed,
                Err(error) => {
                    let reason = rejection(&error).ok_or(error)?;
                    if let [(table, record)] = &records[..] {
                        let reason = format!("DynamoDB rejects it: {reason}");
                        self.report.add(*table, record, Outcome::Skipped, &reason)?;
                    } else {
                        // Finds the record that is invalid, or separates two with the same key.
                        parts.push(records.split_off(records.len() / 2));
                        parts.push(records);
                    }
                    continue;
                }
            };
            let (outcome, reason) = match failed.first() {
                None => (Outcome::Copied, ""),
                Some(first) if first.index < batch.parents.len() => {
                    self.parents.cache.clear();
                    (Outcome::Skipped, CHANGED)
                }
                Some(_) => {
                    for failed in failed.into_iter().rev() {
                        let (table, record) = records.remove(failed.index - batch.parents.len());
                        let outcome = compare(&record, &to_json(failed.existing));
                        self.report.add(table, &record, outcome, "")?;
                    }
                    // Sends the others again.
                    parts.push(records);
                    continue;
                }
            };
            for (table, record) in &records {
                self.report.add(*table, record, outcome, reason)?;
            }
        }
        Ok(())
    }

    /// Reports what a copy would do.
    async fn plan(&mut self, batch: Batch) -> Result<()> {
        for (table, record) in batch.records {
            let key = primary_key(table, &record);
            let outcome = match self.parents.read(table, &key).await? {
                Some(existing) => compare(&record, &existing),
                None => Outcome::Copied,
            };
            self.report.add(table, &record, outcome, "")?;
            if outcome == Outcome::Copied {
                self.parents.planned.insert((table.noun, key), record);
            }
        }
        Ok(())
    }

    fn actions(
        &self,
        parents: &[Parent],
        records: &[(Table, Value)],
    ) -> Result<Vec<TransactWriteItem>> {
        let checks = parents.iter().map(|parent| parent.check(self.deployment));
        let Operator { name, run_id } = &self.operator;
        let puts = records.iter().map(|(table, record)| {
            let mut record = record.clone();
            record[MARKS[0]] = json!(timestamp(SystemTime::now()));
            record[MARKS[1]] = json!(name);
            record[MARKS[2]] = json!(run_id);
            put(self.deployment, *table, &record)
        });
        checks.chain(puts).collect()
    }
}

/// The message with which DynamoDB rejects a transaction because of its records, if it does.
fn rejection(error: &anyhow::Error) -> Option<String> {
    let error: &SdkError<TransactWriteItemsError> = error.downcast_ref()?;
    let message = match error.as_service_error()? {
        TransactWriteItemsError::TransactionCanceledException(cancelled) => {
            let mut reasons = cancelled.cancellation_reasons().iter();
            let invalid = reasons.find(|reason| reason.code() == Some("ValidationError"));
            invalid?.message()
        }
        other => other
            .message()
            .filter(|_| other.code() == Some("ValidationException")),
    };
    message.map(str::to_owned)
}

/// The outcome of a record whose key exists.
fn compare(record: &Value, existing: &Value) -> Outcome {
    let [record, existing] = [record, existing].map(|record| {
        let mut record = record.clone();
        if let Some(attributes) = record.as_object_mut() {
            attributes.retain(|name, _| !MARKS.contains(&name.as_str()));
        }
        record
    });
    match record == existing {
        true => Outcome::Exists,
        false => Outcome::Differs,
    }
}
