//! Exports, which `orgs export`, `orgs erase` and `remove` write and `restore` reads. They are JSON
//! Lines. Each line is an object with the fields `table` (the kind of the record) and `record`.

use std::{
    ffi::OsStr,
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, ErrorKind, Stdout, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use serde_json::json;
use tempfile::TempPath;
use workspace_records::kinds::Kind;

use crate::{
    arguments::is_dash,
    deployment::Deployment,
    errors::UsageError,
    marked_deletion::is_mark_attribute,
    output::{is_stdout_closed, is_stdout_discarded, sync_stdout},
    read::Scope,
    record::Record,
    text::escape_json,
};

/// Checks the file in the option `--export` of a command that deletes records. Leaves no file
/// behind: commands check the file before they ask for confirmation, and create it after the answer.
pub(crate) fn check_export(path: Option<&Path>) -> Result<()> {
    let Some(path) = path else {
        return Ok(());
    };
    ensure!(
        !is_dash(path) || !is_stdout_discarded()?,
        "nothing was deleted, because standard output is closed or /dev/null, so the export would be lost"
    );
    ExportWriter::create(path).map(drop)
}

/// An export that is being written. On Unix, only the owner of the file can read it, because it may
/// hold personal data.
pub struct ExportWriter {
    output: Output,
}

enum Output {
    Stdout(BufWriter<Stdout>),
    File {
        writer: BufWriter<File>,
        /// The path of the incomplete file, which is deleted if the command fails. `None` after the
        /// first call of `persist`, which renames the file to `path`.
        partial_path: Option<TempPath>,
        path: PathBuf,
    },
}

impl ExportWriter {
    /// Writes to standard output if `path` is `-`. Otherwise, creates `FILE.partial`, where `FILE`
    /// is `path`. `persist` renames it to `FILE`. Unless `persist` is called, it is deleted. Fails
    /// if it cannot be created, if standard output is closed, or if `FILE` or `FILE.partial`
    /// exists, because two commands must not share a file.
    pub fn create(path: &Path) -> Result<Self> {
        if is_dash(path) {
            ensure!(
                !is_stdout_closed()?,
                "nothing was exported, because standard output is closed"
            );
            let output = Output::Stdout(BufWriter::new(io::stdout()));
            return Ok(Self { output });
        }
        let name = path.display();
        let text = path.as_os_str().as_encoded_bytes();
        let has_name = |name: &OsStr| text.ends_with(name.as_encoded_bytes());
        // Such as `exports/` and `exports/.`, even if they do not exist.
        let is_folder = !path.file_name().is_some_and(has_name);
        if is_folder || path.is_dir() {
            let message = format!("{name} is a folder: add the name of a new file");
            return Err(UsageError(message).into());
        }
        if fs::symlink_metadata(path).is_ok() {
            return Err(exists_error(path, ""));
        }
        let partial_path = path.with_added_extension("partial");
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let folder = path.parent().unwrap_or(path);
        let file = match options.open(&partial_path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let advice = ", or delete this one if no other command is writing to it";
                return Err(exists_error(&partial_path, advice));
            }
            Err(error) if error.kind() == ErrorKind::NotFound && !folder.exists() => {
                let folder = folder.display();
                bail!("cannot write {name}: there is no folder {folder}");
            }
            result => result.with_context(|| format!("cannot write {}", partial_path.display()))?,
        };
        let output = Output::File {
            writer: BufWriter::new(file),
            partial_path: Some(TempPath::try_from_path(partial_path)?),
            path: path.to_owned(),
        };
        Ok(Self { output })
    }

    /// Writes a record without its mark and, for an API key, without the hash of its secret.
    pub(crate) fn write(&mut self, mut record: Record) -> Result<()> {
        let kind = Kind::of(record.key.table()).plural;
        let is_exported = |name: &String| name != "secret_sha256" && !is_mark_attribute(name);
        record.item.retain(|name, _| is_exported(name));
        let line = json!({ "table": kind, "record": record.to_json() }).to_string();
        let writer: &mut dyn Write = match &mut self.output {
            Output::Stdout(writer) => writer,
            Output::File { writer, .. } => writer,
        };
        writeln!(writer, "{}", escape_json(&line)).map_err(|error| self.cannot_write_error(&error))
    }

    /// Writes the records in a scope and returns how many there were. Writes each page before
    /// reading the next, so that memory use does not grow with the number of records.
    pub(crate) async fn write_scope(
        &mut self,
        deployment: &Deployment,
        scope: &Scope,
    ) -> Result<usize> {
        let mut count = 0;
        let mut pages = scope.pages(deployment, None);
        while let Some(page) = pages.next().await? {
            count += page.len();
            for record in page {
                self.write(record)?;
            }
        }
        Ok(count)
    }

    /// Syncs the file and, on the first call, renames it to `FILE`. Never replaces an existing
    /// file. May be called again after further writes.
    pub(crate) fn persist(&mut self) -> Result<()> {
        self.try_persist()
            .map_err(|error| self.cannot_write_error(&error))
    }

    fn try_persist(&mut self) -> io::Result<()> {
        match &mut self.output {
            Output::Stdout(writer) => {
                writer.flush()?;
                sync_stdout()
            }
            Output::File {
                writer,
                partial_path,
                path,
            } => {
                writer.flush()?;
                writer.get_ref().sync_all()?;
                if let Some(partial_path) = partial_path.take() {
                    partial_path.persist_noclobber(path)?;
                }
                Ok(())
            }
        }
    }

    fn cannot_write_error(&self, error: &io::Error) -> anyhow::Error {
        match &self.output {
            Output::Stdout(_) => anyhow!("cannot write standard output: {error}"),
            Output::File { path, .. } => anyhow!("cannot write {}: {error}", path.display()),
        }
    }
}

/// The error for an output file that already exists.
fn exists_error(path: &Path, advice: &str) -> anyhow::Error {
    let name = path.display();
    UsageError(format!("{name} exists: choose a different file{advice}")).into()
}
