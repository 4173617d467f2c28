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

/// DynamoDB's codes for exceeded throughput, of errors and of the reasons why a transaction was
/// cancelled.
const THROTTLING_CODES: [&str; 5] = [
    "ProvisionedThroughputExceeded",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ThrottlingError",
    "ThrottlingException",
];

/// DynamoDB's other error codes that become [`Error::Unavailable`], because the same DynamoDB
/// request can succeed later.
const TRANSIENT_ERROR_CODES: [&str; 3] = [
    // When a client of the API retries, a different process may have new credentials.
    "ExpiredTokenException",
    "TransactionConflictException",
    "TransactionInProgressException",
];

/// The codes of a write that the SDK does not retry, although a retry can succeed: of errors, and
/// of the reasons why a transaction was cancelled.
const ADDITIONALLY_RETRIED_CODES: [&str; 4] = [
    "ProvisionedThroughputExceeded",
    "ThrottlingError",
    "TransactionConflict",
    "TransactionConflictException",
];

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

/// Limits a write that DynamoDB throttles to two attempts, and reports it to [`Load`]. More
/// attempts would occupy processes, and Lambda would start others for the requests that arrive.
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
    let codes = write_error_codes(error);
    codes.iter().any(|code| THROTTLING_CODES.contains(code))
}

/// The error code of a write, and the codes of the reasons why a transaction was cancelled. Empty
/// for a read.
fn write_error_codes(error: &SdkOperationError) -> Vec<&str> {
    let mut codes = Vec::new();
    if let Some(error) = error.downcast_ref::<TransactWriteItemsError>() {
        codes.extend(error.code());
        codes.extend(cancellation_codes(error));
    } else if let Some(error) = error.downcast_ref::<PutItemError>() {
        codes.extend(error.code());
    } else if let Some(error) = error.downcast_ref::<UpdateItemError>() {
        codes.extend(error.code());
    }
    codes
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
        let codes = operation_error.map(write_error_codes).unwrap_or_default();
        if is_connector_failure || is_additionally_retried(&codes) {
            RetryAction::transient_error()
        } else {
            RetryAction::NoActionIndicated
        }
    }

    fn name(&self) -> &'static str {
        "additional DynamoDB retries"
    }
}

/// Whether codes show that a retry can succeed, and no condition failed.
fn is_additionally_retried(codes: &[&str]) -> bool {
    let is_retried = |code: &&str| ADDITIONALLY_RETRIED_CODES.contains(code);
    !codes.contains(&CONDITION_FAILED_CODE) && codes.iter().any(is_retried)
}

/// The codes of the reasons why a transaction was cancelled. Empty for any other error.
fn cancellation_codes(error: &TransactWriteItemsError) -> Vec<&str> {
    let reasons = cancellation_reasons(error).iter();
    reasons.filter_map(CancellationReason::code).collect()
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
                let reasons = transaction_error
                    .map(cancellation_codes)
                    .unwrap_or_default();
                let code = response.err().code().unwrap_or_default();
                response.raw().status().is_server_error()
                    || THROTTLING_CODES.contains(&code)
                    || TRANSIENT_ERROR_CODES.contains(&code)
                    || is_additionally_retried(&reasons)
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
mod tests {
    use aws_sdk_dynamodb::{
        config::http::HttpResponse, types::error::TransactionCanceledException,
    };
    use aws_smithy_runtime_api::{client::result::ConnectorError, http::StatusCode};
    use aws_smithy_types::body::SdkBody;

    use super::*;

    /// The error of a transaction that was cancelled for these reasons.
    fn transaction_error(reasons: &[&str]) -> Error {
        let mut exception = TransactionCanceledException::builder();
        for reason in reasons {
            let reason = CancellationReason::builder().code(*reason).build();
            exception = exception.cancellation_reasons(reason);
        }
        let error = TransactWriteItemsError::TransactionCanceledException(exception.build());
        let response = HttpResponse::new(StatusCode::try_from(400).unwrap(), SdkBody::empty());
        SdkError::service_error(error, response).into()
    }

    /// The fault matrix in `tests/api` has other errors.
    #[test]
    fn an_error_that_a_retry_would_repeat_is_internal() {
        type Failure = SdkError<PutItemError>;
        for error in [
            transaction_error(&["TransactionConflict", "ConditionalCheckFailed"]),
            transaction_error(&["ValidationError"]),
            transaction_error(&[]),
            Failure::dispatch_failure(ConnectorError::user("invalid".into())).into(),
            Failure::construction_failure("invalid").into(),
        ] {
            assert!(matches!(error, Error::Internal(_)), "{error:?}");
        }
    }
}
