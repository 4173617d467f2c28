//! The signals that end a command: Ctrl-C and, on Unix, SIGTERM.

use std::io;

/// Waits for a signal. From now on, none ends the process by itself. Returns the exit code of a process
/// that it ends, which is 128 and the signal.
#[cfg(unix)]
pub(crate) fn interruption() -> io::Result<impl Future<Output = i32>> {
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
pub(crate) fn interruption() -> io::Result<impl Future<Output = i32>> {
    let mut interrupted = tokio::signal::windows::ctrl_c()?;
    Ok(async move {
        interrupted.recv().await;
        130
    })
}
