//! Start-up only: logging, the DynamoDB client, hand over to the Lambda runtime.
#![recursion_limit = "256"] // the SDK's futures lie that deep in each other

use std::{
    convert::Infallible, env, error::Error, panic, process::ExitCode, sync::Arc, time::Duration,
};

use lambda_runtime::{LambdaEvent, service_fn};
use tracing_subscriber::{
    filter::{LevelFilter, Targets},
    fmt::layer,
    layer::{Layer as _, SubscriberExt as _},
    util::SubscriberInitExt as _,
};
use workspace_management::{
    auth::{AnonymousOperations, Auth},
    metrics::Metrics,
    service::Service,
    store::client,
    store::{Store, Tables},
};

fn main() -> ExitCode {
    start_logging();
    // One event at a time needs one thread; Lambda Managed Instances send several.
    let concurrency = variable("AWS_LAMBDA_MAX_CONCURRENCY").and_then(|limit| limit.parse().ok());
    let mut runtime = if concurrency.unwrap_or(1) > 1 {
        tokio::runtime::Builder::new_multi_thread()
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    let ended = runtime
        .enable_all()
        .build()
        .map_err(Into::into)
        .and_then(|runtime| runtime.block_on(run()));
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(cause = %error, "the function cannot go on");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), lambda_runtime::Error> {
    let tables = Tables::named(|table| variable(table.variable))?;
    let auth = Auth::new(anonymous_operations()?, key_cache()?);
    // While Lambda starts the function, it has more of a CPU than it has for requests: it connects now.
    let config = client::connect(variable).await?;
    let mut service = Service::new(auth, Store::new(config, tables));
    if let Some(namespace) = variable("METRICS_NAMESPACE") {
        service = service.with_metrics(Metrics::new(&namespace));
    }
    let service = Arc::new(service);
    lambda_runtime::run_concurrent(service_fn(move |event: LambdaEvent<_>| {
        let service = service.clone();
        async move { Ok::<_, Infallible>(service.answer(event).await) }
    }))
    .await
}

/// The value of an environment variable that is set and not empty.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn anonymous_operations() -> Result<AnonymousOperations, Box<dyn Error + Send + Sync>> {
    match variable("ANONYMOUS_OPERATIONS").as_deref() {
        None | Some("allowed") => Ok(AnonymousOperations::Allowed),
        Some("denied") => Ok(AnonymousOperations::Denied),
        Some(other) => {
            Err(format!("ANONYMOUS_OPERATIONS must be allowed or denied, not {other:?}").into())
        }
    }
}

fn key_cache() -> Result<Duration, Box<dyn Error + Send + Sync>> {
    let seconds = variable("KEY_CACHE_SECONDS").unwrap_or_else(|| "60".to_owned());
    match seconds.parse() {
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) => {
            Err(format!("KEY_CACHE_SECONDS must be a number of seconds, not {seconds:?}").into())
        }
    }
}

/// Logs to standard output as Lambda's own variables ask. The libraries log warnings at most: below them they show
/// events and requests whole, with keys and bodies.
fn start_logging() {
    let level = match variable("AWS_LAMBDA_LOG_LEVEL").as_deref() {
        Some("TRACE") => LevelFilter::TRACE,
        Some("DEBUG") => LevelFilter::DEBUG,
        Some("WARN") => LevelFilter::WARN,
        Some("ERROR" | "FATAL") => LevelFilter::ERROR,
        _ => LevelFilter::INFO,
    };
    let levels = Targets::new()
        .with_default(level.min(LevelFilter::WARN))
        .with_target(env!("CARGO_CRATE_NAME"), level);
    let log = if variable("AWS_LAMBDA_LOG_FORMAT").as_deref() == Some("Text") {
        layer().with_ansi(false).with_target(false).boxed()
    } else {
        layer()
            .json()
            .flatten_event(true)
            .with_target(false)
            .boxed()
    };
    tracing_subscriber::registry()
        .with(log.with_filter(levels))
        .init();
    // A panic's message may show what a request held; where it happened is enough to find it.
    panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string);
        tracing::error!(location, "panicked");
    }));
}
