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
    api_key::Credential,
    auth::AnonymousOperations,
    error::{Error, Result},
    event::Event,
    log::RequestLog,
    operations::Success,
    response::response,
    router::route,
    store::Store,
};

/// The function's timeout in `template.yaml`. It limits a request whose deadline is in the past.
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

    /// Handles an event from an HTTP API or a function URL (payload 2.0) or from a REST API
    /// (payload 1.0), and logs one line. `received_at` is the current time; tests pass one in the
    /// future instead of waiting for it.
    pub async fn handle(
        &self,
        event: LambdaEvent<Box<RawValue>>,
        received_at: SystemTime,
    ) -> ApiGatewayProxyResponse {
        let started = Instant::now();
        let LambdaEvent { payload, context } = event;
        let event = Event::parse(payload.get());
        let request_id = event.request_id().unwrap_or(&context.request_id);
        let request = event.request(request_id, received_at);
        let mut log = RequestLog {
            request_id,
            trace_id: context.xray_trace_id.as_deref(),
            cold_start: !self.is_warm.swap(true, Ordering::Relaxed),
            ..RequestLog::default()
        };
        let outcome = match &request {
            None => Err(Error::MalformedEvent),
            Some(request) => {
                if let Credential::Key(key) = request.credential {
                    log.key_id = Some(key.id);
                }
                let work = route(&self.store, self.anonymous_operations, request, &mut log);
                // On the heap, because the futures of the SDK are large.
                with_timeout(Box::pin(work), remaining_time(&context, received_at)).await
            }
        };
        log.write(&outcome, started.elapsed());
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
