//! Decides which DynamoDB requests are retried, and which error to return if no attempt succeeds.

use std::{error::Error as StdError, sync::Arc, time::Duration};

use aws_sdk_dynamodb::{
    config::{
        Builder as ConfigBuilder, ConfigBag, Intercept, RuntimeComponents,
        StalledStreamProtectionConfig,
        interceptors::{FinalizerInterceptorContextRef, InterceptorContext},
        retry::{ClassifyRetry, RetryAction, RetryConfig},
        timeout::TimeoutConfig,
    },
    error::{ProvideErrorMetadata, SdkError},
    operation::{
        put_item::PutItemError, transact_write_items::TransactWriteItemsError,
        update_item::UpdateItemError,
    },
    types::CancellationReason,
};
use aws_smithy_runtime_api::client::{
    interceptors::{context::Error as SdkOperationError, dyn_dispatch_hint},
    orchestrator::OrchestratorError,
};

use crate::{
    error::{BoxError, Error},
    load::Load,
};

/// The timeout of one attempt, including connecting. `service` limits the time of all attempts.
const ATTEMPT_TIMEOUT: Duration = Duration::from_millis(1500);

/// The maximum number of attempts. There are fewer if the time limit of `service` ends first, or if
/// many failures in one process use up the SDK's retry quota.
const MAX_ATTEMPTS: u32 = 8;

/// The maximum random wait before the second attempt. The maximum doubles with each attempt.
const INITIAL_BACKOFF: Duration = Duration::from_millis(50);

/// The maximum wait between two attempts.
const MAX_BACKOFF: Duration = Duration::from_secs(1);

/// The error code of a write that lost to a concurrent transaction.
const TRANSACTION_CONFLICT_CODE: &str = "TransactionConflictException";

/// DynamoDB's error codes for exceeded throughput.
const THROTTLING_CODES: [&str; 3] = [
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ThrottlingException",
];

/// DynamoDB's other error codes that become [`Error::Unavailable`], because the same DynamoDB
/// request can succeed later.
const TRANSIENT_ERROR_CODES: [&str; 3] = [
    // When a client of the API retries, a different process may have new credentials.
    "ExpiredTokenException",
    TRANSACTION_CONFLICT_CODE,
    "TransactionInProgressException",
];

/// The code of the cancellation reason of an action that lost to a concurrent transaction.
const CONFLICT_CANCELLATION_CODE: &str = "TransactionConflict";

/// The codes of the cancellation reasons for exceeded throughput.
const THROTTLING_CANCELLATION_CODES: [&str; 2] =
    ["ProvisionedThroughputExceeded", "ThrottlingError"];

/// The code of the cancellation reason of an action whose condition failed.
pub(super) const CONDITION_FAILED_CODE: &str = "ConditionalCheckFailed";

/// Sets the timeouts and retries of an SDK configuration.
pub(super) fn with_timeouts_and_retries(
    client_config: ConfigBuilder,
    load: Arc<Load>,
) -> ConfigBuilder {
    let timeouts = TimeoutConfig::builder().operation_attempt_timeout(ATTEMPT_TIMEOUT);
    client_config
        .timeout_config(timeouts.build())
        // This protection ends a response that stalls for 20 seconds, but `ATTEMPT_TIMEOUT` ends it
        // earlier.
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        .retry_config(retries(MAX_ATTEMPTS))
        .retry_classifier(AdditionalRetryClassifier)
        .interceptor(ThrottledWriteInterceptor { load })
}

fn retries(max_attempts: u32) -> RetryConfig {
    RetryConfig::standard()
        .with_max_attempts(max_attempts)
        .with_initial_backoff(INITIAL_BACKOFF)
        .with_max_backoff(MAX_BACKOFF)
}

/// Limits a write that DynamoDB throttles to two attempts, and reports it to [`Load`]. More attempts
/// would occupy processes, and Lambda would start others for the requests that arrive meanwhile.
#[derive(Debug)]
struct ThrottledWriteInterceptor {
    load: Arc<Load>,
}

