//! When records were created and changed.

use serde::Deserialize;
use serde_json::Value;

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
