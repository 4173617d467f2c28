//! `serve --data`: an SQLite file that only one process uses at a time.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _},
    mem,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use aws_sdk_dynamodb::error::ProvideErrorMetadata as _;
use workspace_local::{dynamodb::DynamoDb, tables::create_missing};
use workspace_management::store::Table;
use workspace_records::{local::table_names, tables::Declaration};

use crate::{commands::doctor::differences, export::private_file};

/// What every SQLite file begins with.
const SQLITE: &[u8; 16] = b"SQLite format 3\0";

/// The field of an SQLite file that says which application it belongs to.
const APPLICATION_ID: (u64, [u8; 4]) = (68, *b"wsmg");

/// Opens the DynamoDB of a file, which is created if it does not exist, until the process ends.
///
/// # Errors
/// If another process uses the file, it is not a regular one or of another program or version, or it
/// cannot be opened.
pub(super) async fn open(file: &Path) -> Result<DynamoDb> {
    let file = match fs::canonicalize(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(file.to_owned()),
        resolved => resolved,
    }
    .with_context(|| cannot_open(file))?;
    // First, so that no lock is left next to a file of another program.
    check_type(&file)?;
    if has_content(&file) {
        check_application(&file)?;
    }
    lock(&file, &with_suffix(&file, "-lock"))?;
    if !has_content(&file) {
        remove_changes(&file)?;
        create(&file).await.with_context(|| cannot_open(&file))?;
    }
    // The file can have other paths, such as the one from which it was moved while it was in use. On
    // other systems, this lock would lock out SQLite.
    if cfg!(target_os = "linux") {
        lock(&file, &file)?;
    }
    let dynamodb = DynamoDb::open(&file)?;
    check_tables(&dynamodb, &file).await?;
    Ok(dynamodb)
}

fn cannot_open(file: &Path) -> String {
    format!("cannot open the data file {}", file.display())
}

fn has_content(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|metadata| metadata.len() > 0)
}

/// A file next to the data file.
fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(suffix);
    name.into()
}

/// Locks the data file for this process, by a lock of it or of a file next to it. The system releases
/// the lock when the process ends.
fn lock(file: &Path, locked: &Path) -> Result<()> {
    let lock = private_file()
        .create(true)
        .open(locked)
        .with_context(|| cannot_open(file))?;
    match lock.try_lock() {
        Ok(()) => {
            // If this was closed, the process would also lose SQLite's locks of the file.
            mem::forget(lock);
            Ok(())
        }
        Err(TryLockError::WouldBlock) => {
            bail!(
                "{} is in use by another `serve`: stop it, or choose another file",
                file.display()
            )
        }
        Err(TryLockError::Error(error)) => Err(error).with_context(|| cannot_open(file)),
    }
}

/// Removes what SQLite keeps next to a file, which it would apply to a new one.
///
/// A killed process leaves changes there that are not in the file yet. If the file was moved or deleted
/// without them, they can be the only copy, so they are not removed.
fn remove_changes(file: &Path) -> Result<()> {
    let changes = with_suffix(file, "-wal");
    if has_content(&changes) {
        bail!(
            "{} is missing or empty, but {} has changes of it: move the file back, or delete the changes",
            file.display(),
            changes.display()
        );
    }
    remove(file, &["-wal", "-shm"]).with_context(|| cannot_open(file))
}

/// Removes those of the files with these suffixes that exist.
fn remove(file: &Path, suffixes: &[&str]) -> io::Result<()> {
    for suffix in suffixes {
        match fs::remove_file(with_suffix(file, suffix)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Creates the file with all tables. If the process is killed meanwhile, there is no file.
async fn create(file: &Path) -> Result<()> {
    // A name that no other data file has.
    let new = with_suffix(file, "-being-created");
    // What a killed process has left.
    remove(&new, &["", "-wal", "-shm"])?;
    private_file().create_new(true).open(&new)?;
    let client = DynamoDb::open(&new)?.client();
    create_missing(&client, &table_names()).await?;
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

/// Rejects a path that is not the only one of a regular file. SQLite keeps changes next to one path.
fn check_type(file: &Path) -> Result<()> {
    // Links were resolved, except those that lead to nothing.
    let metadata = match fs::symlink_metadata(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        metadata => metadata.with_context(|| cannot_open(file))?,
    };
    if !metadata.is_file() {
        bail!(
            "{} is not a file, but a folder, a device, a pipe or a broken link: choose another path",
            file.display()
        );
    }
    #[cfg(unix)]
    if std::os::unix::fs::MetadataExt::nlink(&metadata) > 1 {
        bail!(
            "{} has another name (a hard link), under which it can be in use: delete that name, or choose another file",
            file.display()
        );
    }
    Ok(())
}

/// Rejects a file that `serve` has not created.
fn check_application(file: &Path) -> Result<()> {
    let mut header = Vec::new();
    File::open(file)
        .and_then(|file| file.take(72).read_to_end(&mut header))
        .with_context(|| cannot_open(file))?;
    let has_id = header.len() == 72 && header.ends_with(&APPLICATION_ID.1);
    if !header.starts_with(SQLITE) || !has_id {
        bail!(
            "{} is not a data file of this version of `serve`: choose another file",
            file.display()
        );
    }
    Ok(())
}

/// Rejects a file whose tables another version has created. Tables cannot be changed.
async fn check_tables(dynamodb: &DynamoDb, file: &Path) -> Result<()> {
    let client = dynamodb.client();
    for table in Table::ALL {
        let name = table_names().name(*table).to_owned();
        let described = client.describe_table().table_name(&name).send().await;
        let differences = match described {
            Ok(description) => {
                let description = description.table.context("no description")?;
                differences(&Declaration::of(*table)?, &description)
            }
            Err(error) if error.code() == Some("ResourceNotFoundException") => {
                vec!["it is missing".to_owned()]
            }
            Err(error) => return Err(error).with_context(|| cannot_open(file)),
        };
        if let Some(difference) = differences.first() {
            bail!(
                "{} was created by another version: {name}: {difference}. Use that version, or another file",
                file.display()
            );
        }
    }
    Ok(())
}
