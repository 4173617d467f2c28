//! The files that `orgs export`, `orgs erase` and `remove` write, and `restore` reads: JSON Lines, one
//! `{"record", "table"}` per line.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, ErrorKind, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::{Value, json};
use tempfile::TempPath;
use workspace_management::store::Table;
use workspace_records::item::to_json;

use crate::{deployment::Deployment, query::Query, text::escape_json, usage::UsageError};

/// A new file, which only its owner can read, because records can be personal data.
pub struct Export {
    path: PathBuf,
    out: BufWriter<Box<dyn Write + Send>>,
    /// The file. `None` for standard output.
    file: Option<File>,
    /// The path that is deleted if the command fails.
    temporary: Option<TempPath>,
}

impl Export {
    /// Creates a file to which removals write before they delete. It is deleted if nothing is written.
    ///
    /// # Errors
    /// If it exists, so that an undo restores only its own removal, or cannot be written.
    pub fn create(path: &Path) -> Result<Self> {
        Self::open(path, path.to_owned())
    }

    /// Creates a file that is `FILE.partial` until it is complete.
    ///
    /// # Errors
    /// If one of the files exists, or it cannot be written.
    pub(crate) fn create_partial(path: &Path) -> Result<Self> {
        if fs::symlink_metadata(path).is_ok() {
            return Err(exists(path).into());
        }
        Self::open(path, path.with_added_extension("partial"))
    }

    /// Writes to standard output.
    pub(crate) fn to_stdout() -> Self {
        Self {
            path: "standard output".into(),
            out: BufWriter::new(Box::new(io::stdout())),
            file: None,
            temporary: None,
        }
    }

    fn open(path: &Path, temporary: PathBuf) -> Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = match options.open(&temporary) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(exists(&temporary).into());
            }
            opened => opened.with_context(|| format!("cannot write {}", temporary.display()))?,
        };
        Ok(Self {
            path: path.to_owned(),
            out: BufWriter::new(Box::new(file.try_clone()?)),
            file: Some(file),
            temporary: Some(TempPath::try_from_path(temporary)?),
        })
    }

    /// Writes a record, without the digest of a key and the marks of removals and erasures.
    pub(crate) fn write(&mut self, table: Table, mut record: Value) -> Result<()> {
        if let Some(attributes) = record.as_object_mut() {
            attributes.retain(|name, _| name != "secret_sha256" && !is_mark(name));
        }
        let line = json!({ "table": table.noun, "record": record }).to_string();
        writeln!(self.out, "{}", escape_json(&line)).map_err(|error| self.failure(&error))
    }

    /// Writes what queries find, one request after the other, so that memory does not grow with the
    /// number of records. Returns that number.
    pub(crate) async fn write_all(
        &mut self,
        deployment: &Deployment,
        queries: Vec<Query>,
    ) -> Result<usize> {
        let mut count = 0;
        for mut query in queries {
            while let Some(items) = query.next(deployment).await? {
                count += items.len();
                for item in items {
                    self.write(query.table, to_json(item))?;
                }
            }
        }
        Ok(count)
    }

    /// Keeps what was written, so that it can be deleted from the tables.
    pub(crate) fn keep(&mut self) -> Result<()> {
        self.sync()?;
        if let Some(temporary) = self.temporary.take() {
            temporary.keep()?;
        }
        Ok(())
    }

    /// Gives the file its name, and never replaces another file.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.sync()?;
        let Some(partial) = self.temporary.take() else {
            return Ok(());
        };
        match partial.persist_noclobber(&self.path) {
            Err(failed) if failed.error.kind() == ErrorKind::AlreadyExists => {
                bail!("{}", exists(&self.path))
            }
            persisted => persisted.map_err(|failed| self.failure(&failed.error)),
        }
    }

    fn sync(&mut self) -> Result<()> {
        self.out.flush().map_err(|error| self.failure(&error))?;
        if let Some(file) = &self.file {
            file.sync_all().map_err(|error| self.failure(&error))?;
        }
        Ok(())
    }

    /// An incomplete export is a failure, also if the reader of standard output has closed it.
    fn failure(&self, error: &io::Error) -> anyhow::Error {
        anyhow!("cannot write {}: {error}", self.path.display())
    }
}

/// Whether an attribute marks a record that is being removed or erased.
pub(crate) fn is_mark(name: &str) -> bool {
    name.starts_with("removing_") || name.starts_with("erasing_")
}

fn exists(path: &Path) -> UsageError {
    let name = path.display();
    let hint = match path.extension() {
        Some(extension) if extension == "partial" => ", or delete it if no other run is writing it",
        _ => "",
    };
    UsageError(format!("{name} exists: choose another file{hint}"))
}