#[dyn_dispatch_hint]
impl Intercept for ThrottledWriteInterceptor {
    fn name(&self) -> &'static str {
        "throttled writes"
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let error = context.output_or_error().and_then(Result::err);
        let operation_error = error.and_then(OrchestratorError::as_operation_error);
        if operation_error.is_some_and(is_throttled_write) {
            let max_attempts = if self.load.retries_throttled_write() {
                2
            } else {
                1
            };
            // The SDK reads this after each attempt.
            config.interceptor_state().store_put(retries(max_attempts));
        }
        Ok(())
    }
}

/// Whether the write exceeded the throughput of a table, an index or a partition.
fn is_throttled_write(error: &SdkOperationError) -> bool {
    let code = if let Some(error) = error.downcast_ref::<TransactWriteItemsError>() {
        let reasons = cancellation_reasons(error);
        let mut codes = reasons.iter().filter_map(CancellationReason::code);
        if codes.any(|code| THROTTLING_CANCELLATION_CODES.contains(&code)) {
            return true;
        }
        error.code()
    } else if let Some(error) = error.downcast_ref::<PutItemError>() {
        error.code()
    } else if let Some(error) = error.downcast_ref::<UpdateItemError>() {
        error.code()
    } else {
        None
    };
    code.is_some_and(|code| THROTTLING_CODES.contains(&code))
}

/// Retries more than the SDK does: writes that lost to a concurrent transaction, transactions that
/// were cancelled for a transient reason, and every failure of the connector (such as a response
/// that is not HTTP) except for malformed requests.
#[derive(Debug)]
pub struct AdditionalRetryClassifier;

impl ClassifyRetry for AdditionalRetryClassifier {
    fn classify_retry(&self, context: &InterceptorContext) -> RetryAction {
        let error = context.output_or_error().and_then(Result::err);
        let connector_error = error.and_then(OrchestratorError::as_connector_error);
        let operation_error = error.and_then(OrchestratorError::as_operation_error);
        // A "user" error means a malformed request, so a retry would fail too.
        let is_connector_failure = connector_error.is_some_and(|error| !error.is_user());
        if is_connector_failure || operation_error.is_some_and(needs_additional_retry) {
            RetryAction::transient_error()
        } else {
            RetryAction::NoActionIndicated
        }
    }

    fn name(&self) -> &'static str {
        "additional DynamoDB retries"
    }
}

/// Whether a write lost to a transaction, or a transaction was cancelled for a transient reason.
fn needs_additional_retry(error: &SdkOperationError) -> bool {
    if let Some(error) = error.downcast_ref::<TransactWriteItemsError>() {
        return is_transient_cancellation(error);
    }
    if let Some(error) = error.downcast_ref::<PutItemError>() {
        return error.code() == Some(TRANSACTION_CONFLICT_CODE);
    }
    if let Some(error) = error.downcast_ref::<UpdateItemError>() {
        return error.code() == Some(TRANSACTION_CONFLICT_CODE);
    }
    false
}

/// Whether a transaction was cancelled for a transient reason, and no condition failed.
fn is_transient_cancellation(error: &TransactWriteItemsError) -> bool {
    let codes: Vec<_> = cancellation_reasons(error)
        .iter()
        .filter_map(CancellationReason::code)
        .collect();
    !codes.contains(&CONDITION_FAILED_CODE)
        && codes.iter().any(|code| {
            *code == CONFLICT_CANCELLATION_CODE || THROTTLING_CANCELLATION_CODES.contains(code)
        })
}

/// The reasons why a transaction was cancelled, one per action. Empty for any other error.
pub(super) fn cancellation_reasons(error: &TransactWriteItemsError) -> &[CancellationReason] {
    match error {
        TransactWriteItemsError::TransactionCanceledException(cancelled) => {
            cancelled.cancellation_reasons()
        }
        _ => &[],
    }
}

