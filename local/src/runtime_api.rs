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
    http::{HeaderName, StatusCode},
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

/// How long to wait for the function.
const TIMEOUT: Duration = Duration::from_secs(20);

/// How long the function has for an event, unless [`RuntimeApi::set_time_limit`] changes it.
const DEFAULT_TIME_LIMIT: Duration = Duration::from_secs(10);

/// The trace id that every invocation has.
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
    events: UnboundedSender<Event>,
    polls: UnboundedReceiver<Instant>,
    results: UnboundedReceiver<InvocationResult>,
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
    /// When it arrived.
    pub at: Instant,
}

#[derive(Debug)]
struct Event {
    request_id: String,
    payload: Arc<str>,
    time_limit: Duration,
}

/// What the routes share.
struct Shared {
    events: Mutex<UnboundedReceiver<Event>>,
    polls: UnboundedSender<Instant>,
    results: UnboundedSender<InvocationResult>,
}

impl RuntimeApi {
    /// Listens on a free port of this machine.
    ///
    /// # Errors
    /// If there is no free port.
    pub async fn start() -> Result<Self> {
        let (events, waiting_events) = mpsc::unbounded_channel();
        let (send_poll, polls) = mpsc::unbounded_channel();
        let (send_result, results) = mpsc::unbounded_channel();
        let shared = Shared {
            events: Mutex::new(waiting_events),
            polls: send_poll,
            results: send_result,
        };
        let routes = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next))
            .route(
                "/2018-06-01/runtime/invocation/{request_id}/{kind}",
                post(report),
            )
            .with_state(Arc::new(shared));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        tokio::spawn(axum::serve(listener, routes).into_future());
        Ok(Self {
            address,
            events,
            polls,
            results,
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

    /// Queues an event. The function fetches events in this order.
    pub fn send(&self, request_id: impl ToString, payload: impl Into<Arc<str>>) {
        let event = Event {
            request_id: request_id.to_string(),
            payload: payload.into(),
            time_limit: self.time_limit,
        };
        // The receiver lives as long as the server.
        let _ = self.events.send(event);
    }

    /// Waits until the function polls for an event, and returns when it did. The first poll
    /// ends its initialization.
    ///
    /// # Errors
    /// If it does not poll within 20 seconds.
    pub async fn polled(&mut self) -> Result<Instant> {
        receive(
            &mut self.polls,
            "the function did not poll for an event in time",
        )
        .await
    }

    /// Discards the polls up to now, so that [`RuntimeApi::polled`] waits for the next one.
    pub fn discard_polls(&mut self) {
        while self.polls.try_recv().is_ok() {}
    }

    /// Waits for the function's next result.
    ///
    /// # Errors
    /// If there is none within 20 seconds.
    pub async fn result(&mut self) -> Result<InvocationResult> {
        receive(&mut self.results, "the function did not respond in time").await
    }
}

async fn receive<T>(receiver: &mut UnboundedReceiver<T>, failure: &'static str) -> Result<T> {
    let received = timeout(TIMEOUT, receiver.recv()).await.context(failure)?;
    received.context("the Runtime API stopped")
}

async fn next(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    // Ignores errors here and in `report`, because a dropped `RuntimeApi` no longer receives.
    let _ = shared.polls.send(Instant::now());
    let Some(event) = shared.events.lock().await.recv().await else {
        return pending().await;
    };
    let deadline = SystemTime::now() + event.time_limit;
    let deadline = deadline.duration_since(UNIX_EPOCH).unwrap_or_default();
    let header = |name, value: String| (HeaderName::from_static(name), value);
    let headers = [
        header("lambda-runtime-aws-request-id", event.request_id),
        header(
            "lambda-runtime-deadline-ms",
            deadline.as_millis().to_string(),
        ),
        header(
            "lambda-runtime-invoked-function-arn",
            "arn:aws:lambda:us-east-1:123456789012:function:workspace-management".to_owned(),
        ),
        header("lambda-runtime-trace-id", TRACE_ID.to_owned()),
    ];
    (headers, event.payload.to_string())
}

async fn report(
    State(shared): State<Arc<Shared>>,
    Path((request_id, kind)): Path<(String, String)>,
    body: Bytes,
) -> StatusCode {
    let _ = shared.results.send(InvocationResult {
        request_id,
        is_error: kind == "error",
        body,
        at: Instant::now(),
    });
    StatusCode::ACCEPTED
}
