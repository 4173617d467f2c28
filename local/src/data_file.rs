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

/// The field of an SQLite file that says which application it belongs to: its position, and our value.
const APPLICATION_ID: (u64, [u8; 4]) = (68, *b"wsmg");

/// Opens the DynamoDB of a file. Creates the file with the demo organization if it does not exist.
/// Nobody else can open the file until the returned lock is dropped.
///
/// # Errors
/// If another process uses the file, another program has created it, or it cannot be opened.
pub(crate) async fn open(file: &Path) -> Result<(DynamoDb, File)> {
    let failure = || format!("cannot open the data file {}", file.display());
    let exists = || fs::metadata(file).is_ok_and(|metadata| metadata.len() > 0);
    if exists() && !is_ours(file).with_context(failure)? {
        let name = file.display();
        bail!("{name} was not created by `cargo serve`: choose another file");
    }
    let lock = lock(file).with_context(failure)?;
    if !exists() {
        create(file).await.with_context(failure)?;
    }
    let dynamodb = DynamoDb::open(file)?;
    // A newer version can have further tables.
    create_missing(&dynamodb.client(), &table_names()).await?;
    Ok((dynamodb, lock))
}

/// Whether `cargo serve` has created a file.
fn is_ours(file: &Path) -> Result<bool> {
    let (position, id) = APPLICATION_ID;
    let mut header = Vec::new();
    let length = position + id.len() as u64;
    File::open(file)?.take(length).read_to_end(&mut header)?;
    Ok(header.starts_with(b"SQLite format 3\0") && header[16..].ends_with(&id))
}

/// Locks the file `FILE-lock` for this process. The system releases the lock when the process ends.
fn lock(file: &Path) -> Result<File> {
    let lock = private_file().open(with_suffix(file, "-lock"))?;
    match lock.try_lock() {
        Err(TryLockError::WouldBlock) => {
            bail!("another `cargo serve` uses it: stop that one, or choose another file")
        }
        locked => locked?,
    }
    Ok(lock)
}

/// Creates the file under another name, so that a process that is killed leaves no incomplete one.
async fn create(file: &Path) -> Result<()> {
    // SQLite would apply the changes in `FILE-wal` to the new file.
    let changes = with_suffix(file, "-wal");
    if changes.exists() {
        let name = changes.display();
        bail!("the file is missing, but {name} has changes of it: move it back, or delete them");
    }
    let new = with_suffix(file, "-being-created");
    for suffix in ["", "-wal", "-shm"] {
        match fs::remove_file(with_suffix(&new, suffix)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    private_file().open(&new)?;
    let client = DynamoDb::open(&new)?.client();
    create_missing(&client, &table_names()).await?;
    store_demo(&client, &table_names()).await?;
    // Closes the file.
    drop(client);
    // SQLite keeps the field, but the engine does not set it.
    let mut opened = OpenOptions::new().write(true).open(&new)?;
    let (position, id) = APPLICATION_ID;
    opened.seek(SeekFrom::Start(position))?;
    opened.write_all(&id)?;
    opened.sync_all()?;
    fs::rename(&new, file)?;
    Ok(())
}

/// A file that only its owner can read, because it can contain personal data.
fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// A file next to the data file.
fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(suffix);
    name.into()
}
