//! Lambda's event in, a response out, whatever the event is: nothing here fails, and nothing ends the process.

use std::{
    borrow::Cow,
    collections::HashMap,
    panic::AssertUnwindSafe,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant, SystemTime},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::FutureExt as _;
use lambda_http::{Context, LambdaEvent, http::StatusCode};
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::{
    auth::Auth,
    caller::Caller,
    error::Error,
    lambda::response::{EventResponse, Sender},
    metrics::{Attempts, Measured, Metrics},
    router::{Call, Request, route},
    store::Store,
};

/// What is left of Lambda's time for the answer itself.
const RESERVE: Duration = Duration::from_millis(500);

/// The function's time-out in `template.yaml`, and so the time for a request that comes without a deadline.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// The service: six operations over a store.
pub struct Service {
    auth: Auth,
    store: Store,
    metrics: Option<Metrics>,
    warm: AtomicBool,
}

impl Service {
    /// A service that admits callers by `auth` and writes to `store`.
    pub fn new(auth: Auth, store: Store) -> Self {
        Self {
            auth,
            store,
            metrics: None,
            warm: AtomicBool::new(false),
        }
    }

    /// The service, which also writes metrics.
    pub fn with_metrics(self, metrics: Metrics) -> Self {
        Self {
            metrics: Some(metrics),
            ..self
        }
    }

    /// Answers one event of an HTTP API (payload 2.0), a REST API (1.0), a load balancer or a function URL, and logs one
    /// line of it.
    pub async fn answer(&self, event: LambdaEvent<Box<RawValue>>) -> EventResponse {
        let started = Instant::now();
        let cold_start = !self.warm.swap(true, Ordering::Relaxed);
        let LambdaEvent { payload, context } = event;
        let event: Event = serde_json::from_str(payload.get()).unwrap_or_default();
        let request_id = event.request_context.request_id.as_deref();
        let request_id = request_id.unwrap_or(&context.request_id);
        let (mut operation, mut caller) = (None, None);
        let (outcome, attempts) = match event.request() {
            None => (Err(Error::MalformedEvent), Attempts::default()),
            Some(request) => {
                let mut call = Call {
                    auth: &self.auth,
                    store: &self.store,
                    request,
                    request_id,
                    foreseen: None,
                    operation: &mut operation,
                    caller: &mut caller,
                };
                // On the heap: the SDK's futures are large, and wrapped three times.
                let work = Box::pin(route(&mut call));
                Attempts::noted_in(guard(work, time_for(&context))).await
            }
        };

        let caller = caller.as_ref();
        let (status, code, _) = match &outcome {
            Ok(()) => (StatusCode::NO_CONTENT, "", ""),
            Err(error) => error.kind(),
        };
        let latency = started.elapsed();
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
                    amzn_trace_id = event.amzn_trace_id(),
                    traceparent = event.traceparent(),
                    duration_ms = latency.as_micros() as f64 / 1000.0,
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
        if let Some(metrics) = &self.metrics {
            metrics.write(&Measured {
                operation,
                status,
                latency,
                cold_start,
                attempts,
            });
        }
        EventResponse::new(event.sender(), &outcome, request_id)
    }
}

/// Lets a request have its time and no more. A panic is a failure like others.
async fn guard(work: impl Future<Output = Result<(), Error>>, time: Duration) -> Result<(), Error> {
    if time.is_zero() {
        // `timeout` would begin the work before it looks.
        return Err(Error::Unavailable("no time is left to answer in".into()));
    }
    match tokio::time::timeout(time, AssertUnwindSafe(work).catch_unwind()).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) => Err(Error::Internal("panicked, as a line before tells".into())),
        Err(elapsed) => Err(Error::Unavailable(elapsed.into())),
    }
}

/// How long a request may take: what Lambda leaves of the invocation, less a reserve to answer in. A deadline that is past
/// is none: `cargo lambda watch` sends such.
fn time_for(context: &Context) -> Duration {
    let left = context.deadline().duration_since(SystemTime::now());
    left.unwrap_or(TIMEOUT).saturating_sub(RESERVE)
}

