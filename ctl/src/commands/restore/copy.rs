//! Copies records, in transactions that check what they belong to.

use std::{
    collections::{HashMap, HashSet},
    time::SystemTime,
};

use anyhow::Result;
use aws_sdk_dynamodb::types::{Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem};
use workspace_management::{
    api_key::KeyRecord,
    service::TIMEOUT,
    store::{Item, Table, timestamp},
    values::Identifier,
};

use super::{Report, parent::Parent, source::Source};
use crate::{
    deployment::Deployment,
    progress::Counter,
    records::{text_of, to_json},
    session::Operator,
    write::{MAX_ACTIONS, text, transact},
};

/// The attributes that a restore adds, which do not count as a difference.
const MARKS: [&str; 3] = ["restored_at", "restored_by", "restored_request_id"];

/// The tables in the order in which they are restored: a record needs those that it belongs to.
fn order() -> [Vec<Table>; 3] {
    let (first, last) = (Table::ORGANIZATIONS, Table::TEAM_MEMBERS);
    let others = Table::ALL.iter().copied();
    let others = others.filter(|table| ![first, last].contains(table));
    [vec![first], others.collect(), vec![last]]
}

const NO_KEYS: &str = "keys, which need --keys and are not in exports";
const NO_PARENT: &str = "their organization or team does not exist, or is being deleted";
const INVALID: &str = "the ids in their keys are not valid, or they are of another kind";
const OLDER: &str = "they are older than their organization or team, and belonged to another one";

/// Copies the records of a source.
///
/// # Errors
/// If the source cannot be read, or DynamoDB cannot be reached.
pub(crate) async fn restore(
    deployment: &Deployment,
    operator: &Operator,
    source: &Source,
    with_keys: bool,
) -> Result<Report> {
    let mut restore = Restore {
        deployment,
        operator,
        with_keys,
        parents: HashMap::new(),
        report: Report::default(),
        counter: Counter::new("records processed"),
    };
    let order = order();
    for tables in &order {
        let mut batches = source.batches(tables)?;
        while let Some((table, records)) = batches.next(deployment).await? {
            restore.copy(table, records).await?;
        }
    }
    restore.counter.finish();
    Ok(restore.report)
}

struct Restore<'a> {
    deployment: &'a Deployment,
    operator: &'a Operator,
    with_keys: bool,
    /// The organizations and teams that were read. `None` if they do not exist or are being deleted.
    parents: HashMap<(&'static str, Vec<String>), Option<Parent>>,
    report: Report,
    counter: Counter,
}

