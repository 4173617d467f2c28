//! The records that the local page shows. Reads them again only after a request that may have
//! written, because an open page polls about every second.

use std::cmp::Reverse;

use anyhow::Result;
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};
use workspace_management::records::Table;
use workspace_records::{
    columns::{columns, key_columns},
    item::{primary_key_values, to_json},
    kinds::{Kind, api_tables},
    local::table_names,
    stored::Audit,
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
    tables: Vec<TableRecords>,
    /// The version of the data when the records were read. `None` before the first read.
    version: Option<u64>,
    /// The newest records of every kind.
    newest: Vec<Value>,
}

/// The records of a table, sorted by their primary keys.
struct TableRecords {
    table: Table,
    records: Vec<Value>,
}

impl Records {
    pub(crate) fn new(dynamodb: DynamoDb) -> Self {
        let state = Mutex::default();
        Self { dynamodb, state }
    }

    /// The newest records of every kind.
    pub(crate) async fn newest(&self) -> Result<Vec<Value>> {
        Ok(self.state().await?.newest.clone())
    }

    /// The records of a kind, or `None` if there is no such kind.
    pub(crate) async fn of_kind(&self, name: &str) -> Result<Option<Value>> {
        let state = self.state().await?;
        let kind = state
            .tables
            .iter()
            .find(|kind| Kind::of(kind.table).plural == name);
        Ok(kind.map(|kind| kind.view(kind.records.iter().collect(), usize::MAX)))
    }

    /// The records that a request created or changed. Leaves out kinds without such records.
    pub(crate) async fn stored_by(&self, request_id: &str) -> Result<Vec<Value>> {
        let state = self.state().await?;
        let mut views = Vec::new();
        for kind in &state.tables {
            let mut records = Vec::new();
            for record in &kind.records {
                if Audit::of(record).is_from(request_id) {
                    records.push(record);
                }
            }
            if !records.is_empty() {
                views.push(kind.view(records, usize::MAX));
            }
        }
        Ok(views)
    }

    /// All records. Reads them if they may have changed.
    async fn state(&self) -> Result<MutexGuard<'_, State>> {
        let mut state = self.state.lock().await;
        let version = Some(self.dynamodb.version());
        if state.version != version {
            let mut tables = Vec::new();
            let mut newest = Vec::new();
            for table in api_tables() {
                let kind = TableRecords::read(table, &self.dynamodb).await?;
                newest.push(kind.view(kind.records.iter().collect(), NEWEST));
                tables.push(kind);
            }
            state.tables = tables;
            state.newest = newest;
            state.version = version;
        }
        Ok(state)
    }
}

impl TableRecords {
    /// Reads all records of a table.
    async fn read(table: Table, dynamodb: &DynamoDb) -> Result<Self> {
        let mut items = dynamodb
            .client()
            .scan()
            .table_name(table_names().get(table))
            .into_paginator()
            .items()
            .send();
        let mut records = Vec::new();
        while let Some(item) = items.next().await {
            records.push(to_json(item?));
        }
        records.sort_by_cached_key(|record| primary_key_values(table, record));
        Ok(Self { table, records })
    }

    /// The newest `limit` of these records, their columns, and the number of all these records.
    fn view(&self, mut records: Vec<&Value>, limit: usize) -> Value {
        let total = records.len();
        // The sort is stable: records of one request stay in the order of their primary keys.
        records.sort_by_cached_key(|record| Reverse(Audit::of(record).changed_at().to_owned()));
        records.truncate(limit);
        json!({
            "kind": Kind::of(self.table).plural,
            "key": key_columns(self.table),
            "columns": columns(self.table, records.iter().copied()),
            "total": total,
            "records": records,
        })
    }
}
