//! Lambda's event in, a response out, whatever the event is: nothing here fails, and nothing ends the process.

use std::{
    borrow::Cow,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant, SystemTime},
};

use futures_util::FutureExt as _;
use lambda_http::{
    Context, LambdaEvent, Request, RequestExt as _,
    http::StatusCode,
    request::{RequestContext, from_str},
};
use percent_encoding::percent_decode_str;
use serde_json::value::RawValue;

use crate::{
    auth::Auth,
    caller::Caller,
    error::Error,
    response::{EventResponse, Sender},
    router::{Call, route},
    store::Store,
};

/// What is left of Lambda's time for the answer itself.
const RESERVE: Duration = Duration::from_millis(500);

/// The time for a request that comes without a deadline: the function's time-out in `template.yaml`.
const DEFAULT_TIME: Duration = Duration::from_secs(10);

/// The service: six operations over a store.
pub struct Service {
    auth: Auth,
    store: Store,
    warm: AtomicBool,
}

impl Service {
    /// A service that admits callers by `auth` and writes to `store`.
    pub fn new(auth: Auth, store: Store) -> Self {
        Self {
            auth,
            store,
            warm: AtomicBool::new(false),
        }
    }

    /// Answers one event of an HTTP API (payload 2.0), a REST API (1.0), a load balancer or a function URL, and logs one
    /// line of it.
    pub async fn answer(&self, event: LambdaEvent<Box<RawValue>>) -> EventResponse {
        let started = Instant::now();
        let cold_start = !self.warm.swap(true, Ordering::Relaxed);
        let LambdaEvent { payload, context } = event;
        // lambda_http panics where it cannot make a request of an event: for a body that is not the base64 that it is
        // said to be, for a host that is none.
        let request = catch_unwind(|| from_str(payload.get()).ok()).ok().flatten();
        let origin = request.as_ref().map_or(Origin::default(), Origin::of);
        let request_id = origin.request_id.unwrap_or(&context.request_id);
        let (mut operation, mut caller) = (None, None);
        let outcome = match &request {
            None => Err(Error::MalformedEvent),
            Some(request) => {
                let segments = segments(request.raw_http_path(), origin.stage);
                let path: Vec<&str> = segments.iter().map(AsRef::as_ref).collect();
                let mut call = Call {
                    auth: &self.auth,
                    store: &self.store,
                    request,
                    request_id,
                    operation: &mut operation,
                    caller: &mut caller,
                };
                guard(route(&mut call, &path), time_for(&context)).await
            }
        };

        let caller = caller.as_ref();
        let (status, code, _) = match &outcome {
            Ok(()) => (StatusCode::NO_CONTENT, "", ""),
            Err(error) => error.kind(),
        };
        macro_rules! log {
            ($level:ident) => {
                tracing::$level!(
                    operation,
                    status = status.as_u16(),
                    code = Some(code).filter(|code| !code.is_empty()),
                    organization = caller.map(|caller| caller.organization().as_str()),
                    key_id = caller.map(Caller::name),
                    request_id,
                    trace_id = context.xray_trace_id,
                    duration_ms = started.elapsed().as_micros() as f64 / 1000.0,
                    cold_start,
                    cause = outcome.as_ref().err().and_then(Error::cause),
                    "request"
                )
            };
        }
        if status.is_server_error() {
            log!(error);
        } else {
            log!(info);
        }
        EventResponse::new(origin.sender, &outcome, request_id)
    }
}

/// Lets a request have its time and no more. A panic is a failure like others.
async fn guard(work: impl Future<Output = Result<(), Error>>, time: Duration) -> Result<(), Error> {
    match tokio::time::timeout(time, AssertUnwindSafe(work).catch_unwind()).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) => Err(Error::Internal("panicked, as a line before tells".into())),
        Err(elapsed) => Err(Error::Unavailable(elapsed.into())),
    }
}

/// The path's segments, each percent-decoded once, without the stage that a path begins with in some events.
///
/// No identifier may hold a `%`, so a path that the gateway decoded already means the same.
fn segments<'a>(path: &'a str, stage: Option<&str>) -> Vec<Cow<'a, str>> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let decode = |segment: &'a str| percent_decode_str(segment).decode_utf8_lossy();
    let mut segments: Vec<_> = path.split('/').map(decode).collect();
    let is_root =
        |segments: &[Cow<str>]| segments.len() > 1 && segments[0] == "api" && segments[1] == "v1";
    if !is_root(&segments) && stage.is_some_and(|stage| segments[0] == stage) {
        segments.remove(0);
    }
    segments
}

/// How long a request may take: what Lambda leaves of the invocation, less a reserve to answer in. A deadline that is past
/// is none: `cargo lambda watch` sends such.
fn time_for(context: &Context) -> Duration {
    let left = context.deadline().duration_since(SystemTime::now());
    left.unwrap_or(DEFAULT_TIME).saturating_sub(RESERVE)
}

/// What an event's context tells.
#[derive(Clone, Copy, Default)]
struct Origin<'a> {
    sender: Sender,
    request_id: Option<&'a str>,
    stage: Option<&'a str>,
}

impl<'a> Origin<'a> {
    fn of(request: &'a Request) -> Self {
        let (sender, request_id, stage) = match request.request_context_ref() {
            Some(RequestContext::ApiGatewayV2(context)) => {
                (Sender::HttpApi, &context.request_id, &context.stage)
            }
            Some(RequestContext::ApiGatewayV1(context)) => {
                (Sender::RestApi, &context.request_id, &context.stage)
            }
            Some(RequestContext::Alb(_)) => (Sender::LoadBalancer, &None, &None),
            _ => return Self::default(),
        };
        Self {
            sender,
            request_id: request_id.as_deref(),
            stage: stage.as_deref(),
        }
    }
}
