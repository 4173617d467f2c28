//! An export that is complete once it has its name. Until then it is `FILE.partial`.

use std::{
    fs::{self, File, TryLockError},
    io::{self, BufWriter, ErrorKind, Write as _},
    path::{Path, PathBuf},
    process,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context as _, Result, bail};
use tempfile::TempPath;

use super::{is_at, private_file};
use crate::usage::UsageError;

/// A new file. It is removed if the command fails or is interrupted.
pub struct CompleteExport {
    path: PathBuf,
    pub(crate) out: BufWriter<File>,
    /// `None` for what is not a file, such as a pipe.
    partial: Option<Partial>,
}

/// Shared with the task that waits for a signal.
type Partial = Arc<Mutex<Option<TempPath>>>;

impl CompleteExport {
    /// Creates the file, before anything is read or marked.
    ///
    /// # Errors
    /// If it exists, another run is writing it or has left it incomplete, or it cannot be written.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let name = path.display();
        let failure = || format!("cannot write {name}");
        let (file, partial) = match fs::symlink_metadata(path) {
            Ok(_) if fs::metadata(path).is_ok_and(|existing| !existing.is_file()) => {
                (File::create(path).with_context(failure)?, None)
            }
            Ok(_) => return Err(UsageError(format!("{name} exists: choose another file")).into()),
            Err(_) => {
                let partial = path.with_added_extension("partial");
                let file = match private_file().create_new(true).open(&partial) {
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                        bail!("{}, or choose another file", advice(&partial))
                    }
                    created => created.with_context(failure)?,
                };
                // Without locks, the file looks like one of an interrupted run.
                let _ = file.lock();
                let partial = Arc::new(Mutex::new(Some(TempPath::try_from_path(partial)?)));
                remove_when_interrupted(&partial)?;
                (file, Some(partial))
            }
        };
        Ok(Self {
            path: path.to_owned(),
            out: BufWriter::new(file),
            partial,
        })
    }

    /// Gives the file its name, and never replaces another file.
    ///
    /// # Errors
    /// If the file cannot be written, or another program has created one with this name.
    pub(crate) fn finish(mut self) -> Result<()> {
        let name = self.path.display();
        let failure = || format!("cannot write {name}");
        self.out.flush().with_context(failure)?;
        let Some(partial) = &self.partial else {
            return Ok(());
        };
        let file = self.out.get_ref();
        file.sync_all().with_context(failure)?;
        // Until it is unlocked, no signal ends the process.
        let mut partial = partial.lock().unwrap_or_else(PoisonError::into_inner);
        let partial = partial.take().with_context(failure)?;
        if !is_at(file, &partial) {
            // A file with its name is another run's.
            let partial = partial.keep()?;
            bail!("{} was moved or deleted", partial.display());
        }
        match partial.persist_noclobber(&self.path) {
            Err(failed) if failed.error.kind() == ErrorKind::AlreadyExists => {
                bail!("another program has created {name}: choose another file")
            }
            // The file system can neither rename without replacing nor link: reserve the name first.
            Err(failed) => {
                File::create_new(&self.path).with_context(failure)?;
                failed.path.persist(&self.path).with_context(failure)
            }
            Ok(()) => Ok(()),
        }
    }

    /// The incomplete exports of other runs next to a file that have records of an organization.
    pub(crate) fn left_by_others(path: &Path, org: &str) -> Vec<String> {
        let record = format!("\"org_id\":\"{org}\"");
        let has_records = |path: &PathBuf| {
            path.extension()
                .is_some_and(|extension| extension == "partial")
                && fs::read(path).is_ok_and(|text| String::from_utf8_lossy(&text).contains(&record))
        };
        let folder = Path::new(".").join(path).with_file_name("");
        let files = fs::read_dir(folder).into_iter().flatten().flatten();
        let partials = files.map(|file| file.path()).filter(has_records);
        partials.map(|path| advice(&path)).collect()
    }
}

/// What to do about an incomplete export of another run.
fn advice(partial: &Path) -> String {
    let name = partial.display();
    match File::open(partial).map(|file| file.try_lock()) {
        Ok(Err(TryLockError::WouldBlock)) => {
            format!("another run is writing {name}: wait until it ends")
        }
        _ => format!("an interrupted run left {name}, which is incomplete: delete it"),
    }
}

/// Removes an incomplete export if a signal ends the process.
fn remove_when_interrupted(partial: &Partial) -> io::Result<()> {
    let (interruption, partial) = (interruption()?, partial.clone());
    tokio::spawn(async move {
        let code = interruption.await;
        let mut partial = partial.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(partial) = partial.take() {
            eprintln!("interrupted: {} was removed", partial.display());
        }
        process::exit(code)
    });
    Ok(())
}

/// Waits for a signal. From now on, none ends the process by itself. Returns the exit code of a process
/// that it ends, which is 128 and the signal.
#[cfg(unix)]
fn interruption() -> io::Result<impl Future<Output = i32>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupted.recv() => 130,
            _ = terminated.recv() => 143,
        }
    })
}

/// The same for Ctrl-C.
#[cfg(windows)]
fn interruption() -> io::Result<impl Future<Output = i32>> {
    let mut interrupted = tokio::signal::windows::ctrl_c()?;
    Ok(async move {
        interrupted.recv().await;
        130
    })
}
