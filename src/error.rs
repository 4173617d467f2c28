//! Why a request can fail: every error with its status, code, title and header.

use std::{error::Error as StdError, iter};

use lambda_http::http::header::{ALLOW, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use serde::Serialize;

/// The challenge of a 401 if no key was sent (RFC 6750, section 3).
const CHALLENGE: &str = r#"Bearer realm="workspace-management""#;

/// The challenge of a 401 if a key was sent.
const INVALID_TOKEN: &str = r#"Bearer realm="workspace-management", error="invalid_token""#;

/// Where a client gets the id of a team, because it cannot choose one.
const SOURCE_OF_TEAM_IDS: &str = " Use the id that `create_team` returns in `x-resource-id`.";

/// Why a request was rejected or failed.
///
/// There is a variant for each case that a client may handle differently. `Display` is the text
/// that the caller reads. The cause, if there is one, is the `source` and is only logged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("The event is not an HTTP request, or its body is not valid base64.")]
    MalformedEvent,
    /// A path parameter is not valid. Has its name and its maximum length.
    #[error(
        "The path parameter `{}` must be 1 to {} characters of A-Z a-z 0-9 . _ ~ : @ - and must not be `.` or `..`, or begin with `wsk_`.{}",
        .0, .1, if *.0 == "team_id" { SOURCE_OF_TEAM_IDS } else { "" }
    )]
    MalformedPath(&'static str, usize),
    /// The body is not JSON, with a sentence that says why.
    #[error("The request body is not JSON. {0}")]
    NotJson(String),
    #[error("No API key was sent. Send `Authorization: Bearer <key>`.")]
    NoKey,
    /// The API key is malformed, unknown, expired, revoked, of an earlier registration, or has the wrong
    /// secret. Has the reason for the log. The text is the same for each, so that it does not reveal
    /// whether a key exists.
    #[error("This API key is not accepted. It may be mistyped, expired or revoked.")]
    KeyNotAccepted(&'static str),
    #[error("This API key belongs to another organization than the one in the path.")]
    OtherOrganization,
    /// The organization of the API key is disabled or was erased.
    #[error("The organization of this API key is disabled. Ask the operator to enable it.")]
    OrganizationDisabled,
    /// The API key is not allowed to call the operation of this name.
    #[error("This API key is not allowed to call `{0}`.")]
    OperationNotAllowed(&'static str),
    #[error(
        "No operation exists at this path. Paths are case-sensitive and have no trailing slash."
    )]
    NoSuchPath,
    /// An anonymous caller names an organization that is not registered, or is disabled. Has the reason
    /// for the log.
    #[error("This organization does not exist.")]
    NoSuchOrganization(&'static str),
    /// The team does not exist, or is being removed. Has the reason for the log.
    #[error("This team does not exist in the project.{SOURCE_OF_TEAM_IDS}")]
    NoSuchTeam(&'static str),
    #[error("Only POST is supported on this path.")]
    MethodNotAllowed,
    /// A team with this id is being removed.
    #[error("The team `{id}` is being removed. Try again later.")]
    BeingRemoved { id: String },
    /// A record with another name has the same id.
    #[error(
        "An existing {kind} with a different name{} has the id `{id}`. Use this id if it is your {kind}, or choose a name that gives a different id.",
        .existing_name.as_ref().map_or(String::new(), |name| format!(", \"{name}\","))
    )]
    OtherName {
        /// What the record is, such as `team`.
        kind: &'static str,
        id: String,
        /// Its name. `None` for anonymous callers, who must not see stored text.
        existing_name: Option<String>,
    },
    /// A record with the same name has another description.
    #[error(
        "A {kind} with this name already exists with another description. Nothing was changed."
    )]
    OtherDescription { kind: &'static str, id: String },
    /// The project has a logging instance with another project name, which this variant contains.
    #[error(
        "This project already has a logging instance with the project name \"{0}\". Nothing was changed."
    )]
    OtherProjectName(String),
    /// Models with the same `modelid` exist, but their `id` (a number) is different. Has a violation for
    /// each of them.
    #[error(
        "{} model{} with another `id`. Nothing was added.",
        .0.len(), if .0.len() == 1 { " already exists" } else { "s already exist" }
    )]
    ModelTaken(Vec<Violation>),
    /// The body is too large, with the maximum size in bytes.
    #[error("The request body is larger than {0} bytes.")]
    BodyTooLarge(usize),
    /// The body is JSON but invalid, with every violation.
    #[error("The request body has {} validation error{}.", .0.len(), if .0.len() == 1 { "" } else { "s" })]
    InvalidBody(Vec<Violation>),
    /// A bug or a misconfiguration. A retry does not help.
    #[error("Internal error. Quote the request id when you report it.")]
    Internal(#[source] BoxError),
    /// DynamoDB throttles the request, reports a conflict or a failure, or takes too long. A retry
    /// is safe and may help.
    #[error("The service is temporarily unavailable. The request is safe to retry.")]
    Unavailable(#[source] BoxError),
}

/// What the problem document and the log line of an error contain apart from the text.
#[derive(Default, Serialize)]
pub(crate) struct Facts<'a> {
    /// The title for people (RFC 9457, section 3.1).
    pub(crate) title: &'static str,
    /// The HTTP status.
    pub(crate) status: u16,
    /// The stable code for programs.
    pub(crate) code: &'static str,
    /// Why the existing record prevents the request. Only for a 409.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'static str>,
    /// The id of the existing record, unless the client sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resource_id: Option<&'a str>,
    /// The name of a malformed path parameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parameter: Option<&'static str>,
    /// The values in the body that cause the error.
    #[serde(skip)]
    pub(crate) violations: &'a [Violation],
    /// The header that HTTP requires or recommends. `Retry-After` is in seconds.
    #[serde(skip)]
    pub(crate) header: Option<(HeaderName, &'static str)>,
    /// What is wrong with the credential. Only for the log.
    #[serde(skip)]
    pub(crate) credential: Option<&'static str>,
    /// Why a team or an organization does not exist, or a body is not JSON. Only for the log.
    #[serde(skip)]
    pub(crate) log_reason: Option<&'a str>,
}

impl<'a> Facts<'a> {
    fn new(status: u16, code: &'static str, title: &'static str) -> Self {
        Self {
            status,
            code,
            title,
            ..Self::default()
        }
    }

    /// A 409, with the reason and the id of the existing record.
    fn conflict(
        code: &'static str,
        title: &'static str,
        reason: &'static str,
        resource_id: Option<&'a String>,
    ) -> Self {
        Self {
            reason: Some(reason),
            resource_id: resource_id.map(String::as_str),
            ..Self::new(409, code, title)
        }
    }
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

pub(crate) type BoxError = Box<dyn StdError + Send + Sync>;

/// A rule that a value in the body violates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Violation {
    /// The value, as a JSON pointer in a URI fragment (RFC 6901, section 6), such as
    /// `#/usersAddingToTeam/3/userid`.
    pub(crate) pointer: String,
    pub(crate) rule: Rule,
    /// The limit of the rule, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<i64>,
    /// The rule, as the rest of a sentence that starts with the value, such as `is required`.
    pub(crate) detail: String,
}

impl Violation {
    /// A violation whose place is not known yet.
    pub(crate) fn new(rule: Rule, detail: impl Into<String>) -> Self {
        Self {
            pointer: String::new(),
            rule,
            limit: None,
            detail: detail.into(),
        }
    }

    pub(crate) fn with_limit(self, limit: i64) -> Self {
        let limit = Some(limit);
        Self { limit, ..self }
    }
}

/// A rule, as its keyword in JSON Schema, so that a client can show a text of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Rule {
    Required,
    Type,
    MinLength,
    MaxLength,
    Pattern,
    MinItems,
    MaxItems,
    Minimum,
    Maximum,
    /// Not in JSON Schema: the value contradicts another entry or a stored record.
    Conflict,
}