/// Turns the error of the last attempt into [`Error::Unavailable`] if a later retry can succeed.
impl<E> From<SdkError<E>> for Error
where
    E: StdError + ProvideErrorMetadata + Send + Sync + 'static,
{
    fn from(error: SdkError<E>) -> Self {
        let is_transient = match &error {
            // The DynamoDB request could not be built.
            SdkError::ConstructionFailure(_) => false,
            SdkError::DispatchFailure(failure) => !failure.is_user(),
            SdkError::ServiceError(response) => {
                // Only `TransactWriteItemsError` has cancellation reasons, so check whether `E` is
                // that type.
                let service_error: &(dyn StdError + 'static) = response.err();
                let transaction_error = service_error.downcast_ref::<TransactWriteItemsError>();
                let code = response.err().code().unwrap_or_default();
                response.raw().status().is_server_error()
                    || THROTTLING_CODES.contains(&code)
                    || TRANSIENT_ERROR_CODES.contains(&code)
                    || transaction_error.is_some_and(is_transient_cancellation)
            }
            // A timeout, or a truncated response.
            _ => true,
        };
        if is_transient {
            Self::Unavailable(error.into())
        } else {
            Self::Internal(error.into())
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io;

    use aws_sdk_dynamodb::{
        config::http::HttpResponse, error::ErrorMetadata,
        types::error::TransactionCanceledException,
    };
    use aws_smithy_runtime_api::{client::result::ConnectorError, http::StatusCode};
    use aws_smithy_types::body::SdkBody;

    use super::*;

    fn put_error(code: &str) -> PutItemError {
        PutItemError::generic(ErrorMetadata::builder().code(code).build())
    }

    /// The error of a transaction that was cancelled for these reasons.
    pub(in crate::store) fn cancelled(reasons: &[&str]) -> TransactWriteItemsError {
        let mut exception = TransactionCanceledException::builder();
        for reason in reasons {
            let reason = CancellationReason::builder().code(*reason).build();
            exception = exception.cancellation_reasons(reason);
        }
        TransactWriteItemsError::TransactionCanceledException(exception.build())
    }

    fn response(status: u16) -> HttpResponse {
        HttpResponse::new(StatusCode::try_from(status).unwrap(), SdkBody::empty())
    }

    /// Whether the caller gets a 503, which is safe to retry.
    fn is_unavailable<E>(error: SdkError<E>) -> bool
    where
        E: StdError + ProvideErrorMetadata + Send + Sync + 'static,
    {
        matches!(Error::from(error), Error::Unavailable(_))
    }

    #[test]
    fn errors_after_which_the_same_request_can_succeed_are_unavailable() {
        for (status, code, expected) in [
            (400, "ThrottlingException", true),
            (400, "ProvisionedThroughputExceededException", true),
            (400, "RequestLimitExceeded", true),
            (400, "TransactionConflictException", true),
            (400, "TransactionInProgressException", true),
            (400, "ExpiredTokenException", true),
            (500, "InternalServerError", true),
            (503, "", true),
            (400, "ValidationException", false),
            (400, "ResourceNotFoundException", false),
            (400, "AccessDeniedException", false),
            // a proxy's own page
            (200, "", false),
            (302, "", false),
            (413, "", false),
        ] {
            let error = SdkError::service_error(put_error(code), response(status));
            assert_eq!(is_unavailable(error), expected, "{status} {code}");
        }
    }

    #[test]
    fn a_transaction_cancelled_by_concurrent_writes_or_throttling_is_unavailable() {
        for (reasons, expected) in [
            (vec!["None", "TransactionConflict"], true),
            (vec!["ThrottlingError"], true),
            (vec!["ProvisionedThroughputExceeded", "None"], true),
            (vec!["TransactionConflict", "ConditionalCheckFailed"], false),
            (vec!["ValidationError"], false),
            (vec![], false),
        ] {
            let error = SdkError::service_error(cancelled(&reasons), response(400));
            assert_eq!(is_unavailable(error), expected, "{reasons:?}");
        }
    }

    #[test]
    fn network_failures_are_unavailable_and_invalid_requests_are_not() {
        type Failure = SdkError<PutItemError>;
        let io = || io::Error::from(io::ErrorKind::ConnectionReset).into();
        for failure in [
            Failure::timeout_error("too slow"),
            Failure::dispatch_failure(ConnectorError::io(io())),
            Failure::dispatch_failure(ConnectorError::timeout(io())),
            Failure::dispatch_failure(ConnectorError::other(io(), None)),
            Failure::response_error("incomplete", response(200)),
        ] {
            let description = format!("{failure:?}");
            assert!(is_unavailable(failure), "{description}");
        }
        let user_error = Failure::dispatch_failure(ConnectorError::user(io()));
        assert!(!is_unavailable(user_error));
        assert!(!is_unavailable(Failure::construction_failure("invalid")));
    }
}
