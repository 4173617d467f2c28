//! The files that `orgs export`, `orgs erase` and `remove` write, and `restore` reads: JSON Lines, one
//! `{"record", "table"}` per line.

mod appended;
mod complete;

use std::{
    fs::{self, File, OpenOptions},
    path::Path,
};

use serde_json::{Value, json};
use workspace_management::store::Table;

pub use self::{appended::AppendedExport, complete::CompleteExport};
use crate::output::escape_json;

/// A record as a line. The digest of a key is left out, and so are the marks of an erasure: nothing can
/// be restored to an organization that is being erased.
pub(crate) fn line(table: Table, mut record: Value) -> String {
    if let Some(attributes) = record.as_object_mut() {
        attributes.retain(|name, _| name != "secret_sha256" && !name.starts_with("erasing_"));
    }
    escape_json(&json!({ "table": table.noun, "record": record }).to_string())
}

/// A file that only its owner can read, because records can be personal data.
pub(crate) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Whether a path still names an open file, which another program can have moved or deleted.
fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        #[cfg(unix)]
        (Ok(open), Ok(named)) => {
            use std::os::unix::fs::MetadataExt as _;
            (open.dev(), open.ino()) == (named.dev(), named.ino())
        }
        (_, named) => named.is_ok(),
    }
}
