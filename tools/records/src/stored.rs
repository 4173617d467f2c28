//! Stored records, with every attribute that they have.

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

/// A stored record of the kind `R`. Later versions and other programs can add attributes that `R`
/// lacks.
#[derive(Debug, Clone)]
pub struct Stored<R> {
    /// The record.
    pub record: R,
    /// Every attribute of the record, as it is stored.
    pub attributes: Value,
}

impl<R: DeserializeOwned> Stored<R> {
    /// Parses the attributes of a record.
    ///
    /// # Errors
    /// If a required attribute is missing, or an attribute of `R` has a different type.
    pub fn parse(attributes: Value) -> serde_json::Result<Self> {
        let record = R::deserialize(&attributes)?;
        Ok(Self { record, attributes })
    }
}

/// When a record of any kind was created, changed and restored, and by which requests. A missing
/// value is an empty string.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Audit {
    pub created_at: String,
    pub request_id: String,
    pub updated_at: String,
    pub updated_request_id: String,
    pub restored_at: String,
}

impl Audit {
    /// Reads the attributes of a record. Values of other types are read as empty.
    pub fn of(attributes: &Value) -> Self {
        Self::deserialize(attributes).unwrap_or_default()
    }

    /// When the record was last changed. The format of timestamps sorts them by time.
    pub fn changed_at(&self) -> &str {
        let times = [&self.created_at, &self.updated_at, &self.restored_at];
        times.into_iter().max().map_or("", String::as_str)
    }

    /// Whether a request created the record or was the last to change it.
    pub fn is_from(&self, request_id: &str) -> bool {
        self.request_id == request_id || self.updated_request_id == request_id
    }
}