impl Restore<'_> {
    /// Copies records of a table. Consecutive records of the same organization and team are one
    /// transaction.
    async fn copy(&mut self, table: Table, records: Vec<Item>) -> Result<()> {
        self.counter.add(records.len());
        let (mut batch, mut parents) = (Vec::new(), Vec::new());
        // A transaction cannot contain two records with the same key.
        let mut keys = HashSet::new();
        for record in records {
            let own = match self.parents_of(table, &record).await? {
                Ok(own) => own,
                Err(reason) => {
                    *self.report.skipped.entry(reason).or_default() += 1;
                    continue;
                }
            };
            let key: Vec<_> = table
                .primary_key
                .iter()
                .map(|name| item_text(&record, name).to_owned())
                .collect();
            let is_full = batch.len() + own.len() == MAX_ACTIONS;
            if own != parents || is_full || !keys.insert(key.clone()) {
                self.put(table, &parents, std::mem::take(&mut batch))
                    .await?;
                parents = own;
                keys = HashSet::from([key]);
            }
            batch.push(record);
        }
        self.put(table, &parents, batch).await
    }

    /// The records that one belongs to, or why it must be skipped.
    async fn parents_of(
        &mut self,
        table: Table,
        record: &Item,
    ) -> Result<Result<Vec<Parent>, &'static str>> {
        let is_key = table == Table::KEYS;
        if is_key && !(self.with_keys && record.contains_key("secret_sha256")) {
            return Ok(Err(NO_KEYS));
        }
        let joined = item_text(
            record,
            if is_key {
                "org_id"
            } else {
                table.primary_key[0]
            },
        );
        let ids: Vec<String> = joined.split('#').map(str::to_owned).collect();
        let is_valid = |id: &String| Identifier::new(id).is_some();
        if ids.len() != table.partition.len() || !ids.iter().all(is_valid) {
            return Ok(Err(INVALID));
        }
        let mut keys = Vec::new();
        if table != Table::ORGANIZATIONS {
            keys.push((Table::ORGANIZATIONS, vec![ids[0].clone()]));
        }
        if let (Table::TEAM_MEMBERS, [org, project, team]) = (table, &ids[..]) {
            keys.push((Table::TEAMS, vec![format!("{org}#{project}"), team.clone()]));
        }
        let mut parents = Vec::new();
        for (table, key) in keys {
            let Some(parent) = self.parent(table, key).await? else {
                return Ok(Err(NO_PARENT));
            };
            let [own, created] = [
                item_text(record, "created_at"),
                text_of(&parent.record, "created_at"),
            ]
            .map(humantime::parse_rfc3339);
            // A request can have been received shortly before its team was created.
            if let (Ok(own), Ok(created)) = (own, created)
                && own + TIMEOUT < created
            {
                return Ok(Err(OLDER));
            }
            parents.push(parent);
        }
        Ok(Ok(parents))
    }

    async fn parent(&mut self, table: Table, key: Vec<String>) -> Result<Option<Parent>> {
        let id = (table.noun, key);
        if let Some(parent) = self.parents.get(&id) {
            return Ok(parent.clone());
        }
        let parent = Parent::read(self.deployment, table, id.1.clone()).await?;
        self.parents.insert(id, parent.clone());
        Ok(parent)
    }

    /// Puts the records that do not exist, if what they belong to is as it was read.
    async fn put(
        &mut self,
        table: Table,
        parents: &[Parent],
        mut records: Vec<Item>,
    ) -> Result<()> {
        while !records.is_empty() {
            let mut actions = Vec::new();
            for parent in parents {
                actions.push(parent.check(self.deployment)?);
            }
            for record in &records {
                actions.push(self.put_action(table, record)?);
            }
            let failed = transact(self.deployment, actions).await?;
            if failed.is_empty() {
                self.report.copied += records.len();
                self.report
                    .keys
                    .extend(records.iter().filter_map(usable_key));
                return Ok(());
            }
            if failed[0].index < parents.len() {
                self.parents.clear();
                *self.report.skipped.entry(NO_PARENT).or_default() += records.len();
                return Ok(());
            }
            // Sends the others again.
            for failed in failed.into_iter().rev() {
                let record = records.remove(failed.index - parents.len());
                match is_equal(&record, &failed.existing) {
                    true => self.report.existed += 1,
                    false => self.report.differ += 1,
                }
            }
        }
        Ok(())
    }

    fn put_action(&self, table: Table, record: &Item) -> Result<TransactWriteItem> {
        let put = Put::builder()
            .table_name(self.deployment.tables.name(table))
            .set_item(Some(record.clone()))
            .item(MARKS[0], text(&timestamp(SystemTime::now())))
            .item(MARKS[1], text(&self.operator.name))
            .item(MARKS[2], text(&self.operator.run_id))
            .condition_expression("attribute_not_exists(#key)")
            .expression_attribute_names("#key", table.primary_key[0])
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        Ok(TransactWriteItem::builder().put(put.build()?).build())
    }
}

/// The id of a key that is neither expired nor revoked.
fn usable_key(record: &Item) -> Option<String> {
    let key: KeyRecord = serde_json::from_value(to_json(record.clone())).ok()?;
    key.is_valid_at(SystemTime::now()).then_some(key.key_id)
}

/// Whether a record and an existing one are equal, apart from the marks of a restore.
fn is_equal(record: &Item, existing: &Item) -> bool {
    let without_marks = |item: &Item| {
        let mut item = item.clone();
        item.retain(|name, _| !MARKS.contains(&name.as_str()));
        item
    };
    without_marks(record) == without_marks(existing)
}

/// The text of an attribute, or an empty one.
fn item_text<'a>(item: &'a Item, name: &str) -> &'a str {
    let text = item.get(name).and_then(|value| value.as_s().ok());
    text.map_or("", String::as_str)
}
