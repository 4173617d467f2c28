//! Handles an event: runs its request within a time limit, logs one line and returns the response.
//! A request that panics gets a 500.

use std::{
    panic::AssertUnwindSafe,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant, SystemTime},
};

use futures_util::FutureExt as _;
use lambda_http::{Context, LambdaEvent};
use serde_json::value::RawValue;

use crate::{
    api_key::Credential,
    auth::AnonymousAccess,
    error::{Error, Result},
    event::Event,
    log::{REQUEST_IDS, RequestLog},
    operations::Success,
    response::{self, Response},
    router,
    store::Store,
};

/// The function's timeout, as in `template.yaml`.
pub const FUNCTION_TIMEOUT: Duration = Duration::from_secs(10);

/// The time before Lambda's deadline that is reserved for sending the response.
const RESPONSE_MARGIN: Duration = Duration::from_millis(500);

/// Handles the events of one Lambda process.
pub struct Service {
    store: Store,
    anonymous_access: AnonymousAccess,
    /// True until the first event.
    is_cold_start: AtomicBool,
}

impl Service {
    /// Creates a service. The log marks its first event as a cold start.
    pub fn new(store: Store, anonymous_access: AnonymousAccess) -> Self {
        Self {
            store,
            anonymous_access,
            is_cold_start: AtomicBool::new(true),
        }
    }

    /// Handles an event and logs one line. `received_at` is the current time, except in tests,
    /// which pass a later time instead of waiting until a cached value or an API key expires.
    pub async fn handle(
        &self,
        lambda_event: LambdaEvent<Box<RawValue>>,
        received_at: SystemTime,
    ) -> Response {
        // The duration in the log needs a monotonic clock.
        let started_at = Instant::now();
        let LambdaEvent { payload, context } = lambda_event;
        let event = Event::parse(payload.get());
        let lambda_request_id = &*context.request_id;
        let request_id = event.request_id().unwrap_or(lambda_request_id);
        let request = event.request(request_id, received_at);
        let mut log = RequestLog {
            request_id,
            lambda_request_id,
            trace_id: context.xray_trace_id.as_deref(),
            is_cold_start: self.is_cold_start.swap(false, Ordering::Relaxed),
            ..RequestLog::default()
        };
        let outcome = match &request {
            None => Err(Error::MalformedEvent),
            Some(request) => {
                // Set before the path is matched, so that the id is logged even for unknown paths.
                if let Credential::Key(key) = request.credential {
                    log.caller_id = Some(key.id);
                }
                // On the heap, because the SDK's futures are large.
                let request_future = Box::pin(router::dispatch(
                    &self.store,
                    self.anonymous_access,
                    request,
                    &mut log,
                ));
                let time_limit = remaining_time(&context, received_at);
                let ids = (request_id.to_owned(), lambda_request_id.to_owned());
                REQUEST_IDS
                    .scope(ids, run_within(time_limit, request_future))
                    .await
            }
        };
        log.write(&outcome, started_at.elapsed());
        response::build(
            &event,
            request.as_ref(),
            &outcome,
            request_id,
            log.key_expires_at,
        )
    }
}

/// Runs a request within a time limit and turns a panic into [`Error::Internal`].
async fn run_within(
    time_limit: Duration,
    request_future: impl Future<Output = Result<Success>>,
) -> Result<Success> {
    if time_limit.is_zero() {
        // `timeout` polls the future once before it looks at the clock, so a request with no time
        // left could still send a write.
        return Err(Error::Unavailable("no time is left for the request".into()));
    }
    match tokio::time::timeout(time_limit, AssertUnwindSafe(request_future).catch_unwind()).await {
        Ok(Ok(outcome)) => outcome,
        // The panic hook has logged the location of the panic.
        Ok(Err(_)) => Err(Error::internal("the request panicked")),
        Err(elapsed) => Err(Error::Unavailable(elapsed.into())),
    }
}

/// The time that is left for a request: the time until Lambda's deadline, minus the margin for the
/// response. `cargo lambda watch` sends deadlines that have already passed, in which case this uses
/// [`FUNCTION_TIMEOUT`] instead.
fn remaining_time(context: &Context, received_at: SystemTime) -> Duration {
    let remaining = context.deadline().duration_since(received_at);
    let remaining = remaining.unwrap_or(FUNCTION_TIMEOUT);
    remaining.saturating_sub(RESPONSE_MARGIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remaining_time_ends_before_the_deadline_and_ignores_past_deadlines() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600);
        let remaining = |deadline: SystemTime| {
            let mut context = Context::default();
            let since_epoch = deadline.duration_since(SystemTime::UNIX_EPOCH).unwrap();
            context.deadline = since_epoch.as_millis() as u64;
            remaining_time(&context, now)
        };

        let from_3_seconds = remaining(now + Duration::from_secs(3));
        assert_eq!(from_3_seconds, Duration::from_millis(2500));
        assert_eq!(remaining(now + Duration::from_millis(400)), Duration::ZERO);
        let from_past_deadline = remaining(now - Duration::from_secs(1));
        assert_eq!(from_past_deadline, FUNCTION_TIMEOUT - RESPONSE_MARGIN);
    }
}
