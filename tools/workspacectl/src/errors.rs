//! Errors and what the operator is told about them.

use std::{error::Error as StdError, fmt, io};

use anyhow::{Chain, Context as _, Result};
use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_dynamodb::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};

use crate::{
    deployment::{Deployment, Place},
    text::join_lines,
};

/// A usage error that clap does not report. The process exits with 2, as after errors from clap.
/// The message must never repeat an argument that may be an API key.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

/// A failed request to AWS or to a local DynamoDB.
#[derive(Debug, thiserror::Error)]
#[error("{failure}")]
pub(crate) struct RequestError {
    failure: Failure,
    /// The name of the deployment. Empty if the request was sent to find the deployment.
    deployment: String,
    is_local_service: bool,
    /// All causes from the SDK. Only `--verbose` shows them, because they can quote requests.
    causes: String,
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    /// Contains the cause.
    #[error("no AWS credentials: {0}")]
    NoCredentials(String),
    /// Contains the root cause.
    #[error("{0}")]
    NoResponse(String),
    /// AWS or a local DynamoDB responded with an error.
    #[error("{code}: {message}")]
    Rejected { code: String, message: String },
    /// The response has no AWS error code, so it came from neither AWS nor a local DynamoDB.
    #[error("the response did not come from AWS or DynamoDB")]
    UnknownResponse,
}

impl<E, R> From<SdkError<E, R>> for RequestError
where
    E: ProvideErrorMetadata + StdError + 'static,
    R: fmt::Debug + 'static,
{
    fn from(error: SdkError<E, R>) -> Self {
        let causes = DisplayErrorContext(&error).to_string();
        let root_cause = Chain::new(&error).last().map(ToString::to_string);
        let root_cause = root_cause.unwrap_or_default();
        let credentials_errors = Chain::new(&error).filter_map(|cause| cause.downcast_ref());
        let failure = if let Some(error) = credentials_errors.last() {
            Failure::NoCredentials(credentials_failure(error))
        } else if root_cause.starts_with("identity resolver timed out") {
            Failure::NoCredentials("they were not provided in time".to_owned())
        } else {
            match &error {
                SdkError::ConstructionFailure(_)
                | SdkError::TimeoutError(_)
                // Keeps only the root cause, which the HTTP client wraps in several layers.
                | SdkError::DispatchFailure(_) => Failure::NoResponse(root_cause),
                _ => match error.code() {
                    Some(code) => Failure::Rejected {
                        code: code.to_owned(),
                        message: error.message().unwrap_or("no message").to_owned(),
                    },
                    None => Failure::UnknownResponse,
                },
            }
        };
        Self {
            failure,
            deployment: String::new(),
            is_local_service: false,
            causes,
        }
    }
}

/// Why there are no credentials, such as what a `credential_process` printed.
fn credentials_failure(error: &CredentialsError) -> String {
    // The first cause is the error itself, which says only that something failed.
    let causes = Chain::new(error).skip(1).map(ToString::to_string);
    let causes = Vec::from_iter(causes).join(": ");
    match error {
        // Nothing is configured, unless the line about the profile has a reason.
        CredentialsError::CredentialsNotLoaded(_) => {
            let profile = causes.lines().find(|line| line.contains("Profile: "));
            let reason = profile.and_then(|line| line.rsplit_once("enabled: "));
            reason
                .map_or("none are configured", |(_, reason)| reason)
                .to_owned()
        }
        // The SDK reads no other file without naming it.
        _ if error.source().is_some_and(|cause| cause.is::<io::Error>()) => format!(
            "cannot read the file that AWS_WEB_IDENTITY_TOKEN_FILE or web_identity_token_file names: {causes}"
        ),
        _ => join_lines(&causes),
    }
}

pub(crate) trait RequestResultExt<T> {
    /// Turns the error into a [`RequestError`] and adds a message such as `cannot read X`.
    fn request_context(self, deployment: &Deployment, message: impl Into<String>) -> Result<T>;

    /// Like [`Self::request_context`], for a request that was sent to find the deployment.
    fn aws_context(self, message: impl Into<String>) -> Result<T>;
}

impl<T, E> RequestResultExt<T> for Result<T, E>
where
    RequestError: From<E>,
{
    fn request_context(self, deployment: &Deployment, message: impl Into<String>) -> Result<T> {
        self.map_err(|error| RequestError {
            deployment: deployment.to_string(),
            is_local_service: matches!(deployment.place, Place::LocalService { .. }),
            ..RequestError::from(error)
        })
        .context(message.into())
    }

    fn aws_context(self, message: impl Into<String>) -> Result<T> {
        self.map_err(RequestError::from).context(message.into())
    }
}

/// Whether a request failed because there are no credentials, so that all others would fail too.
pub(crate) fn lacks_credentials(error: &anyhow::Error) -> bool {
    let error: Option<&RequestError> = error.downcast_ref();
    error.is_some_and(|error| matches!(error.failure, Failure::NoCredentials(_)))
}

/// What failed and why. If a request failed, begins with the name of the deployment. `verbose` adds
/// all causes of a failed request.
pub(crate) fn error_text(error: &anyhow::Error, verbose: bool) -> String {
    let mut text = format!("{error:#}");
    if let Some(request_error) = error.downcast_ref::<RequestError>() {
        if !request_error.deployment.is_empty() {
            text = format!("{}: {text}", request_error.deployment);
        }
        if verbose {
            text = format!("{text}: {}", request_error.causes);
        }
    }
    text
}

/// What to do about an error. `None` if there is nothing to add to the text of the error.
pub(crate) fn hint(error: &anyhow::Error) -> Option<&'static str> {
    let error: &RequestError = error.downcast_ref()?;
    Some(match &error.failure {
        Failure::NoCredentials(_) => {
            "No valid AWS credentials were found. Set AWS_PROFILE, sign in with `aws login` or `aws sso login`, or run `aws configure`."
        }
        Failure::NoResponse(cause) if cause.contains("certificate") => {
            "Check the certificate. If it is not from a public authority, set AWS_CA_BUNDLE to the file with its root certificate."
        }
        Failure::NoResponse(_) if error.is_local_service => {
            "Run `cargo serve` first. If its DynamoDB is not at http://127.0.0.1:8000, set AWS_ENDPOINT_URL_DYNAMODB to the URL that `cargo serve` prints. To use a stack, pass --stack."
        }
        Failure::NoResponse(_) => {
            "Cannot connect. Check the network, the proxy, AWS_REGION and AWS_ENDPOINT_URL_DYNAMODB."
        }
        Failure::UnknownResponse => {
            "Check the endpoint: AWS_ENDPOINT_URL_DYNAMODB, AWS_ENDPOINT_URL or the AWS profile."
        }
        Failure::Rejected { code, .. } => match code.as_str() {
            "ResourceNotFoundException" => {
                "A table does not exist. Check --stack, AWS_REGION, AWS_PROFILE and AWS_ENDPOINT_URL_DYNAMODB, then run `workspacectl doctor`."
            }
            "ExpiredToken" | "ExpiredTokenException" => {
                "The AWS credentials have expired. Sign in again."
            }
            // `AuthorizationError` is the code that SNS uses.
            "AccessDenied" | "AccessDeniedException" | "AuthorizationError" => {
                "Your AWS identity lacks a permission. deploy/operators.yaml has a read-only policy and a policy for operators."
            }
            _ => return None,
        },
    })
}
