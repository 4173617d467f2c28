//! The signals that stop `serve`.

/// Ctrl-C and, on Unix, SIGTERM. Once this exists, neither ends the process by itself.
pub(super) struct Interruptions {
    #[cfg(unix)]
    interrupted: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminated: tokio::signal::unix::Signal,
    #[cfg(windows)]
    interrupted: tokio::signal::windows::CtrlC,
}

impl Interruptions {
    #[cfg(unix)]
    pub(super) fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupted: signal(SignalKind::interrupt())?,
            terminated: signal(SignalKind::terminate())?,
        })
    }

    #[cfg(windows)]
    pub(super) fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupted: tokio::signal::windows::ctrl_c()?,
        })
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.interrupted.recv() => {}
            _ = self.terminated.recv() => {}
        }
        #[cfg(windows)]
        self.interrupted.recv().await;
    }
}
