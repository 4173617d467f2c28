//! `restore`: copies records back from a restored table or an export. It never overwrites a record.

mod source;

use std::collections::HashMap;

use anyhow::Result;
use aws_sdk_dynamodb::types::{Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::json;
use workspace_management::store::{Item, Table, timestamp};

use self::source::Source;
use crate::{
    deployment::Deployment,
    output::print_records,
    progress::Counter,
    records::{get, text_of},
    session::{Operator, Session},
    write::{Condition, MAX_ACTIONS, text, transact},
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  workspacectl restore --from TeamsTable-restored --to teams
  workspacectl restore --from KeysTable-restored --to keys --keys
  workspacectl restore --from globex.jsonl";

/// The attributes that a restore adds, which do not count as a difference.
const MARKS: [&str; 3] = ["restored_at", "restored_by", "restored_request_id"];

/// The options of `restore`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The name of a table that was restored from a backup, or a file of `orgs export`
    #[arg(long, value_name = "TABLE|FILE")]
    from: String,
    /// The kind of the records [default: what each line of the file says]
    #[arg(long, value_name = "KIND", value_parser = kind_parser())]
    to: Option<Table>,
    /// Also restore API keys. They become usable unless they are expired
    #[arg(long)]
    keys: bool,
}

fn kind_parser() -> impl TypedValueParser<Value = Table> {
    PossibleValuesParser::new(Table::ALL.iter().map(|table| table.name)).try_map(|name| {
        let table = Table::ALL.iter().copied().find(|table| table.name == name);
        table.ok_or("unknown kind")
    })
}

/// What became of the records.
#[derive(Debug, Default)]
struct Report {
    copied: usize,
    existed: usize,
    differ: usize,
    skipped: usize,
    /// The ids of the restored keys.
    keys: Vec<String>,
}

/// Copies records and reports what became of them.
///
/// # Errors
/// If the source cannot be read, or DynamoDB cannot be reached.
pub(crate) async fn run(options: Options, session: &Session) -> Result<()> {
    let source = Source::new(&options.from, options.to)?;
    let deployment = session.deployment().await?;
    let operator = Operator::of(deployment).await?;
    let mut restore = Restore {
        deployment,
        operator: &operator,
        with_keys: options.keys,
        parents: HashMap::new(),
        report: Report::default(),
        counter: Counter::new("records processed"),
    };
    // Organizations first, and teams before members: a record needs those that it belongs to.
    for tables in [
        &[Table::ORGANIZATIONS][..],
        &[
            Table::KEYS,
            Table::TEAMS,
            Table::MODELS,
            Table::BOT_VOICES,
            Table::DATA_STORES,
            Table::LOGGING_INSTANCES,
        ],
        &[Table::TEAM_MEMBERS],
    ] {
        let mut batches = source.batches(tables)?;
        while let Some((table, records)) = batches.next(deployment).await? {
            restore.copy(table, records).await?;
        }
    }
    restore.counter.finish();
    let Report {
        copied,
        existed,
        differ,
        skipped,
        keys,
    } = restore.report;
    if !keys.is_empty() {
        eprintln!(
            "these keys can be used again, unless they are expired: {}",
            keys.join(", ")
        );
    }
    let report = json!({
        "copied": copied, "existed": existed, "differ": differ, "skipped": skipped, "keys": keys,
        "restored_by": operator.name, "request_id": operator.run_id,
    });
    print_records(
        &[report],
        &["copied", "existed", "differ", "skipped"],
        session.json,
    )
}

/// A record that others belong to: an organization or a team.
#[derive(Debug, Clone, PartialEq)]
struct Parent {
    table: Table,
    key: Vec<String>,
    created_at: String,
}

struct Restore<'a> {
    deployment: &'a Deployment,
    operator: &'a Operator,
    with_keys: bool,
    /// The organizations and teams that were read. `None` if they do not exist or are being removed.
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
        for record in records {
            let Some(own) = self.parents_of(table, &record).await? else {
                self.report.skipped += 1;
                continue;
            };
            if own != parents || batch.len() + own.len() == MAX_ACTIONS {
                self.put(table, &parents, std::mem::take(&mut batch))
                    .await?;
                parents = own;
            }
            batch.push(record);
        }
        self.put(table, &parents, batch).await
    }

    /// The records that one belongs to. `None` if it must be skipped: one of them does not exist or
    /// is being removed, or was created after the record and is another one under the same id.
    async fn parents_of(&mut self, table: Table, record: &Item) -> Result<Option<Vec<Parent>>> {
        let is_key = table == Table::KEYS;
        if is_key && (!self.with_keys || !record.contains_key("secret_sha256")) {
            return Ok(None);
        }
        let joined = match is_key {
            true => item_text(record, "org_id"),
            false => item_text(record, table.key[0]),
        };
        let ids: Vec<String> = joined.split('#').map(str::to_owned).collect();
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
                return Ok(None);
            };
            // RFC 3339 times in UTC sort chronologically.
            if item_text(record, "created_at") < parent.created_at.as_str() {
                return Ok(None);
            }
            parents.push(parent);
        }
        Ok(Some(parents))
    }

    async fn parent(&mut self, table: Table, key: Vec<String>) -> Result<Option<Parent>> {
        let id = (table.name, key);
        if let Some(parent) = self.parents.get(&id) {
            return Ok(parent.clone());
        }
        let key: Vec<_> = id.1.iter().map(String::as_str).collect();
        let record = get(self.deployment, table, &key).await?;
        let record = record.filter(|record| record[mark(table)].is_null());
        let parent = record.map(|record| Parent {
            table,
            key: id.1.clone(),
            created_at: text_of(&record, "created_at").to_owned(),
        });
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
                if table == Table::KEYS {
                    let ids = records
                        .iter()
                        .map(|key| item_text(key, "key_id").to_owned());
                    self.report.keys.extend(ids);
                }
                return Ok(());
            }
            if failed[0].0 < parents.len() {
                self.parents.clear();
                self.report.skipped += records.len();
                return Ok(());
            }
            // Sends the others again.
            for (index, existing) in failed.into_iter().rev() {
                let record = records.remove(index - parents.len());
                match is_equal(&record, &existing) {
                    true => self.report.existed += 1,
                    false => self.report.differ += 1,
                }
            }
        }
        Ok(())
    }

    fn put_action(&self, table: Table, record: &Item) -> Result<TransactWriteItem> {
        let now = timestamp(std::time::SystemTime::now());
        let put = Put::builder()
            .table_name(self.deployment.tables.name(table))
            .set_item(Some(record.clone()))
            .item(MARKS[0], text(&now))
            .item(MARKS[1], text(&self.operator.name))
            .item(MARKS[2], text(&self.operator.run_id))
            .condition_expression("attribute_not_exists(#key)")
            .expression_attribute_names("#key", table.key[0])
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        Ok(TransactWriteItem::builder().put(put.build()?).build())
    }
}

/// The attribute that marks an organization or a team which is being deleted.
fn mark(table: Table) -> &'static str {
    match table {
        Table::TEAMS => "removing_id",
        _ => "erasing_id",
    }
}

impl Parent {
    /// Checks that the record is still the one that was read, and is not being deleted.
    fn check(&self, deployment: &Deployment) -> Result<TransactWriteItem> {
        let key: Vec<_> = self.key.iter().map(String::as_str).collect();
        let condition = Condition {
            table: self.table,
            key: &key,
            expression: match self.table {
                Table::TEAMS => "created_at = :created_at AND attribute_not_exists(removing_id)",
                _ => "created_at = :created_at AND attribute_not_exists(erasing_id)",
            },
            values: &[("created_at", self.created_at.clone())],
        };
        condition.check(deployment)
    }
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