impl Error {
    pub(crate) fn internal(cause: impl Into<BoxError>) -> Self {
        Self::Internal(cause.into())
    }

    /// The table of all errors. A new variant does not compile without a row.
    #[rustfmt::skip] // keeps each error on one line
    pub(crate) fn facts(&self) -> Facts<'_> {
        match self {
            Self::MalformedEvent => Facts::new(400, "malformed_event", "Malformed event"),
            Self::MalformedPath(name, _) => Facts { parameter: Some(name), ..Facts::new(400, "malformed_path", "Malformed path") },
            Self::NotJson(reason) => Facts { log_reason: Some(reason), ..Facts::new(400, "not_json", "Not JSON") },
            Self::NoKey => Facts { credential: Some("none"), header: Some((WWW_AUTHENTICATE, CHALLENGE)), ..Facts::new(401, "unauthenticated", "API key required") },
            Self::KeyNotAccepted(cause) => Facts { credential: Some(cause), header: Some((WWW_AUTHENTICATE, INVALID_TOKEN)), ..Facts::new(401, "unauthenticated", "API key required") },
            Self::OtherOrganization => Facts::new(403, "other_organization", "Other organization"),
            Self::OrganizationDisabled => Facts::new(403, "organization_disabled", "Organization disabled"),
            Self::OperationNotAllowed(_) => Facts::new(403, "operation_not_allowed", "Operation not allowed"),
            Self::NoSuchPath => Facts::new(404, "no_such_path", "No such path"),
            Self::NoSuchOrganization(reason) => Facts { log_reason: Some(reason), ..Facts::new(404, "no_such_organization", "No such organization") },
            Self::NoSuchTeam(reason) => Facts { log_reason: Some(reason), ..Facts::new(404, "no_such_team", "No such team") },
            Self::MethodNotAllowed => Facts { header: Some((ALLOW, "POST")), ..Facts::new(405, "method_not_allowed", "Method not allowed") },
            // A removal takes 90 s by default, a part of which has passed.
            Self::BeingRemoved { id } => Facts { header: Some((RETRY_AFTER, "60")), ..Facts::conflict("being_removed", "Being removed", "being_removed", Some(id)) },
            Self::OtherName { id, .. } => Facts::conflict("name_taken", "Name taken", "other_name", Some(id)),
            Self::OtherDescription { id, .. } => Facts::conflict("name_taken", "Name taken", "other_description", Some(id)),
            Self::OtherProjectName(_) => Facts::conflict("name_taken", "Name taken", "other_project_name", None),
            Self::ModelTaken(violations) => Facts { violations, ..Facts::conflict("model_taken", "Model taken", "other_id", None) },
            Self::BodyTooLarge(_) => Facts::new(413, "body_too_large", "Body too large"),
            Self::InvalidBody(violations) => Facts { violations, ..Facts::new(422, "invalid_body", "Invalid body") },
            Self::Internal(_) => Facts::new(500, "internal", "Internal error"),
            Self::Unavailable(_) => Facts { header: Some((RETRY_AFTER, "1")), ..Facts::new(503, "unavailable", "Unavailable") },
        }
    }

    /// The chain of causes in one line, for the log. `None` if the error has no cause.
    pub(crate) fn cause(&self) -> Option<String> {
        let causes = iter::successors(self.source(), |cause| (*cause).source());
        let chain: Vec<_> = causes.map(ToString::to_string).collect();
        (!chain.is_empty()).then(|| chain.join(": "))
    }
}
