//! Handles an event: runs its request with a timeout, logs it and returns the response. A request
//! that panics gets a 500.

use std::{
    panic::AssertUnwindSafe,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant, SystemTime},
};

use futures_util::FutureExt as _;
use lambda_http::{Context, LambdaEvent, aws_lambda_events::apigw::ApiGatewayProxyResponse};
use serde_json::value::RawValue;

use crate::{
    auth::{AnonymousOperations, Call},
    error::{Error, Result},
    event::Event,
    operation::{Operation, Success},
    response::{response, status},
    router::route,
    store::Store,
};

/// The function's timeout in `template.yaml`. It limits requests that have no deadline.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// The time before Lambda's deadline that is reserved for sending the response.
const RESPONSE_MARGIN: Duration = Duration::from_millis(500);

/// The service: every operation, with one store.
pub struct Service {
    store: Store,
    anonymous_operations: AnonymousOperations,
    is_warm: AtomicBool,
}

impl Service {
    /// Creates a service that has handled no event yet.
    pub fn new(store: Store, anonymous_operations: AnonymousOperations) -> Self {
        Self {
            store,
            anonymous_operations,
            is_warm: AtomicBool::new(false),
        }
    }

    /// Handles an event from an HTTP API, a function URL (payload 2.0) or a REST API
    /// (payload 1.0). Logs one line.
    pub async fn handle(&self, event: LambdaEvent<Box<RawValue>>) -> ApiGatewayProxyResponse {
        self.handle_at(event, SystemTime::now()).await
    }

    /// Handles an event that is received at a given time. Tests pass a time in the future instead
    /// of waiting for it.
    pub async fn handle_at(
        &self,
        event: LambdaEvent<Box<RawValue>>,
        received_at: SystemTime,
    ) -> ApiGatewayProxyResponse {
        let started = Instant::now();
        let cold_start = !self.is_warm.swap(true, Ordering::Relaxed);
        let LambdaEvent { payload, context } = event;
        let event = Event::parse(payload.get());
        let request_id = event.request_id().unwrap_or(&context.request_id);
        let (call, outcome) = match event.request(request_id, received_at) {
            None => (None, Err(Error::MalformedEvent)),
            Some(request) => {
                let mut call = Call::new(&self.store, self.anonymous_operations, request);
                // On the heap, because the futures of the SDK are large.
                let work = Box::pin(route(&mut call));
                let outcome = with_timeout(work, remaining_time(&context, received_at)).await;
                (Some(call), outcome)
            }
        };
        let duration = started.elapsed();
        let call = call.as_ref();
        log_request(&event, &context, call, &outcome, duration, cold_start);
        response(&event, &outcome, request_id)
    }
}

/// Runs a request with a timeout, and turns a panic into [`Error::Internal`].
async fn with_timeout(
    work: impl Future<Output = Result<Success>>,
    time: Duration,
) -> Result<Success> {
    if time.is_zero() {
        // `timeout` polls the work before it checks the time, so it could still send a write.
        return Err(Error::Unavailable("no time is left for the request".into()));
    }
    match tokio::time::timeout(time, AssertUnwindSafe(work).catch_unwind()).await {
        Ok(Ok(outcome)) => outcome,
        // The panic hook has logged the location.
        Ok(Err(_)) => Err(Error::internal("the request panicked")),
        Err(elapsed) => Err(Error::Unavailable(elapsed.into())),
    }
}

/// The time that a request may take: until Lambda's deadline, without the margin for the response.
/// Ignores deadlines in the past, which `cargo lambda watch` sends.
fn remaining_time(context: &Context, now: SystemTime) -> Duration {
    let remaining = context.deadline().duration_since(now).unwrap_or(TIMEOUT);
    remaining.saturating_sub(RESPONSE_MARGIN)
}

fn log_request(
    event: &Event,
    context: &Context,
    call: Option<&Call<'_>>,
    outcome: &Result<Success>,
    duration: Duration,
    cold_start: bool,
) {
    let status = status(outcome);
    let error = outcome.as_ref().err();
    let path_parameter = |name: &str| {
        let mut parameters = call?.path_parameters.iter();
        let found = parameters.find(|(other, _)| *other == name);
        found.map(|(_, value)| value.as_str())
    };
    let request_id = event.request_id().unwrap_or(&context.request_id);
    // `tracing` requires a constant level.
    macro_rules! log {
        ($level:ident) => {
            tracing::$level!(
                operation = call.and_then(|call| call.operation).map(Operation::name),
                status,
                code = error.map(|error| error.facts().code),
                reason = error.and_then(Error::reason),
                organization = call.and_then(|call| call.organization.as_deref()),
                key_id = call.and_then(|call| call.key_id),
                org_id = path_parameter("org_id"),
                project_id = path_parameter("project_id"),
                team_id = path_parameter("team_id"),
                bot_id = path_parameter("id"),
                model_type = path_parameter("modelType"),
                entries = call.and_then(|call| call.entries),
                request_id,
                trace_id = context.xray_trace_id,
                duration_ms = duration.as_micros() as f64 / 1000.0,
                cold_start,
                cause = error.and_then(Error::cause),
                "request"
            )
        };
    }
    if status >= 500 {
        log!(error);
    } else {
        log!(info);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_the_time_until_the_deadline_without_the_margin() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600);
        let remaining = |deadline: SystemTime| {
            let mut context = Context::default();
            let since_epoch = deadline.duration_since(SystemTime::UNIX_EPOCH).unwrap();
            context.deadline = since_epoch.as_millis() as u64;
            remaining_time(&context, now)
        };

        assert_eq!(
            remaining(now + Duration::from_secs(3)),
            Duration::from_millis(2500)
        );
        assert_eq!(remaining(now + Duration::from_millis(400)), Duration::ZERO);
        let from_past_deadline = remaining(now - Duration::from_secs(1));
        assert_eq!(from_past_deadline, TIMEOUT - RESPONSE_MARGIN);
    }
}
