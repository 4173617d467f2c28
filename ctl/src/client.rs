//! The client for DynamoDB, and which failures it retries.

use std::{
    error::Error as StdError,
    fmt, io, iter,
    sync::OnceLock,
    time::{Duration, SystemTime},
};

use aws_sdk_dynamodb::{
    Client,
    config::{
        Builder, ConfigBag, Intercept, RuntimeComponents,
        interceptors::{BeforeDeserializationInterceptorContextRef, InterceptorContext},
        retry::{ClassifyRetry, RetryAction, RetryConfig},
    },
    error::BoxError,
};
use aws_smithy_runtime_api::client::{
    orchestrator::OrchestratorError, retries::classifiers::RetryClassifierPriority,
};
use aws_smithy_types::{DateTime, date_time::Format};
use workspace_management::store::AdditionalRetries;

use crate::output::humanize;

/// The maximum number of attempts of a request to DynamoDB. Large removals meet conflicts with
/// other writers and throttling.
const MAX_ATTEMPTS: u32 = 10;

/// The maximum wait before the second attempt. It doubles for each further attempt.
const INITIAL_BACKOFF: Duration = Duration::from_millis(50);

/// The differences between the clocks above which a command warns and fails.
const CLOCK_WARNING: Duration = Duration::from_secs(5);
const CLOCK_FAILURE: Duration = Duration::from_secs(300);

/// A client that checks the clock, and also retries what the function retries, such as conflicts of
/// transactions.
pub(crate) fn client(config: Builder) -> Client {
    let retries = RetryConfig::standard()
        .with_max_attempts(MAX_ATTEMPTS)
        .with_initial_backoff(INITIAL_BACKOFF);
    let config = config
        .interceptor(ClockCheck::default())
        .retry_config(retries)
        .retry_classifier(AdditionalRetries)
        .retry_classifier(RefusedConnections);
    Client::from_conf(config.build())
}

/// Compares the local clock with the `Date` of the first response of DynamoDB. Every command reads
/// before it writes, so nothing is written with a wrong clock.
#[derive(Debug, Default)]
struct ClockCheck(OnceLock<()>);

impl Intercept for ClockCheck {
    fn name(&self) -> &'static str {
        "clock check"
    }

    fn read_before_deserialization(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let date = context.response().headers().get("date");
        let date = date.and_then(|date| DateTime::from_str(date, Format::HttpDate).ok());
        let date = date.and_then(|date| SystemTime::try_from(date).ok());
        let (Some(date), Ok(())) = (date, self.0.set(())) else {
            return Ok(());
        };
        let (difference, direction) = match date.duration_since(SystemTime::now()) {
            Ok(behind) => (behind, "behind"),
            // The header has whole seconds.
            Err(ahead) => (
                ahead.duration().saturating_sub(Duration::from_secs(1)),
                "ahead of",
            ),
        };
        let text = humanize(difference);
        let error = WrongClock(format!(
            "this machine's clock is {text} {direction} DynamoDB's: set it"
        ));
        if difference > CLOCK_FAILURE {
            return Err(error.into());
        }
        if difference > CLOCK_WARNING {
            eprintln!("warning: {error}");
        }
        Ok(())
    }
}

/// What is wrong with the clock.
#[derive(Debug)]
pub(crate) struct WrongClock(String);

impl fmt::Display for WrongClock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl StdError for WrongClock {}

/// Does not retry a refused connection: an operator wants to know at once that nothing listens.
#[derive(Debug)]
struct RefusedConnections;

impl ClassifyRetry for RefusedConnections {
    fn classify_retry(&self, context: &InterceptorContext) -> RetryAction {
        let error = context.output_or_error().and_then(Result::err);
        let error = error.and_then(OrchestratorError::as_connector_error);
        match error.is_some_and(|error| is_refused(error)) {
            true => RetryAction::RetryForbidden,
            false => RetryAction::NoActionIndicated,
        }
    }

    fn name(&self) -> &'static str {
        "refused connections"
    }

    fn priority(&self) -> RetryClassifierPriority {
        RetryClassifierPriority::run_after(AdditionalRetries.priority())
    }
}

/// Whether nothing listens at the address of a connection.
fn is_refused(error: &(dyn StdError + 'static)) -> bool {
    let mut causes = iter::successors(Some(error), |error| (*error).source());
    causes.any(|cause| {
        let error = cause.downcast_ref::<io::Error>();
        error.is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    })
}
