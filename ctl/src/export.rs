//! Exports, which `orgs export`, `orgs erase` and `remove` write and `restore` reads: JSON Lines,
//! one object with the fields `table` and `record` per line.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, ErrorKind, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, anyhow};
use serde_json::{Value, json};
use tempfile::TempPath;
use workspace_management::store::Table;
use workspace_records::item::to_json;

use crate::{
    deployment::Deployment, read::Read, text::escape_json, usage::UsageError, write::is_mark,
};

/// An export that is being written. Only its owner can read it: records can be personal data.
pub struct Export {
    /// The path of the complete file.
    path: PathBuf,
    out: BufWriter<Box<dyn Write + Send>>,
    /// `None` for standard output.
    file: Option<File>,
    /// The path of the incomplete file, which is deleted if the command fails.
    incomplete: Option<TempPath>,
}

impl Export {
    /// Creates a file that is called `FILE.partial` until `persist` is called. Without such a call, it
    /// is deleted. Refuses a file that exists, so that a file has the records of only one command.
    ///
    /// # Errors
    /// If `FILE` or `FILE.partial` exists, or `FILE.partial` cannot be written.
    pub fn create(path: &Path) -> Result<Self> {
        if fs::symlink_metadata(path).is_ok() {
            return Err(already_exists(path).into());
        }
        let incomplete = path.with_added_extension("partial");
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = match options.open(&incomplete) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(already_exists(&incomplete).into());
            }
            opened => opened.with_context(|| format!("cannot write {}", incomplete.display()))?,
        };
        Ok(Self {
            path: path.to_owned(),
            out: BufWriter::new(Box::new(file.try_clone()?)),
            file: Some(file),
            incomplete: Some(TempPath::try_from_path(incomplete)?),
        })
    }

    pub(crate) fn to_stdout() -> Self {
        Self {
            path: "standard output".into(),
            out: BufWriter::new(Box::new(io::stdout())),
            file: None,
            incomplete: None,
        }
    }

    /// Writes a record. Leaves out the hash of an API key's secret, and the mark.
    pub(crate) fn write(&mut self, table: Table, mut record: Value) -> Result<()> {
        if let Some(attributes) = record.as_object_mut() {
            attributes.retain(|name, _| name != "secret_sha256" && !is_mark(name));
        }
        let line = json!({ "table": table.kind, "record": record }).to_string();
        writeln!(self.out, "{}", escape_json(&line)).map_err(|error| self.failure(&error))
    }

    /// Writes the records that reads find, request by request, so that memory does not grow with
    /// the number of records. Returns this number.
    pub(crate) async fn write_all(
        &mut self,
        deployment: &Deployment,
        reads: Vec<Read>,
    ) -> Result<usize> {
        let mut count = 0;
        for mut read in reads {
            while let Some(items) = read.next(deployment).await? {
                count += items.len();
                for item in items {
                    self.write(read.table, to_json(item))?;
                }
            }
        }
        Ok(count)
    }

    /// Syncs the file and, at the first call, gives it its name. Never replaces an existing file.
    /// `remove member --all-teams` calls this before it deletes each record.
    pub(crate) fn persist(&mut self) -> Result<()> {
        self.out.flush().map_err(|error| self.failure(&error))?;
        if let Some(file) = &self.file {
            file.sync_all().map_err(|error| self.failure(&error))?;
        }
        if let Some(incomplete) = self.incomplete.take() {
            let kept = incomplete.persist_noclobber(&self.path);
            kept.map_err(|failed| self.failure(&failed.error))?;
        }
        Ok(())
    }

    /// The error if a write fails. Does not contain the `io::Error` itself: `crate::run` would take a
    /// closed pipe for success, although the export is incomplete.
    fn failure(&self, error: &io::Error) -> anyhow::Error {
        anyhow!("cannot write {}: {error}", self.path.display())
    }
}

/// The error for a file that must not exist.
fn already_exists(path: &Path) -> UsageError {
    let name = path.display();
    let hint = match path.extension() {
        Some(extension) if extension == "partial" => ", or delete it if no other run is writing it",
        _ => "",
    };
    UsageError::new(format!("{name} exists: choose a different file{hint}"))
}
