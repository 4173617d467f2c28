//! `cargo serve --data`: an SQLite file that one process uses at a time.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions, TryLockError},
    io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use workspace_records::local::table_names;

use crate::{demo::store_demo, dynamodb::DynamoDb, tables::create_missing};

/// The application id that `cargo serve` writes into its SQLite files.
const APPLICATION_ID: [u8; 4] = *b"wsmg";

/// The position of the application id in the header of an SQLite file.
const APPLICATION_ID_POSITION: u64 = 68;

/// Opens the DynamoDB in a data file. Creates the file with the demo organization if it does not
/// exist. No other `cargo serve` can open the file until the returned lock is dropped.
///
/// # Errors
/// If another `cargo serve` uses the file, a different program created it, or it cannot be opened.
pub(crate) async fn open(file: &Path) -> Result<(DynamoDb, File)> {
    let failure = || format!("cannot open the data file {}", file.display());
    let exists = || fs::metadata(file).is_ok_and(|metadata| metadata.len() > 0);
    if exists() && !is_ours(file).with_context(failure)? {
        let name = file.display();
        bail!("{name} was not created by `cargo serve`: choose a different file");
    }
    let lock = lock(file).with_context(failure)?;
    if !exists() {
        create(file).await.with_context(failure)?;
    }
    let dynamodb = DynamoDb::open(file)?;
    // The version that created the file may have had fewer tables.
    create_missing(&dynamodb.client(), &table_names()).await?;
    Ok((dynamodb, lock))
}

/// Whether `cargo serve` created the file.
fn is_ours(file: &Path) -> Result<bool> {
    let mut header = Vec::new();
    let length = APPLICATION_ID_POSITION + APPLICATION_ID.len() as u64;
    File::open(file)?.take(length).read_to_end(&mut header)?;
    Ok(header.starts_with(b"SQLite format 3\0") && header[16..].ends_with(&APPLICATION_ID))
}

/// Locks `FILE-lock` for this process. The system releases the lock when the process ends.
fn lock(file: &Path) -> Result<File> {
    let lock = private_file_options().open(with_suffix(file, "-lock"))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => {
            bail!("another `cargo serve` uses the file: stop it, or choose a different file")
        }
        Err(error) => Err(error.into()),
    }
}

/// Creates the file under a temporary name, so that a killed process leaves no incomplete file.
async fn create(file: &Path) -> Result<()> {
    // SQLite would apply the changes in `FILE-wal` to the new file.
    let changes = with_suffix(file, "-wal");
    if changes.exists() {
        let wal = changes.display();
        bail!("the file is missing, but {wal} has its changes: restore the file, or delete {wal}");
    }
    let new = with_suffix(file, "-being-created");
    for suffix in ["", "-wal", "-shm"] {
        if let Err(error) = fs::remove_file(with_suffix(&new, suffix))
            && error.kind() != ErrorKind::NotFound
        {
            return Err(error.into());
        }
    }
    private_file_options().open(&new)?;
    let client = DynamoDb::open(&new)?.client();
    create_missing(&client, &table_names()).await?;
    store_demo(&client, &table_names()).await?;
    // Closes the file.
    drop(client);
    // The engine does not set the application id, but SQLite keeps it.
    let mut opened = OpenOptions::new().write(true).open(&new)?;
    opened.seek(SeekFrom::Start(APPLICATION_ID_POSITION))?;
    opened.write_all(&APPLICATION_ID)?;
    opened.sync_all()?;
    fs::rename(&new, file)?;
    Ok(())
}

/// Options to create a file that only its owner can read: the data can be personal.
fn private_file_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// The path of `file` with a suffix.
fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(suffix);
    name.into()
}
