//! `cargo serve`: the whole service on this machine.

use std::{
    env,
    io::{self, IsTerminal as _},
    process::ExitCode,
};

use anyhow::Result;
use clap::Parser as _;
use tracing_subscriber::{
    filter::{LevelFilter, Targets},
    fmt,
    prelude::*,
};
use workspace_local::serve::{LocalService, Options};

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    start_log(options.verbose);
    match run(&options).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Serves until Ctrl-C or SIGTERM. Requests in progress are aborted then.
async fn run(options: &Options) -> Result<()> {
    // Before anything is printed, because a script may stop the service as soon as it reads that.
    let interruption = interruption()?;
    let service = LocalService::start(options).await?;
    service.print(options).await?;
    if options.open
        && let Err(error) = open::that_detached(&service.url)
    {
        // The address is printed, so a machine without a browser is not a failure.
        eprintln!("cannot open a browser: {error}");
    }
    interruption.await;
    Ok(())
}

/// Logs the requests to standard error, and with `verbose` also the warnings of libraries.
fn start_log(verbose: bool) {
    let libraries = if verbose {
        LevelFilter::WARN
    } else {
        LevelFilter::OFF
    };
    let levels = Targets::new()
        .with_default(libraries)
        .with_target("workspace_management", LevelFilter::INFO);
    let log = fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal() && env::var_os("NO_COLOR").is_none())
        .with_target(false);
    tracing_subscriber::registry()
        .with(log.with_filter(levels))
        .init();
}

/// Waits for Ctrl-C or SIGTERM. From now on, none of them ends the process by itself.
#[cfg(unix)]
fn interruption() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
        }
    })
}

/// The same for Ctrl-C.
#[cfg(windows)]
fn interruption() -> io::Result<impl Future<Output = ()>> {
    let mut interrupted = tokio::signal::windows::ctrl_c()?;
    Ok(async move { drop(interrupted.recv().await) })
}
