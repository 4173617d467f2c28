//! The records that the page shows. They are read again only after a request that may have written, so
//! that a page that polls every second costs little.

use std::cmp::Reverse;

use anyhow::Result;
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};
use workspace_management::store::Table;
use workspace_records::{
    columns::{columns, key_columns, kinds},
    item::{primary_key, text, to_json},
    local::table_names,
};

use crate::dynamodb::DynamoDb;

/// How many records of each kind the page shows.
const NEWEST: usize = 4;

/// The stored records of every kind.
pub(crate) struct Records {
    dynamodb: DynamoDb,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    kinds: Vec<Kind>,
    /// The version of the data when the records were read.
    version: Option<u64>,
    /// The newest records.
    newest: Value,
}

/// The records of a table, sorted by their keys.
struct Kind {
    table: Table,
    records: Vec<Value>,
}

impl Records {
    pub(crate) fn new(dynamodb: DynamoDb) -> Self {
        Self {
            dynamodb,
            state: Mutex::default(),
        }
    }

    /// The newest records of every kind.
    pub(crate) async fn newest(&self) -> Result<Value> {
        Ok(self.state().await?.newest.clone())
    }

    /// The records of a kind, or `None` if there is no such kind.
    pub(crate) async fn of_kind(&self, name: &str) -> Result<Option<Value>> {
        let state = self.state().await?;
        let mut kinds = state.kinds.iter();
        let kind = kinds.find(|kind| kind.table.noun == name);
        Ok(kind.map(|kind| kind.view(kind.records.iter(), usize::MAX)))
    }

    /// The records that a request has created or changed, of each kind that has some.
    pub(crate) async fn stored_by(&self, request_id: &str) -> Result<Vec<Value>> {
        let state = self.state().await?;
        let is_by_request = |record: &&Value| {
            ["request_id", "updated_request_id"]
                .map(|name| text(record, name))
                .contains(&request_id)
        };
        let kinds = state.kinds.iter();
        let views = kinds.map(|kind| {
            let records = kind.records.iter().filter(is_by_request);
            kind.view(records, usize::MAX)
        });
        Ok(views.filter(|view| view["total"] != 0).collect())
    }

    /// All records. Reads them if they may have changed.
    async fn state(&self) -> Result<MutexGuard<'_, State>> {
        let mut state = self.state.lock().await;
        let version = Some(self.dynamodb.version());
        if state.version != version {
            state.kinds.clear();
            for table in kinds() {
                state.kinds.push(Kind::read(table, &self.dynamodb).await?);
            }
            let kinds = state.kinds.iter();
            state.newest = kinds
                .map(|kind| kind.view(kind.records.iter(), NEWEST))
                .collect();
            state.version = version;
        }
        Ok(state)
    }
}

impl Kind {
    /// Reads all records of a table.
    async fn read(table: Table, dynamodb: &DynamoDb) -> Result<Self> {
        let scan = dynamodb.client().scan();
        let scan = scan.table_name(table_names().name(table)).into_paginator();
        let mut items = scan.items().send();
        let mut records = Vec::new();
        while let Some(item) = items.next().await {
            records.push(to_json(item?));
        }
        records.sort_by_cached_key(|record| primary_key(table, record));
        Ok(Self { table, records })
    }

    /// The newest of these records, with their number and columns.
    fn view<'a>(&self, records: impl Iterator<Item = &'a Value>, limit: usize) -> Value {
        let mut records: Vec<&Value> = records.collect();
        let total = records.len();
        // Records of one request stay in the order of their keys.
        records.sort_by_key(|record| Reverse(changed_at(record)));
        records.truncate(limit);
        json!({
            "kind": self.table.noun,
            "key": key_columns(self.table),
            "columns": columns(self.table, records.iter().copied()),
            "total": total,
            "records": records,
        })
    }
}

/// When a record was last changed. Timestamps of one format are sorted like times.
fn changed_at(record: &Value) -> &str {
    match text(record, "updated_at") {
        "" => text(record, "created_at"),
        updated_at => updated_at,
    }
}
