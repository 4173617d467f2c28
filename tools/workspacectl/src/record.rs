//! Stored records, with every attribute that they have. Later versions and other programs can add
//! attributes that the structs in [`workspace_management::records`] lack.

use anyhow::{Context as _, Result};
use serde::de::DeserializeOwned;
use serde_json::Value;
use workspace_management::{records::Table, store::Item};
use workspace_records::{item::to_json, kinds::PrimaryKey};

/// The attributes that identify the creation of a record. They differ after a record was removed and
/// created again.
pub(crate) const CREATION: [&str; 2] = ["created_at", "request_id"];

/// The attributes that identify the latest write to a record. Marks do not change them. The last
/// three are absent until the record is changed or restored.
pub(crate) const LAST_WRITE: [&str; 5] = [
    "created_at",
    "request_id",
    "updated_at",
    "updated_request_id",
    "restored_request_id",
];

/// A stored record of the kind `R`.
#[derive(Debug, Clone)]
pub struct Stored<R> {
    /// The attributes that this version knows.
    pub fields: R,
    pub(crate) record: Record,
}

/// A stored record of any kind.
#[derive(Debug, Clone)]
pub struct Record {
    pub(crate) key: PrimaryKey,
    /// Every attribute, including those of the primary key.
    pub(crate) item: Item,
}

impl Record {
    /// Fails if an attribute of the primary key is missing or is not a string.
    pub(crate) fn new(table: Table, item: Item) -> Result<Self> {
        let key = PrimaryKey::of(table, &item).with_context(|| {
            let table = table.logical_id;
            format!(
                "a record in {table} has a malformed primary key: {}",
                to_json(item.clone())
            )
        })?;
        Ok(Self { key, item })
    }

    /// A record without attributes.
    pub(crate) fn empty(key: &PrimaryKey) -> Self {
        Self {
            key: key.clone(),
            item: Item::new(),
        }
    }

    /// The value of an attribute. `None` if the attribute is missing or is not a string.
    pub fn text(&self, attribute: &str) -> Option<&str> {
        self.item.get(attribute)?.as_s().ok().map(String::as_str)
    }

    pub(crate) fn has(&self, attribute: &str) -> bool {
        self.item.contains_key(attribute)
    }

    /// Parses the record as a struct of its kind. Fails if it is malformed.
    pub(crate) fn parse<R: DeserializeOwned>(self) -> Result<Stored<R>> {
        let fields = serde_dynamo::from_item(self.item.clone())
            .with_context(|| format!("the record of {} is malformed", self.key))?;
        Ok(Stored {
            fields,
            record: self,
        })
    }

    /// Whether these attributes have the same values in both records.
    pub(crate) fn has_same(&self, other: &Self, attributes: &[&str]) -> bool {
        attributes
            .iter()
            .all(|name| self.item.get(*name) == other.item.get(*name))
    }

    /// The record, for output.
    pub(crate) fn to_json(&self) -> Value {
        to_json(self.item.clone())
    }
}
