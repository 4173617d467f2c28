//! Request errors, each with its detail, status, code, title and header.

use std::error::Error as StdError;

use lambda_http::http::header::{ALLOW, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use serde::Serialize;

use crate::operations::parameter;

mod key_rejection;
mod violation;

pub(crate) use key_rejection::KeyRejection;
pub(crate) use violation::{Rule, Violation};

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

pub(crate) type BoxError = Box<dyn StdError + Send + Sync>;

/// The `WWW-Authenticate` challenge if no API key was sent (RFC 6750, section 3).
const CHALLENGE_NO_KEY: &str = r#"Bearer realm="workspace-management""#;

/// The `WWW-Authenticate` challenge if the API key is not accepted.
const CHALLENGE_KEY_NOT_ACCEPTED: &str =
    r#"Bearer realm="workspace-management", error="invalid_token""#;

/// Appended to errors about a team id, which the API derives from the name of the team.
const TEAM_ID_HINT: &str = " Use the id in `x-resource-id`, which `create_team` returns if the request has `Prefer: return=headers-only`.";

fn team_id_hint(parameter_name: &str) -> &'static str {
    if parameter_name == parameter::TEAM_ID {
        TEAM_ID_HINT
    } else {
        ""
    }
}

/// Puts a name in quotes and between commas, as in `, "Docs",`. Empty for `None`.
fn name_in_commas(name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| format!(", \"{name}\","))
}

fn existing_models(count: usize) -> String {
    match count {
        1 => "1 model already exists".to_owned(),
        _ => format!("{count} models already exist"),
    }
}

