//! Which failed requests to DynamoDB are sent again, and which error the caller gets in the end.

use std::{error::Error as StdError, time::Duration};

use aws_sdk_dynamodb::{
    config::{
        Builder, StalledStreamProtectionConfig,
        interceptors::InterceptorContext,
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
    interceptors::context::Error as OperationError, orchestrator::OrchestratorError,
};

use super::Item;
use crate::error::Error;

/// The timeout of one attempt, including connecting. The timeout of the API request limits all
/// attempts together.
const ATTEMPT_TIMEOUT: Duration = Duration::from_millis(1500);

/// The maximum number of attempts. The timeout of the API request can end them earlier, and so can
/// the SDK's retry quota, which many failures in one process use up.
const MAX_ATTEMPTS: u32 = 8;

/// The maximum wait before the second attempt. It doubles for each further attempt, and the actual
/// wait is random (full jitter).
const INITIAL_BACKOFF: Duration = Duration::from_millis(50);

/// The maximum wait between two attempts.
const MAX_BACKOFF: Duration = Duration::from_secs(1);

/// The error code of a write that lost to a concurrent transaction.
const TRANSACTION_CONFLICT: &str = "TransactionConflictException";

/// The error codes after which the same request can succeed later.
const TRANSIENT_CODES: [&str; 6] = [
    "ExpiredTokenException", // the next execution environment has new credentials
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ThrottlingException",
    TRANSACTION_CONFLICT,
    "TransactionInProgressException",
];

/// The reasons for a cancelled transaction after which the same transaction can succeed later.
const TRANSIENT_REASONS: [&str; 3] = [
    "TransactionConflict",
    "ProvisionedThroughputExceeded",
    "ThrottlingError",
];

/// The cancellation reason of an action whose condition failed.
const CONDITION_FAILED: &str = "ConditionalCheckFailed";

/// Sets the timeouts and retries of an SDK configuration.
pub(super) fn with_retries(config: Builder) -> Builder {
    let timeouts = TimeoutConfig::builder().operation_attempt_timeout(ATTEMPT_TIMEOUT);
    let retries = RetryConfig::standard()
        .with_max_attempts(MAX_ATTEMPTS)
        .with_initial_backoff(INITIAL_BACKOFF)
        .with_max_backoff(MAX_BACKOFF);
    config
        .timeout_config(timeouts.build())
        // This protection ends a body after 20 seconds without data. The timeout of an attempt ends
        // it earlier.
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        .retry_config(retries)
        .retry_classifier(AdditionalRetries)
}

/// Retries what the SDK does not retry: writes that lost to a concurrent transaction, transactions
/// that were cancelled for a transient reason, and responses that are not HTTP.
#[derive(Debug)]
pub struct AdditionalRetries;

impl ClassifyRetry for AdditionalRetries {
    fn classify_retry(&self, context: &InterceptorContext) -> RetryAction {
        let error = context.output_or_error().and_then(Result::err);
        let connector_error = error.and_then(OrchestratorError::as_connector_error);
        let operation_error = error.and_then(OrchestratorError::as_operation_error);
        // A response that is not HTTP, and also a timeout or an I/O error, which the SDK retries anyway.
        let has_no_response = connector_error.is_some_and(|error| !error.is_user());
        if has_no_response || operation_error.is_some_and(is_transient) {
            RetryAction::transient_error()
        } else {
            RetryAction::NoActionIndicated
        }
    }

    fn name(&self) -> &'static str {
        "writes that lost to a transaction, and responses that are not HTTP"
    }
}

/// Whether a write lost to a concurrent transaction, or a transaction was cancelled for a transient
/// reason.
fn is_transient(error: &OperationError) -> bool {
    if let Some(error) = error.downcast_ref::<TransactWriteItemsError>() {
        return is_transient_cancellation(error);
    }
    let put_code = || error.downcast_ref::<PutItemError>()?.code();
    let update_code = || error.downcast_ref::<UpdateItemError>()?.code();
    put_code().or_else(update_code) == Some(TRANSACTION_CONFLICT)
}

/// Whether a transaction was cancelled for a transient reason, and no condition failed.
fn is_transient_cancellation(error: &TransactWriteItemsError) -> bool {
    let mut codes = reasons(error).iter().filter_map(CancellationReason::code);
    let has_failed = codes.clone().any(|code| code == CONDITION_FAILED);
    !has_failed && codes.any(|code| TRANSIENT_REASONS.contains(&code))
}

/// The reasons for which a transaction was cancelled, in the order of its actions.
fn reasons(error: &TransactWriteItemsError) -> &[CancellationReason] {
    let TransactWriteItemsError::TransactionCanceledException(cancelled) = error else {
        return &[];
    };
    cancelled.cancellation_reasons()
}

/// A record whose condition failed, so that it was not written.
#[derive(Debug)]
pub struct FailedCondition {
    /// The index of the record in the transaction.
    pub index: usize,
    /// The existing item. Empty if there is none.
    pub existing: Item,
}

