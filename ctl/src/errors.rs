//! How an error is presented to the operator.

use std::error::Error;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_dynamodb::types::error::ResourceNotFoundException;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::error::ErrorMetadata;

/// The error and its causes in one line.
pub(crate) fn describe(error: &anyhow::Error) -> String {
    let mut parts = Vec::<String>::new();
    for cause in error.chain() {
        if is_connection_failure(cause) {
            // The causes between are layers of the HTTP client.
            parts.push(error.root_cause().to_string());
            break;
        }
        let part = match cause.downcast_ref::<ErrorMetadata>() {
            Some(error) => format!(
                "{}: {}",
                error.code().unwrap_or("unknown error"),
                error.message().unwrap_or("no message")
            ),
            None => cause.to_string(),
        };
        // The SDK wraps the error of a request in these.
        let is_layer = ["service error", "dispatch failure", "other"].contains(&&*part)
            || part.starts_with("unhandled error");
        if !is_layer {
            parts.push(part);
        }
    }
    parts.join(": ")
}

fn is_connection_failure(cause: &(dyn Error + 'static)) -> bool {
    let error = cause.downcast_ref::<ConnectorError>();
    error.is_some_and(|error| error.is_io() || error.is_timeout())
}

/// What to do about an error.
pub(crate) fn hint(error: &anyhow::Error) -> Option<&'static str> {
    error.chain().find_map(|cause| {
        if cause.is::<CredentialsError>() {
            return Some(
                "No valid AWS credentials were found. Set AWS_PROFILE, or sign in with `aws sso login` or `aws configure`.",
            );
        }
        if cause.is::<ResourceNotFoundException>() {
            return Some(
                "A table does not exist. Check --stack, AWS_REGION and AWS_PROFILE, then run `workspacectl doctor`.",
            );
        }
        if is_connection_failure(cause) {
            return Some(
                "Cannot connect. For the local service, run `cargo serve` first, or set AWS_ENDPOINT_URL_DYNAMODB to its address.",
            );
        }
        match cause.downcast_ref::<ErrorMetadata>()?.code()? {
            "ExpiredToken" | "ExpiredTokenException" => {
                Some("The AWS credentials have expired. Sign in again.")
            }
            "AccessDenied" | "AccessDeniedException" => Some(
                "Your AWS identity lacks a permission. docs/deploying.md lists the required ones.",
            ),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    fn rejected(code: &str) -> anyhow::Error {
        let error = ErrorMetadata::builder().code(code).message("No.").build();
        anyhow!(error).context("cannot read TeamsTable")
    }

    #[test]
    fn an_aws_error_shows_its_code_and_message() {
        assert_eq!(
            describe(&rejected("AccessDeniedException")),
            "cannot read TeamsTable: AccessDeniedException: No."
        );
    }

    #[test]
    fn the_hint_depends_on_the_error_code() {
        let hint = |code| hint(&rejected(code)).unwrap_or_default();
        assert!(hint("AccessDeniedException").contains("lacks a permission"));
        assert!(hint("ExpiredToken").contains("expired"));
        assert_eq!(hint("ValidationException"), "");
    }

    #[test]
    fn a_failed_connection_shows_its_cause() {
        let refused = std::io::Error::other("connection refused");
        let error = anyhow!(ConnectorError::io(refused.into())).context("cannot read TeamsTable");
        assert_eq!(
            describe(&error),
            "cannot read TeamsTable: connection refused"
        );
        assert!(hint(&error).unwrap_or_default().contains("cargo serve"));
    }
}
