//! An export to which removals append each record before they delete it.

use std::{
    collections::HashSet,
    fs::{self, File, TryLockError},
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use workspace_management::store::Table;

use super::{is_at, line, private_file};
use crate::usage::UsageError;

/// How a line begins. A killed process can leave the last line incomplete.
const START: &[u8] = b"{\"record\":{";

/// A file that only this process writes, and that is never replaced.
pub struct AppendedExport {
    pub(crate) path: PathBuf,
    file: File,
    lines: HashSet<String>,
}

impl AppendedExport {
    /// Opens the file, or creates it, before anything is read or marked.
    ///
    /// # Errors
    /// If it is not an export, another command is writing it, or it cannot be written.
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.display();
        let failure = || format!("cannot write {name}");
        if fs::metadata(path).is_ok_and(|existing| !existing.is_file()) {
            return Err(UsageError(format!("{name} is not a file: choose another one")).into());
        }
        let file = private_file().create(true).open(path);
        let mut file = file.with_context(failure)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => bail!(
                "another command is writing {name}: wait until it ends, or choose another file"
            ),
            locked => locked.with_context(failure)?,
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let mut lines = HashSet::new();
        for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
            if let Some(text) = export_line(line) {
                lines.insert(text + "\n");
                if !line.ends_with(b"\n") {
                    file.write_all(b"\n").with_context(failure)?;
                }
            } else if line.ends_with(b"\n") || !(line.starts_with(START) || START.starts_with(line))
            {
                let message = format!("line {} of {name} is not one of an export", index + 1);
                return Err(UsageError(format!("{message}: choose another file")).into());
            } else {
                // Its record was not deleted, because lines are on the disk before.
                eprintln!("note: {name} ended with an incomplete line, which was removed");
                let length = bytes.len() - line.len();
                file.set_len(length as u64).with_context(failure)?;
            }
        }
        let path = path.to_owned();
        Ok(Self { path, file, lines })
    }

    /// Appends records, except those that the file has already. They can be deleted then: they are
    /// on the disk.
    ///
    /// # Errors
    /// If the file cannot be written, or was moved or deleted.
    pub(crate) fn append(
        &mut self,
        table: Table,
        records: impl IntoIterator<Item = Value>,
    ) -> Result<()> {
        let name = self.path.display();
        let lines = records.into_iter().map(|record| line(table, record) + "\n");
        let new: String = lines
            .filter(|line| self.lines.insert(line.clone()))
            .collect();
        let written = self.file.write_all(new.as_bytes());
        let written = written.and_then(|()| self.file.sync_all());
        written.with_context(|| format!("cannot write {name}"))?;
        if !is_at(&self.file, &self.path) {
            bail!("{name} was moved or deleted, so the rest stays: run the command again");
        }
        Ok(())
    }

    /// How many records it has of a table whose primary key begins with these values.
    pub(crate) fn count(&self, table: Table, key: &[&str]) -> usize {
        let is_counted = |line: &&String| {
            let line: Value = serde_json::from_str(line).unwrap_or_default();
            let mut key = table.primary_key.iter().zip(key);
            line["table"] == table.noun && key.all(|(name, value)| line["record"][name] == *value)
        };
        self.lines.iter().filter(is_counted).count()
    }
}

/// The text of a line, if it is one of an export.
fn export_line(line: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(line).ok()?.trim_end();
    let parsed: Value = serde_json::from_str(text).ok()?;
    let is_line = |table: &Table| parsed["table"] == table.noun && parsed["record"].is_object();
    Table::ALL.iter().any(is_line).then(|| text.to_owned())
}
