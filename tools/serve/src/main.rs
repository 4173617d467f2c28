//! `cargo serve`: the whole service on this machine.
#![deny(clippy::print_stderr, clippy::print_stdout)]

use std::{io, process::ExitCode};

use anstream::{AutoStream, ColorChoice};
use anyhow::Result;
use clap::Parser as _;
use tracing_subscriber::{
    filter::{LevelFilter, Targets},
    fmt,
    prelude::*,
};
use workspace_local::{
    log,
    serve::{LocalService, Options, note},
};

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    start_log(options.verbose);
    match run(&options).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Runs the service until Ctrl-C or SIGTERM. Either signal also aborts requests in progress.
async fn run(options: &Options) -> Result<()> {
    // First, because a script may send a signal as soon as it reads the printed addresses.
    let stop_signal = catch_stop_signals()?;
    let service = LocalService::start(options).await?;
    service.print(options).await?;
    if options.open
        && let Err(error) = open::that_detached(&service.url)
    {
        // A machine may have no browser. The printed address is enough.
        note(&format!("cannot open a browser: {error}"));
    }
    stop_signal.await;
    Ok(())
}

/// Starts to log requests to standard error, and with `verbose` also the warnings of libraries.
/// [`log`] keeps the requests too.
fn start_log(verbose: bool) {
    let library_level = if verbose {
        LevelFilter::WARN
    } else {
        LevelFilter::OFF
    };
    let levels = Targets::new()
        .with_default(library_level)
        .with_target("workspace_management", LevelFilter::INFO);
    let stderr_layer = fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(AutoStream::choice(&io::stderr()) != ColorChoice::Never)
        .with_target(false);
    tracing_subscriber::registry()
        .with(log::layer())
        .with(stderr_layer.with_filter(levels))
        .init();
}

/// Returns a future that waits for Ctrl-C or SIGTERM. From this call on, neither ends the process.
#[cfg(unix)]
fn catch_stop_signals() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    // SIGXFSZ, so that a write beyond `ulimit -f` fails and does not end the process.
    let _too_large = signal(SignalKind::from_raw(25))?;
    Ok(async move {
        tokio::select! {
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
        }
    })
}

/// Returns a future that waits for Ctrl-C. From this call on, Ctrl-C does not end the process.
#[cfg(windows)]
fn catch_stop_signals() -> io::Result<impl Future<Output = ()>> {
    let mut interrupted = tokio::signal::windows::ctrl_c()?;
    Ok(async move { drop(interrupted.recv().await) })
}
