//! An emulator of the [Lambda Runtime API], from which a compiled function fetches its events.
//!
//! [Lambda Runtime API]: https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html

use std::{
    future::pending,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result};
use axum::{
    Router,
    body::Bytes,
    extract::{Path, State},
    http::StatusCode,
    response::IntoResponse,
    routing::{get, post},
};
use tokio::{
    net::TcpListener,
    sync::{
        Mutex,
        mpsc::{self, UnboundedReceiver, UnboundedSender},
    },
    time::timeout,
};

/// How long to wait for a poll or a result of the function.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The time limit of an event, unless [`RuntimeApi::set_time_limit`] changes the limit.
const DEFAULT_TIME_LIMIT: Duration = Duration::from_secs(10);

/// The trace id of every invocation.
pub const TRACE_ID: &str = "Root=1-5759e988-bd862e3fe1be46a994272793";

/// The environment variables that Lambda sets for a function.
pub fn environment(runtime_api: &str) -> [(&'static str, &str); 4] {
    [
        ("AWS_LAMBDA_FUNCTION_NAME", "workspace-management"),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256"),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
        ("AWS_LAMBDA_RUNTIME_API", runtime_api),
    ]
}

/// A Runtime API for one function.
#[derive(Debug)]
pub struct RuntimeApi {
    address: String,
    invocations_tx: UnboundedSender<Invocation>,
    polls_rx: UnboundedReceiver<Instant>,
    results_rx: UnboundedReceiver<InvocationResult>,
    time_limit: Duration,
}

/// What a function reported about an event.
#[derive(Debug)]
pub struct InvocationResult {
    /// The request id that was sent with the event.
    pub request_id: String,
    /// Whether the function reported an error instead of a response.
    pub is_error: bool,
    /// The response or the error.
    pub body: Bytes,
    /// When the report arrived.
    pub at: Instant,
}

#[derive(Debug)]
struct Invocation {
    request_id: String,
    payload: Arc<str>,
    time_limit: Duration,
}

/// What the routes share.
struct Shared {
    invocations_rx: Mutex<UnboundedReceiver<Invocation>>,
    polls_tx: UnboundedSender<Instant>,
    results_tx: UnboundedSender<InvocationResult>,
}

impl RuntimeApi {
    /// Listens on a free port of this machine.
    ///
    /// # Errors
    /// If there is no free port.
    pub async fn start() -> Result<Self> {
        let (invocations_tx, invocations_rx) = mpsc::unbounded_channel();
        let (polls_tx, polls_rx) = mpsc::unbounded_channel();
        let (results_tx, results_rx) = mpsc::unbounded_channel();
        let shared = Shared {
            invocations_rx: Mutex::new(invocations_rx),
            polls_tx,
            results_tx,
        };
        let routes = Router::new()
            .route("/next", get(next))
            .route("/{request_id}/{result}", post(report))
            .with_state(Arc::new(shared));
        let routes = Router::new().nest("/2018-06-01/runtime/invocation", routes);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        tokio::spawn(axum::serve(listener, routes).into_future());
        Ok(Self {
            address,
            invocations_tx,
            polls_rx,
            results_rx,
            time_limit: DEFAULT_TIME_LIMIT,
        })
    }

    /// The value of `AWS_LAMBDA_RUNTIME_API`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Sets how long the function has for each event that is sent from now on.
    pub fn set_time_limit(&mut self, time_limit: Duration) {
        self.time_limit = time_limit;
    }

    /// Queues an event. The function fetches events in the order in which they were queued.
    pub fn send(&self, request_id: impl ToString, payload: impl Into<Arc<str>>) {
        let invocation = Invocation {
            request_id: request_id.to_string(),
            payload: payload.into(),
            time_limit: self.time_limit,
        };
        // The receiver lives as long as the server.
        let _ = self.invocations_tx.send(invocation);
    }

    /// Waits until the function polls for an event, and returns the time of the poll. The first
    /// poll ends the initialization of the function.
    ///
    /// # Errors
    /// If the function does not poll within 20 seconds.
    pub async fn next_poll(&mut self) -> Result<Instant> {
        let failure = "the function did not poll for an event in time";
        receive(&mut self.polls_rx, failure).await
    }

    /// Discards the polls so far, so that [`RuntimeApi::next_poll`] waits for a new poll.
    pub fn discard_polls(&mut self) {
        while self.polls_rx.try_recv().is_ok() {}
    }

    /// Waits for the function's next result.
    ///
    /// # Errors
    /// If the function reports no result within 20 seconds.
    pub async fn next_result(&mut self) -> Result<InvocationResult> {
        receive(&mut self.results_rx, "the function did not respond in time").await
    }
}

async fn receive<T>(receiver: &mut UnboundedReceiver<T>, failure: &'static str) -> Result<T> {
    let received = timeout(TIMEOUT, receiver.recv()).await.context(failure)?;
    received.context("the Runtime API stopped")
}

async fn next(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    // Ignores errors here and in `report`, because a dropped `RuntimeApi` no longer receives.
    let _ = shared.polls_tx.send(Instant::now());
    let Some(invocation) = shared.invocations_rx.lock().await.recv().await else {
        return pending().await;
    };
    let deadline = SystemTime::now() + invocation.time_limit;
    let since_epoch = deadline.duration_since(UNIX_EPOCH).unwrap_or_default();
    let deadline_ms = since_epoch.as_millis();
    let headers = [
        ("lambda-runtime-aws-request-id", invocation.request_id),
        ("lambda-runtime-deadline-ms", deadline_ms.to_string()),
        (
            "lambda-runtime-invoked-function-arn",
            "arn:aws:lambda:us-east-1:123456789012:function:workspace-management".to_owned(),
        ),
        ("lambda-runtime-trace-id", TRACE_ID.to_owned()),
    ];
    (headers, invocation.payload.to_string())
}

async fn report(
    State(shared): State<Arc<Shared>>,
    Path((request_id, result)): Path<(String, String)>,
    body: Bytes,
) -> StatusCode {
    let _ = shared.results_tx.send(InvocationResult {
        request_id,
        is_error: result == "error",
        body,
        at: Instant::now(),
    });
    StatusCode::ACCEPTED
}
