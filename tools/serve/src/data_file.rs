//! `cargo serve --data`: an SQLite file that one process uses at a time.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail, ensure};
use workspace_records::local::{table_names, tables};

use crate::{demo::store_demo, dynamodb::DynamoDb, tables::create_missing};

/// The application id of an SQLite file that `cargo serve` created.
const COMPLETE: [u8; 4] = *b"wsmg";

/// The application id until the file has all tables and the demo organization.
const INCOMPLETE: [u8; 4] = *b"wsm+";

/// The position of the application id in the header of an SQLite file.
const ID_POSITION: u64 = 68;

/// A data file that this process has locked, under all its names.
///
/// The engine must be dropped first, because closing a file also ends SQLite's locks of the file.
pub(crate) struct DataFile {
    /// The path without links. SQLite's other files are next to it.
    path: PathBuf,
    opened: File,
    _lock: File,
}

/// Opens the DynamoDB in a data file, and follows links. If the file is missing or empty, creates
/// the demo organization.
///
/// # Errors
/// If another `cargo serve` uses the file, or if it cannot be used. A file that a different program
/// created, and anything that is not a regular file, stays as it is.
pub(crate) async fn open(path: &Path) -> Result<(DynamoDb, DataFile)> {
    let failure = || format!("cannot open the data file {}", path.display());
    let file = DataFile::open(path).with_context(failure)?;
    let dynamodb = file.open_database().await;
    if dynamodb.is_err() {
        // SQLite does not always say that the disk is full.
        try_to_write(&file.path).with_context(failure)?;
    }
    Ok((dynamodb.with_context(failure)?, file))
}

impl DataFile {
    /// Opens and locks a file. Creates an empty file if there is none.
    fn open(path: &Path) -> Result<Self> {
        ensure!(path.to_str().is_some(), "the path is not UTF-8");
        ensure!(
            path != Path::new("-"),
            "it cannot be standard input or output"
        );
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        // Only the owner can read a new file, because the data can be personal.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let opened = match fs::metadata(path) {
            // Opening a device can have effects.
            Ok(metadata) if !metadata.is_file() => bail!("it is not a regular file"),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                check_changes(path)?;
                options.create(true).open(path)?
            }
            _ => options.open(path)?,
        };
        let metadata = opened.metadata()?;
        ensure!(metadata.is_file(), "it is not a regular file");
        let is_ours = has_id(&opened, COMPLETE)? || has_id(&opened, INCOMPLETE)?;
        if !is_ours && metadata.len() > 0 {
            bail!("`cargo serve` did not create it: choose a different file");
        }
        let path = path.canonicalize()?;
        let lock = if cfg!(target_os = "linux") {
            opened.try_clone()?
        } else {
            // SQLite could not use a file with such a lock.
            options.create(true).open(with_suffix(&path, "-lock"))?
        };
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                path,
                opened,
                _lock: lock,
            }),
            Err(TryLockError::WouldBlock) => {
                bail!("another `cargo serve` uses the file: stop it, or choose a different file")
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn open_database(&self) -> Result<DynamoDb> {
        if !has_id(&self.opened, COMPLETE)? {
            self.create_database().await?;
        }
        let dynamodb = DynamoDb::open(&self.path)?;
        // The version that created the file may have had fewer tables.
        create_missing(&dynamodb.client(), tables()).await?;
        Ok(dynamodb)
    }

    /// Creates the tables and the demo organization. If this fails or the process is killed, the
    /// file stays [`INCOMPLETE`], and the next start begins again.
    async fn create_database(&self) -> Result<()> {
        if self.opened.metadata()?.len() == 0 {
            check_changes(&self.path)?;
        } else {
            for suffix in ["-journal", "-wal"] {
                match fs::remove_file(with_suffix(&self.path, suffix)) {
                    Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
                    _ => {}
                }
            }
            self.opened.set_len(0)?;
        }
        write_at(&self.opened, 0, &first_page())?;
        let client = DynamoDb::open(&self.path)?.client();
        create_missing(&client, tables()).await?;
        store_demo(&client, &table_names()).await?;
        // Closes the database. SQLite then moves the changes from `FILE-wal` into the file.
        drop(client);
        let is_closed = !with_suffix(&self.path, "-wal").exists();
        ensure!(is_closed, "SQLite cannot write all changes");
        // The engine does not set the application id, but SQLite keeps it.
        write_at(&self.opened, ID_POSITION, &COMPLETE)?;
        Ok(self.opened.sync_all()?)
    }
}

/// Whether the file is an SQLite file with this application id.
fn has_id(mut file: &File, id: [u8; 4]) -> io::Result<bool> {
    let mut header = Vec::new();
    file.rewind()?;
    file.take(ID_POSITION + 4).read_to_end(&mut header)?;
    Ok(header.starts_with(b"SQLite format 3\0") && header[16..].ends_with(&id))
}

fn write_at(mut file: &File, position: u64, bytes: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(position))?;
    file.write_all(bytes)
}

/// The only page of an empty database, as in <https://sqlite.org/fileformat2.html>.
fn first_page() -> [u8; 4096] {
    let mut page = [0; 4096];
    page[..28].copy_from_slice(b"SQLite format 3\0\x10\0\x01\x01\0\x40\x20\x20\0\0\0\0");
    page[31] = 1;
    page[68..72].copy_from_slice(&INCOMPLETE);
    page[100..108].copy_from_slice(&[13, 0, 0, 0, 0, 16, 0, 0]);
    page
}

/// Fails if SQLite would use or delete files that exist next to a missing or empty file.
fn check_changes(file: &Path) -> Result<()> {
    for suffix in ["-wal", "-journal", "-shm"] {
        let path = with_suffix(file, suffix);
        if path.symlink_metadata().is_ok() {
            let path = path.display();
            bail!(
                "the file is missing or empty, but {path} may have its changes: restore the file, or delete {path}"
            );
        }
    }
    Ok(())
}

/// Writes a temporary file next to `file`. The error is the operating system's.
fn try_to_write(file: &Path) -> io::Result<()> {
    let path = with_suffix(file, "-test");
    let mut test = File::create_new(&path)?;
    fs::remove_file(path)?;
    test.write_all(&[0; 1 << 20])
}

/// The path of `file` with a suffix.
fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(suffix);
    name.into()
}
