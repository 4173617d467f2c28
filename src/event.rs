//! Lambda's event in, a response out, whatever the event is: nothing here fails, and nothing ends the process.

use std::{
    any::Any,
    borrow::Cow,
    collections::BTreeMap,
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
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    auth::Auth,
    caller::Caller,
    error::{Error, RETRY_AFTER, Violation},
    router::{Call, route},
    store::Store,
};

/// What is left of Lambda's time for the answer itself.
const RESERVE: Duration = Duration::from_millis(500);

/// The time for a request where Lambda names no deadline: the function's time-out in `template.yaml`.
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
        macro_rules! log {
            ($level:ident, $status:expr, $code:expr, $cause:expr) => {
                tracing::$level!(
                    operation,
                    status = $status.as_u16(),
                    code = $code,
                    organization = caller.map(|caller| caller.organization().as_str()),
                    key_id = caller.map(Caller::name),
                    request_id,
                    trace_id = context.xray_trace_id,
                    duration_ms = started.elapsed().as_micros() as f64 / 1000.0,
                    cold_start,
                    cause = $cause,
                    "request"
                )
            };
        }
        match outcome
            .as_ref()
            .map_err(|error| (error.kind(), error.cause()))
        {
            Ok(()) => log!(info, StatusCode::NO_CONTENT, None::<&str>, None::<&str>),
            Err(((status, code, _), cause)) if status.is_server_error() => {
                log!(error, status, code, cause)
            }
            Err(((status, code, _), cause)) => log!(info, status, code, cause),
        }
        EventResponse::new(outcome, request_id, origin.is_load_balancer)
    }
}

/// Lets a request have its time and no more. A panic is a failure like others.
async fn guard(work: impl Future<Output = Result<(), Error>>, time: Duration) -> Result<(), Error> {
    match tokio::time::timeout(time, AssertUnwindSafe(work).catch_unwind()).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(panic)) => Err(Error::Internal(describe(panic.as_ref()).into())),
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

/// How long a request may take: what Lambda leaves of the invocation, less a reserve to answer in.
fn time_for(context: &Context) -> Duration {
    let left = match context.deadline {
        0 => DEFAULT_TIME,
        _ => context
            .deadline()
            .duration_since(SystemTime::now())
            .unwrap_or_default(),
    };
    left.saturating_sub(RESERVE)
}

/// A panic's message, which may show values: for the log of a defect alone.
fn describe(panic: &(dyn Any + Send)) -> String {
    let message = panic.downcast_ref::<&str>().copied();
    let message = message.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", message.unwrap_or("no message"))
}

/// What an event's context tells of its sender.
#[derive(Clone, Copy, Default)]
struct Origin<'a> {
    request_id: Option<&'a str>,
    stage: Option<&'a str>,
    is_load_balancer: bool,
}

impl<'a> Origin<'a> {
    fn of(request: &'a Request) -> Self {
        match request.request_context_ref() {
            Some(RequestContext::ApiGatewayV2(context)) => Self {
                request_id: context.request_id.as_deref(),
                stage: context.stage.as_deref(),
                is_load_balancer: false,
            },
            Some(RequestContext::ApiGatewayV1(context)) => Self {
                request_id: context.request_id.as_deref(),
                stage: context.stage.as_deref(),
                is_load_balancer: false,
            },
            Some(RequestContext::Alb(_)) => Self {
                is_load_balancer: true,
                ..Self::default()
            },
            _ => Self::default(),
        }
    }
}

/// A response in the one form that HTTP APIs, REST APIs, load balancers and function URLs all read.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventResponse {
    status_code: u16,
    headers: BTreeMap<&'static str, String>,
    /// For a load balancer, which reads these instead of `headers` if its target group is set so.
    #[serde(skip_serializing_if = "Option::is_none")]
    multi_value_headers: Option<BTreeMap<&'static str, [String; 1]>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    is_base64_encoded: bool,
}

/// A failure's body (RFC 9457), with three members of our own: `code`, `request_id` and `errors`.
#[derive(Serialize)]
struct Problem<'a> {
    r#type: String,
    title: &'static str,
    status: u16,
    detail: String,
    code: &'static str,
    request_id: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [Violation],
}

impl EventResponse {
    fn new(outcome: Result<(), Error>, request_id: &str, for_load_balancer: bool) -> Self {
        let mut headers = BTreeMap::from([("x-request-id", request_id.to_owned())]);
        let (status, body) = match &outcome {
            Ok(()) => (StatusCode::NO_CONTENT, None),
            Err(error) => {
                headers.insert("content-type", "application/problem+json".to_owned());
                headers.extend(header(error));
                let problem = Problem::new(error, request_id);
                (error.kind().0, serde_json::to_string(&problem).ok())
            }
        };
        let multi = || {
            headers
                .iter()
                .map(|(name, value)| (*name, [value.clone()]))
                .collect()
        };
        Self {
            status_code: status.as_u16(),
            multi_value_headers: for_load_balancer.then(multi),
            headers,
            body,
            is_base64_encoded: false,
        }
    }
}

impl<'a> Problem<'a> {
    fn new(error: &'a Error, request_id: &'a str) -> Self {
        let (status, code, title) = error.kind();
        Self {
            r#type: format!("urn:workspace-management:problem:{code}"),
            title,
            status: status.as_u16(),
            detail: error.to_string(),
            code,
            request_id,
            errors: match error {
                Error::InvalidBody(violations) => violations,
                _ => &[],
            },
        }
    }
}

/// The header that tells a client what to do about a failure, where HTTP has one.
fn header(error: &Error) -> Option<(&'static str, String)> {
    match error {
        Error::Unauthenticated { sent: false } => Some(("www-authenticate", "Bearer".to_owned())),
        Error::Unauthenticated { sent: true } => Some((
            "www-authenticate",
            "Bearer error=\"invalid_token\"".to_owned(),
        )),
        Error::MethodNotAllowed => Some(("allow", "POST".to_owned())),
        Error::Unavailable(_) => Some(("retry-after", RETRY_AFTER.as_secs().to_string())),
        _ => None,
    }
}