/// Why a request was rejected or failed.
///
/// Each case that a client may handle differently has its own variant. `Display` is the `detail`
/// that the caller reads. The `source` is the cause, if there is one, and is only logged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("The event is not an HTTP request, or the request body is not valid base64.")]
    MalformedEvent,
    #[error(
        "The path parameter `{parameter_name}` must be 1 to {max_length} characters of `A-Z a-z 0-9 . _ ~ : @ -`. It must not be `.` or `..`, and must not begin with `wsk_`.{}",
        team_id_hint(.parameter_name)
    )]
    MalformedPath {
        parameter_name: &'static str,
        max_length: usize,
    },
    /// The body is not JSON. The string is a sentence that says why.
    #[error("The request body is not JSON. {0}")]
    NotJson(String),
    #[error("No API key was sent. Send `Authorization: Bearer <key>`.")]
    NoKey,
    /// The API key is not accepted. The detail is the same for every rejection, so that a response
    /// does not reveal whether an API key exists.
    #[error("This API key is not accepted. It may be mistyped, expired or revoked.")]
    KeyNotAccepted(KeyRejection),
    #[error("This API key does not belong to the organization in the path.")]
    WrongOrganization,
    /// The organization of the API key is disabled or was erased.
    #[error(
        "The organization of this API key is disabled or no longer exists. Contact the operator."
    )]
    OrganizationNotEnabled,
    #[error("This API key is not allowed to call `{operation_name}`.")]
    OperationNotAllowed { operation_name: &'static str },
    #[error("No operation has this path. Paths are case-sensitive and have no trailing slash.")]
    NoSuchPath,
    /// An anonymous caller's organization is disabled or not registered. The log says which.
    #[error("This organization does not exist.")]
    NoSuchOrganization(&'static str),
    /// The team does not exist or is being removed. The log says which.
    #[error("This team does not exist in the project.{TEAM_ID_HINT}")]
    NoSuchTeam(&'static str),
    #[error("Only POST is supported on this path.")]
    MethodNotAllowed,
    /// `create_team` found the team, but the team is being removed.
    #[error("The team `{id}` is being removed. Try again later.")]
    TeamBeingRemoved { id: String },
    /// The id derived from the name belongs to a record with a different name.
    #[error(
        "An existing {resource} with a different name{name_in_commas} has the id `{id}`. Use this id if that {resource} is yours, or choose a name that gives a different id.",
        name_in_commas = name_in_commas(.existing_name.as_deref())
    )]
    DifferentName {
        /// What the record describes: `team` or `data store`.
        resource: &'static str,
        id: String,
        /// The name of the record. `None` for anonymous callers, who must not see stored text.
        existing_name: Option<String>,
    },
    #[error(
        "A {resource} with this name already exists with a different description. Nothing was changed."
    )]
    DifferentDescription { resource: &'static str, id: String },
    #[error(
        "This project already has a logging instance with the project name \"{existing_name}\". Nothing was changed."
    )]
    DifferentProjectName { existing_name: String },
    /// Models with the same model id (`modelid`) and a different number (`id`) exist. There is one
    /// violation per model.
    #[error("{} with a different `id`. Nothing was added.", existing_models(.0.len()))]
    DifferentModelNumbers(Vec<Violation>),
    #[error("The request body is larger than {max_bytes} bytes.")]
    BodyTooLarge { max_bytes: usize },
    /// The body is JSON, but values in it violate rules. Contains every violation.
    #[error("The request body has {} validation error{}.", .0.len(), if .0.len() == 1 { "" } else { "s" })]
    InvalidBody(Vec<Violation>),
    /// A defect or a misconfiguration. Retrying does not help.
    #[error("Internal error. Quote the request id when you report it.")]
    Internal(#[source] BoxError),
    /// DynamoDB throttled the request, reported a conflict with a concurrent transaction, failed or
    /// took too long. A retry is safe and may help.
    #[error("The service is temporarily unavailable. The request is safe to retry.")]
    Unavailable(#[source] BoxError),
}

/// What the response and the log line say about an error, apart from `detail`.
#[derive(Default, Serialize)]
pub(crate) struct ErrorReport<'a> {
    /// The human-readable title (RFC 9457, section 3.1).
    pub(crate) title: &'static str,
    pub(crate) status: u16,
    /// The stable, machine-readable code.
    pub(crate) code: &'static str,
    /// Why the request conflicts with the existing record. Only for a 409.
    #[serde(rename = "reason", skip_serializing_if = "Option::is_none")]
    pub(crate) conflict_reason: Option<&'static str>,
    /// The id of the existing record, if it is derived from a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resource_id: Option<&'a str>,
    /// The name of a malformed path parameter.
    #[serde(rename = "parameter", skip_serializing_if = "Option::is_none")]
    pub(crate) parameter_name: Option<&'static str>,
    /// The values in the body that cause the error. `response::Problem` serializes them last.
    #[serde(skip)]
    pub(crate) violations: &'a [Violation],
    /// An additional header, such as `Allow` for a 405. `Retry-After` is in seconds.
    #[serde(skip)]
    pub(crate) header: Option<(HeaderName, &'static str)>,
    /// Why the API key is not accepted, or `"none"` if no key was sent. Only for the log.
    #[serde(skip)]
    pub(crate) key_rejection: Option<&'static str>,
    /// Why the team or organization was not found, or why the body is not JSON. Logged as `reason`.
    #[serde(skip)]
    pub(crate) log_reason: Option<&'a str>,
}

impl Error {
    pub(crate) fn internal(cause: impl Into<BoxError>) -> Self {
        Self::Internal(cause.into())
    }

    /// Everything about an error except the detail and the cause.
    pub(crate) fn report(&self) -> ErrorReport<'_> {
        let (status, code, title) = self.status_code_and_title();
        let mut report = ErrorReport {
            status,
            code,
            title,
            ..ErrorReport::default()
        };
        match self {
            Self::MalformedPath { parameter_name, .. } => {
                report.parameter_name = Some(parameter_name);
            }
            Self::NotJson(reason) => report.log_reason = Some(reason),
            Self::NoKey => {
                report.key_rejection = Some("none");
                report.header = Some((WWW_AUTHENTICATE, CHALLENGE_NO_KEY));
            }
            Self::KeyNotAccepted(rejection) => {
                report.key_rejection = Some(rejection.name());
                report.header = Some((WWW_AUTHENTICATE, CHALLENGE_KEY_NOT_ACCEPTED));
            }
            Self::NoSuchOrganization(reason) | Self::NoSuchTeam(reason) => {
                report.log_reason = Some(reason);
            }
            Self::MethodNotAllowed => report.header = Some((ALLOW, "POST")),
            Self::TeamBeingRemoved { id } => {
                report.conflict_reason = Some("being_removed");
                report.resource_id = Some(id);
                // By default, `workspacectl` deletes a team 90 s after the removal begins. Part of
                // this time has usually passed, so `Retry-After` is shorter.
                report.header = Some((RETRY_AFTER, "60"));
            }
            Self::DifferentName { id, .. } => {
                report.conflict_reason = Some("other_name");
                report.resource_id = Some(id);
            }
            Self::DifferentDescription { id, .. } => {
                report.conflict_reason = Some("other_description");
                report.resource_id = Some(id);
            }
            Self::DifferentProjectName { .. } => {
                report.conflict_reason = Some("other_project_name");
            }
            Self::DifferentModelNumbers(violations) => {
                report.conflict_reason = Some("other_id");
                report.violations = violations;
            }
            Self::InvalidBody(violations) => report.violations = violations,
            Self::Unavailable(_) => report.header = Some((RETRY_AFTER, "1")),
            _ => {}
        }
        report
    }

    /// The status, the code and the title. The contract fixes the codes, which do not always match
    /// the names of the variants.
    #[rustfmt::skip] // keeps each error on one line
    fn status_code_and_title(&self) -> (u16, &'static str, &'static str) {
        match self {
            Self::MalformedEvent => (400, "malformed_event", "Malformed event"),
            Self::MalformedPath { .. } => (400, "malformed_path", "Malformed path"),
            Self::NotJson(_) => (400, "not_json", "Not JSON"),
            Self::NoKey | Self::KeyNotAccepted(_) => (401, "unauthenticated", "Unauthenticated"),
            Self::WrongOrganization => (403, "other_organization", "Wrong organization"),
            Self::OrganizationNotEnabled => (403, "organization_disabled", "Organization disabled"),
            Self::OperationNotAllowed { .. } => (403, "operation_not_allowed", "Operation not allowed"),
            Self::NoSuchPath => (404, "no_such_path", "No such path"),
            Self::NoSuchOrganization(_) => (404, "no_such_organization", "No such organization"),
            Self::NoSuchTeam(_) => (404, "no_such_team", "No such team"),
            Self::MethodNotAllowed => (405, "method_not_allowed", "Method not allowed"),
            Self::TeamBeingRemoved { .. } => (409, "being_removed", "Team being removed"),
            Self::DifferentName { .. } | Self::DifferentDescription { .. } => (409, "name_taken", "Name taken"),
            // The contract requires this code, although no name is taken.
            Self::DifferentProjectName { .. } => (409, "name_taken", "Name taken"),
            Self::DifferentModelNumbers(_) => (409, "model_taken", "Model taken"),
            Self::BodyTooLarge { .. } => (413, "body_too_large", "Body too large"),
            Self::InvalidBody(_) => (422, "invalid_body", "Invalid body"),
            Self::Internal(_) => (500, "internal", "Internal error"),
            Self::Unavailable(_) => (503, "unavailable", "Unavailable"),
        }
    }

    /// The chain of causes, on one line for the log. `None` if the error has no cause.
    pub(crate) fn cause(&self) -> Option<String> {
        let mut cause = self.source()?;
        let mut chain = cause.to_string();
        while let Some(next) = cause.source() {
            chain += &format!(": {next}");
            cause = next;
        }
        Some(chain)
    }
}
