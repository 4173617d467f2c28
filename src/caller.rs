//! Who is asking. Every operation takes a [`Caller`], and `auth` is where one comes from.

use std::time::SystemTime;

use serde::Serialize;

use crate::values::Identifier;

/// What stands as the maker of a record that was made without a key.
pub const ANONYMOUS: &str = "anonymous";

/// Someone who may call the operation that they are calling, for the one organization that they may touch.
#[derive(Debug, Clone)]
pub struct Caller {
    organization: Identifier,
    name: String,
    request_id: String,
}

impl Caller {
    /// For `auth`, after its checks: `name` is the id of a verified key, or [`ANONYMOUS`].
    pub(crate) fn admitted(organization: Identifier, name: &str, request_id: &str) -> Self {
        Self {
            organization,
            name: name.to_owned(),
            request_id: request_id.to_owned(),
        }
    }

    /// The organization whose records the caller may write.
    pub fn organization(&self) -> &Identifier {
        &self.organization
    }

    /// A key's id, or [`ANONYMOUS`].
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What a record says of its making, if it is made now.
    pub fn creation(&self) -> Creation {
        Creation {
            created_at: now(),
            created_by: self.name.clone(),
            request_id: self.request_id.clone(),
        }
    }
}

/// When, by whom and in which request a record was made. Every record holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Creation {
    /// RFC 3339, in UTC, to the millisecond.
    pub created_at: String,
    /// A key's id, or [`ANONYMOUS`].
    pub created_by: String,
    /// The request's id, as its response and its log line show it.
    pub request_id: String,
}

/// This moment in RFC 3339, in UTC, to the millisecond.
pub fn now() -> String {
    humantime::format_rfc3339_millis(SystemTime::now()).to_string()
}
