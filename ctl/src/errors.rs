//! How an error is presented to the operator.

use std::error::Error;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_dynamodb::types::error::ResourceNotFoundException;
use aws_sdk_sns::types::error::AuthorizationErrorException;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::error::ErrorMetadata;

use crate::client::WrongClock;

/// How the SDK's error of a request begins. Below it are the SDK's layers.
const SDK_ERRORS: [&str; 5] = [
    "construction failure",
    TIMED_OUT,
    "dispatch failure",
    "response error",
    SERVICE_ERROR,
];

const TIMED_OUT: &str = "request has timed out";

const SERVICE_ERROR: &str = "service error";

const NO_PERMISSION: &str =
    "Your AWS identity lacks a permission. ctl/permissions.json lists those of each command.";

/// The error in one line: what the command could not do, and why. Without the SDK's layers, which
/// can contain whole requests.
pub(crate) fn describe(error: &anyhow::Error) -> String {
    let mut parts = Vec::new();
    for cause in error.chain() {
        let part = cause.to_string();
        if is_of_sdk(cause, &part) {
            parts.push(sdk_failure(error));
            break;
        }
        parts.push(part);
    }
    parts.join(": ")
}

/// Whether an error was caused by a request to AWS or to a local DynamoDB.
pub(crate) fn is_failed_request(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|cause| is_of_sdk(cause, &cause.to_string()))
}

fn is_of_sdk(cause: &(dyn Error + 'static), text: &str) -> bool {
    SDK_ERRORS.contains(&text) || cause.is::<ConnectorError>() || cause.is::<ErrorMetadata>()
}

/// Why a request failed.
fn sdk_failure(error: &anyhow::Error) -> String {
    for cause in error.chain() {
        if let Some(error) = cause.downcast_ref::<WrongClock>() {
            return error.to_string();
        }
        if is_connection_failure(cause) {
            // The causes between are layers of the HTTP client.
            return error.root_cause().to_string();
        }
        if cause.is::<CredentialsError>() {
            return "no AWS credentials".to_owned();
        }
        if let Some(error) = cause.downcast_ref::<ErrorMetadata>()
            && let Some(code) = error.code()
        {
            return format!("{code}: {}", error.message().unwrap_or("no message"));
        }
    }
    let has_layer = |layer: &str| error.chain().any(|cause| cause.to_string() == layer);
    let root = error.root_cause();
    let text = root.to_string();
    // An exception that the SDK knows, with its code and message, such as `Exception: message`. Other
    // texts are from the parser.
    let is_code = text
        .split(':')
        .next()
        .is_some_and(|code| !code.contains(' '));
    if has_layer(SERVICE_ERROR) && !root.is::<ErrorMetadata>() && is_code {
        return text;
    }
    match has_layer(TIMED_OUT) {
        true => "no response in time".to_owned(),
        false => "the response is not one of AWS or DynamoDB".to_owned(),
    }
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
                "Cannot connect. For the local service, run `cargo serve` first. If its DynamoDB is not at http://127.0.0.1:8000, AWS_ENDPOINT_URL_DYNAMODB must be the address that it prints.",
            );
        }
        if cause.is::<AuthorizationErrorException>() {
            return Some(NO_PERMISSION);
        }
        let Some(code) = cause.downcast_ref::<ErrorMetadata>()?.code() else {
            return Some(
                "Check the endpoint: AWS_ENDPOINT_URL_DYNAMODB, AWS_ENDPOINT_URL or the AWS profile.",
            );
        };
        match code {
            "ExpiredToken" | "ExpiredTokenException" => {
                Some("The AWS credentials have expired. Sign in again.")
            }
            "AccessDenied" | "AccessDeniedException" => Some(NO_PERMISSION),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn an_aws_error_shows_its_message_and_a_hint_for_its_code() {
        for (code, expected) in [
            ("AccessDeniedException", "lacks a permission"),
            ("ExpiredToken", "expired"),
            ("ValidationException", ""),
        ] {
            let error = ErrorMetadata::builder().code(code).message("No.").build();
            let error = anyhow!(error).context("cannot read TeamsTable");
            let text = format!("cannot read TeamsTable: {code}: No.");
            assert_eq!(describe(&error), text);
            let hint = hint(&error).unwrap_or_default();
            assert!(hint.contains(expected), "{hint}");
            assert_eq!(hint.is_empty(), expected.is_empty(), "{hint}");
        }
    }
}
