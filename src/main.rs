//! The Lambda function: starts the log, reads the configuration, connects to DynamoDB and passes
//! events to the service.
#![recursion_limit = "256"] // for the SDK's deeply nested futures

use std::{convert::Infallible, panic, process::ExitCode, time::SystemTime};

use lambda_http::{Error, LambdaEvent, service_fn};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::{fmt, prelude::*};
use workspace_management::{config::Config, service::Service, store::Store};

// Lambda sends one event at a time, so one thread is enough.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    start_log();
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(cause = %error, "fatal error, shutting down");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Error> {
    let config = Config::from_env()?;
    let sdk_config = config.dynamodb.connect().await?;
    let store = Store::new(sdk_config, config.tables, config.key_cache);
    let service = &Service::new(store, config.anonymous_operations);
    lambda_runtime::run(service_fn(async |event: LambdaEvent<_>| {
        Ok::<_, Infallible>(service.handle(event, SystemTime::now()).await)
    }))
    .await
}

/// Logs lines of JSON to standard output. Libraries log at most warnings: below that level they log
/// whole events and requests, with API keys and bodies.
fn start_log() {
    let levels = Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target(env!("CARGO_CRATE_NAME"), LevelFilter::INFO);
    let log = fmt::layer().json().flatten_event(true).with_target(false);
    tracing_subscriber::registry()
        .with(log.with_filter(levels))
        .init();
    // Logs only the location of a panic: its message may contain parts of the request.
    panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string);
        tracing::error!(location, "panicked");
    }));
}
