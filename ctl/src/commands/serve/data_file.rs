//! `serve --data`: an SQLite file that only one process uses at a time.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions, TryLockError},
    io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use workspace_local::{
    dynamodb::{DynamoDb, http_client},
    tables::{Declaration, create_missing, sdk_config, table_names},
};
use workspace_management::store::Table;

use crate::commands::doctor::differences;

/// What every SQLite file begins with.
const SQLITE: &[u8; 16] = b"SQLite format 3\0";

/// The field of an SQLite file that says which application it belongs to.
const APPLICATION_ID: (u64, [u8; 4]) = (68, *b"wsmg");

/// A DynamoDB, and the lock of its file.
pub(super) struct Data {
    pub(super) dynamodb: DynamoDb,
    _lock: Option<File>,
}

impl Data {
    /// A new DynamoDB in memory.
    ///
    /// # Errors
    /// If the engine does not start.
    pub(super) async fn in_memory() -> Result<Self> {
        Ok(Self {
            dynamodb: DynamoDb::with_tables().await?,
            _lock: None,
        })
    }

    /// The DynamoDB of a file, which is created if it does not exist.
    ///
    /// # Errors
    /// If another process uses the file, it is of another program or version, or it cannot be opened.
    pub(super) async fn in_file(file: &Path) -> Result<Self> {
        let file = match fs::canonicalize(file) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => file.to_owned(),
            Err(error) => return Err(error).with_context(|| cannot_open(file)),
        };
        let lock = lock(&file)?;
        if fs::metadata(&file).is_ok_and(|metadata| metadata.len() > 0) {
            check_application(&file)?;
        } else {
            create(&file).await.with_context(|| cannot_open(&file))?;
        }
        let dynamodb = DynamoDb::open(&file)?;
        check_tables(&dynamodb, &file).await?;
        Ok(Self {
            dynamodb,
            _lock: Some(lock),
        })
    }
}

fn cannot_open(file: &Path) -> String {
    format!("cannot open the data file {}", file.display())
}

/// A file next to the data file.
fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(suffix);
    name.into()
}

/// A new file that only its owner can read, because records can be personal data.
fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Locks the data file for this process. The system releases the lock when the process ends.
fn lock(file: &Path) -> Result<File> {
    // Not the file itself: a lock of it would lock out SQLite on some systems.
    let lock = private_file()
        .truncate(false)
        .open(with_suffix(file, "-lock"))
        .with_context(|| cannot_open(file))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => {
            bail!("{} is in use by another `serve`", file.display())
        }
        Err(TryLockError::Error(error)) => Err(error).with_context(|| cannot_open(file)),
    }
}

/// Creates the file with all tables. If the process is killed meanwhile, there is no file.
async fn create(file: &Path) -> Result<()> {
    let new = with_suffix(file, "-new");
    for suffix in ["", "-wal", "-shm"] {
        // What a killed process has left.
        match fs::remove_file(with_suffix(&new, suffix)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    private_file().create_new(true).open(&new)?;
    let client = in_process(DynamoDb::open(&new)?);
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

/// A client for a DynamoDB in this process.
fn in_process(dynamodb: DynamoDb) -> aws_sdk_dynamodb::Client {
    let config = sdk_config("http://dynamodb").http_client(http_client(dynamodb));
    aws_sdk_dynamodb::Client::from_conf(config.build())
}

/// Rejects a file that `serve` has not created.
fn check_application(file: &Path) -> Result<()> {
    let mut header = [0; 72];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut header));
    let is_short = |error: &std::io::Error| error.kind() == ErrorKind::UnexpectedEof;
    if let Err(error) = read
        && !is_short(&error)
    {
        return Err(error).with_context(|| cannot_open(file));
    }
    if !header.starts_with(SQLITE) || !header.ends_with(&APPLICATION_ID.1) {
        bail!(
            "{} is not a data file of `serve`: choose another one",
            file.display()
        );
    }
    Ok(())
}

/// Rejects a file whose tables another version has created. Tables cannot be changed.
async fn check_tables(dynamodb: &DynamoDb, file: &Path) -> Result<()> {
    let client = in_process(dynamodb.clone());
    for table in Table::ALL {
        let name = table_names().name(*table).to_owned();
        let response = client.describe_table().table_name(&name).send().await;
        let description = response.ok().and_then(|response| response.table);
        let declaration = Declaration::of(*table)?;
        let differences = match description {
            Some(table) => differences(&declaration, &table),
            None => vec!["it is missing".to_owned()],
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