/// As much of an event as makes a request, under the names that its four senders give it.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Event {
    /// An HTTP API's and a function URL's.
    raw_path: Option<String>,
    /// A REST API's and a load balancer's, like `http_method`.
    path: Option<String>,
    http_method: Option<String>,
    #[serde(deserialize_with = "or_empty")]
    headers: HashMap<String, String>,
    /// A REST API's besides `headers`, a load balancer's in place of them.
    #[serde(deserialize_with = "or_empty")]
    multi_value_headers: HashMap<String, Vec<String>>,
    body: Option<String>,
    #[serde(deserialize_with = "or_empty")]
    is_base64_encoded: bool,
    #[serde(deserialize_with = "or_empty")]
    request_context: EventContext,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct EventContext {
    request_id: Option<String>,
    stage: Option<String>,
    /// An HTTP API's and a function URL's.
    http: Option<Http>,
    /// A load balancer's.
    elb: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Http {
    method: String,
}

/// Takes null for what is absent, as some senders do.
fn or_empty<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

impl Event {
    /// The request that the event brings; `None` if it brings none, or if its body is not the base64 that it is said to be.
    fn request(&self) -> Option<Request<'_>> {
        let body = self.body.as_deref().unwrap_or_default();
        let http = self.request_context.http.as_ref();
        Some(Request {
            method: http
                .map(|http| &http.method)
                .or(self.http_method.as_ref())?,
            path: self.segments()?,
            authorization: self.authorization(),
            body: match self.is_base64_encoded {
                true => STANDARD.decode(body).ok()?.into(),
                false => body.as_bytes().into(),
            },
        })
    }

    /// The path's segments, each percent-decoded once, without the stage that a path begins with in some events.
    ///
    /// No identifier may hold a `%`, so a path that the gateway decoded already means the same.
    fn segments(&self) -> Option<Vec<Cow<'_, str>>> {
        let path = self.raw_path.as_deref().or(self.path.as_deref())?;
        let path = path.strip_prefix('/').unwrap_or(path);
        let decode = |segment| percent_decode_str(segment).decode_utf8_lossy();
        let mut segments: Vec<_> = path.split('/').map(decode).collect();
        let is_rooted = segments.len() > 1 && segments[0] == "api" && segments[1] == "v1";
        if !is_rooted && self.request_context.stage.as_deref() == Some(&*segments[0]) {
            segments.remove(0);
        }
        Some(segments)
    }

    /// Every value of the `Authorization` header.
    fn authorization(&self) -> Vec<&str> {
        self.values("authorization")
    }

    /// The trace that the caller's request belongs to, by X-Ray's header: `1-` and its root's 8 and 24 hexadecimal digits.
    fn amzn_trace_id(&self) -> Option<&str> {
        let fields = self.values("x-amzn-trace-id").into_iter();
        let mut fields = fields.flat_map(|value| value.split(';'));
        let root = fields.find_map(|field| field.trim().strip_prefix("Root="))?;
        is_of_digits(root, &[1, 8, 24]).then_some(root)
    }

    /// The same by W3C's header (Trace Context, section 3.2), as far as every version of it goes.
    fn traceparent(&self) -> Option<&str> {
        let value = self.values("traceparent").into_iter().next()?;
        let parent = value.get(..55)?;
        is_of_digits(parent, &[2, 32, 16, 2]).then_some(parent)
    }

    /// Every value of a header, in whatever case its name is.
    fn values(&self, asked: &str) -> Vec<&str> {
        let is_asked = |name: &str| name.eq_ignore_ascii_case(asked);
        let many = self
            .multi_value_headers
            .iter()
            .filter(|(name, _)| is_asked(name));
        let many: Vec<_> = many
            .flat_map(|(_, values)| values)
            .map(String::as_str)
            .collect();
        if !many.is_empty() {
            return many;
        }
        let one = self.headers.iter().filter(|(name, _)| is_asked(name));
        one.map(|(_, value)| value.as_str()).collect()
    }

    fn sender(&self) -> Sender {
        match (&self.request_context.elb, &self.http_method) {
            (Some(_), _) => Sender::LoadBalancer,
            (None, Some(_)) => Sender::RestApi,
            (None, None) => Sender::HttpApi,
        }
    }
}

/// Whether a text is of that many lower-case hexadecimal digits, then a dash, and so on: what a caller sends is logged only then.
fn is_of_digits(text: &str, lengths: &[usize]) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let parts = text
        .split('-')
        .map(|part| part.bytes().all(is_digit).then_some(part.len()));
    parts.eq(lengths.iter().copied().map(Some))
}