/// The failed conditions of a transaction that was cancelled. Empty if the transaction failed for a
/// different reason.
pub fn failed_conditions(error: &TransactWriteItemsError) -> Vec<FailedCondition> {
    let reasons = reasons(error).iter().enumerate();
    reasons
        .filter(|(_, reason)| reason.code() == Some(CONDITION_FAILED))
        .map(|(index, reason)| FailedCondition {
            index,
            existing: reason.item().cloned().unwrap_or_default(),
        })
        .collect()
}

/// The error of a request after its last attempt: [`Error::Unavailable`] if the same request can
/// succeed later.
impl<E> From<SdkError<E>> for Error
where
    E: StdError + ProvideErrorMetadata + Send + Sync + 'static,
{
    fn from(error: SdkError<E>) -> Self {
        let is_transient = match &error {
            // The request could not be built.
            SdkError::ConstructionFailure(_) => false,
            SdkError::DispatchFailure(failure) => !failure.is_user(),
            SdkError::ServiceError(response) => {
                let error: &(dyn StdError + 'static) = response.err();
                let transaction = error.downcast_ref::<TransactWriteItemsError>();
                let code = response.err().code().unwrap_or_default();
                response.raw().status().is_server_error()
                    || TRANSIENT_CODES.contains(&code)
                    || transaction.is_some_and(is_transient_cancellation)
            }
            // A timeout, or a response that breaks off.
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
    use std::io;

    use aws_sdk_dynamodb::{
        config::http::{HttpRequest, HttpResponse},
        error::ErrorMetadata,
        types::error::TransactionCanceledException,
    };
    use aws_smithy_runtime_api::{
        client::{interceptors::context::Input, result::ConnectorError},
        http::StatusCode,
    };
    use aws_smithy_types::body::SdkBody;

    use super::*;

    fn put(code: &str) -> PutItemError {
        PutItemError::generic(ErrorMetadata::builder().code(code).build())
    }

    fn cancelled(reasons: &[&str]) -> TransactWriteItemsError {
        let reasons = reasons
            .iter()
            .map(|reason| CancellationReason::builder().code(*reason).build());
        let exception = TransactionCanceledException::builder()
            .set_cancellation_reasons(Some(reasons.collect()));
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
    fn failed_conditions_are_found_by_their_index() {
        let reasons = [
            "None",
            "ConditionalCheckFailed",
            "TransactionConflict",
            "ConditionalCheckFailed",
        ];
        let failed = failed_conditions(&cancelled(&reasons)).into_iter();
        assert!(failed.map(|failed| failed.index).eq([1, 3]));
        assert!(failed_conditions(&cancelled(&["None", "TransactionConflict"])).is_empty());
        let throttled = ErrorMetadata::builder().code("ThrottlingException").build();
        assert!(failed_conditions(&TransactWriteItemsError::generic(throttled)).is_empty());
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
            // a page of a proxy
            (200, "", false),
            (302, "", false),
            (413, "", false),
        ] {
            let error = SdkError::service_error(put(code), response(status));
            assert_eq!(is_unavailable(error), expected, "{status} {code}");
        }
    }

    #[test]
    fn a_transaction_cancelled_by_other_writers_or_throttling_is_unavailable() {
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
        assert!(is_unavailable(Failure::timeout_error("too slow")));
        assert!(is_unavailable(Failure::dispatch_failure(
            ConnectorError::io(io())
        )));
        assert!(is_unavailable(Failure::dispatch_failure(
            ConnectorError::timeout(io())
        )));
        assert!(is_unavailable(Failure::dispatch_failure(
            ConnectorError::other(io(), None)
        )));
        assert!(is_unavailable(Failure::response_error(
            "incomplete",
            response(200)
        )));
        assert!(!is_unavailable(Failure::dispatch_failure(
            ConnectorError::user(io())
        )));
        assert!(!is_unavailable(Failure::construction_failure("invalid")));
    }

    fn is_retried(error: OperationError) -> bool {
        // The context accepts a result only after these phases.
        let mut context = InterceptorContext::new(Input::erase(()));
        context.enter_serialization_phase();
        let _ = context.take_input();
        context.set_request(HttpRequest::new(SdkBody::empty()));
        context.enter_before_transmit_phase();
        context.enter_transmit_phase();
        let _ = context.take_request();
        context.set_response(response(400));
        context.enter_before_deserialization_phase();
        context.enter_deserialization_phase();
        context.set_output_or_error(Err(OrchestratorError::operation(error)));
        AdditionalRetries.classify_retry(&context) == RetryAction::transient_error()
    }

    #[test]
    fn writes_that_lost_to_a_transaction_are_retried() {
        let conflict = || ErrorMetadata::builder().code(TRANSACTION_CONFLICT).build();
        assert!(is_retried(OperationError::erase(PutItemError::generic(
            conflict()
        ))));
        assert!(is_retried(OperationError::erase(UpdateItemError::generic(
            conflict()
        ))));
        assert!(is_retried(OperationError::erase(cancelled(&[
            "TransactionConflict"
        ]))));

        let failed = cancelled(&["TransactionConflict", "ConditionalCheckFailed"]);
        assert!(!is_retried(OperationError::erase(failed)));
        assert!(!is_retried(OperationError::erase(put(
            "ConditionalCheckFailedException"
        ))));
        assert!(!is_retried(OperationError::erase(put(
            "AccessDeniedException"
        ))));
    }
}
