//! The Lambda function. Reads the configuration, connects to DynamoDB and handles events.
#![recursion_limit = "256"] // for the SDK's deeply nested futures

use std::{convert::Infallible, panic, process::ExitCode, time::SystemTime};

use lambda_runtime::{Error, LambdaEvent, service_fn};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::{fmt, prelude::*};
use workspace_management::{config::Config, log::LogFormat, service::Service, store::Store};

// Lambda sends one event at a time, so one thread is enough.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    init_log();
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
    let client_config = config.dynamodb.preconnect_and_build_client_config().await?;
    let store = Store::new(client_config, config.table_names, config.cache_ttl);
    // The futures must not borrow from the closure, so each gets a copy of this reference.
    let service = &Service::new(store, config.anonymous_access);
    // The handler cannot fail, because a request that fails gets an error response.
    lambda_runtime::run(service_fn(async |event: LambdaEvent<_>| {
        Ok::<_, Infallible>(service.handle(event, SystemTime::now()).await)
    }))
    .await
}

/// Sets up the log, as JSON lines on standard output. Dependencies log only warnings and errors,
/// because at more verbose levels they log whole events and requests, with API keys and bodies.
fn init_log() {
    let levels = Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target("workspace_management", LevelFilter::INFO); // this package's library
    let json_layer = fmt::layer().json().event_format(LogFormat::default());
    tracing_subscriber::registry()
        .with(json_layer.with_filter(levels))
        .init();
    // Logs only the location of a panic, because the message may contain parts of the request.
    panic::set_hook(Box::new(|info| {
        let location = info.location().map(ToString::to_string);
        tracing::error!(location, "panicked");
    }));
}
