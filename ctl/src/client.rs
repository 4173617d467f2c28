//! The client for DynamoDB, and which failures it retries.

use std::{error::Error as StdError, io, iter, time::Duration};

use aws_sdk_dynamodb::{
    Client,
    config::{
        Builder,
        interceptors::InterceptorContext,
        retry::{ClassifyRetry, RetryAction, RetryConfig},
    },
    error::ProvideErrorMetadata as _,
    operation::delete_item::DeleteItemError,
};
use aws_smithy_runtime_api::client::{
    orchestrator::OrchestratorError, retries::classifiers::RetryClassifierPriority,
};
use workspace_management::store::AdditionalRetries;

/// The maximum number of attempts of a request to DynamoDB. Large removals meet conflicts with
/// other writers and throttling.
const MAX_ATTEMPTS: u32 = 10;

/// The maximum wait before the second attempt. It doubles for each further attempt.
const INITIAL_BACKOFF: Duration = Duration::from_millis(50);

/// A client that also retries what the function retries, such as conflicts of transactions.
pub(crate) fn client(config: Builder) -> Client {
    let retries = RetryConfig::standard()
        .with_max_attempts(MAX_ATTEMPTS)
        .with_initial_backoff(INITIAL_BACKOFF);
    let config = config
        .retry_config(retries)
        .retry_classifier(AdditionalRetries)
        .retry_classifier(OperatorClassifier);
    Client::from_conf(config.build())
}

/// Retries deletes that lost to a transaction: the function deletes nothing, so its rules lack them.
/// Does not retry a refused connection: an operator wants to know at once that nothing listens.
#[derive(Debug)]
pub(crate) struct OperatorClassifier;

impl ClassifyRetry for OperatorClassifier {
    fn classify_retry(&self, context: &InterceptorContext) -> RetryAction {
        let error = context.output_or_error().and_then(Result::err);
        let connector = error.and_then(OrchestratorError::as_connector_error);
        if connector.is_some_and(|error| is_refused(error)) {
            return RetryAction::RetryForbidden;
        }
        let operation = error.and_then(OrchestratorError::as_operation_error);
        let delete = operation.and_then(|error| error.downcast_ref::<DeleteItemError>());
        match delete.and_then(|error| error.code()) {
            Some("TransactionConflictException") => RetryAction::transient_error(),
            _ => RetryAction::NoActionIndicated,
        }
    }

    fn name(&self) -> &'static str {
        "deletes that lost to a transaction, and refused connections"
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
