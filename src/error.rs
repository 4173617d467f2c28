//! Why a request can fail.

use std::error::Error as StdError;

/// Why a request was rejected or failed.
///
/// There is a variant for each case that a client may handle differently. `Display` is the text
/// that the caller reads. The cause, if there is one, is the `source` and is only logged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The event is not an HTTP request, or its body is marked as base64 but does not decode.
    #[error("The event is not an HTTP request, or its body is not valid base64.")]
    MalformedEvent,
    /// A path parameter is empty, too long, a dot segment, or contains a character that is not
    /// allowed. Has the parameter's name and its maximum length.
    #[error(
        "The path parameter `{0}` must be 1 to {1} characters of A-Z a-z 0-9 . _ ~ : @ - and must not be `.` or `..`."
    )]
    MalformedPath(&'static str, usize),
    /// The body is not JSON, with a sentence that says why.
    #[error("The request body is not JSON. {0}")]
    NotJson(String),
    /// The request has no API key.
    #[error("No API key was sent. Send `Authorization: Bearer <key>`.")]
    NoKey,
    /// The API key is malformed, unknown, expired or revoked. The text is the same for each, so that
    /// it does not reveal whether a key exists.
    #[error("This API key is not accepted. It may be mistyped, expired or revoked.")]
    KeyNotAccepted,
    /// The API key belongs to another organization.
    #[error("This API key belongs to another organization than the one in the path.")]
    OtherOrganization,
    /// The organization of the API key is disabled or was erased.
    #[error("The organization of this API key is disabled. Ask the operator to enable it.")]
    OrganizationDisabled,
    /// The API key is not allowed to call the operation of this name.
    #[error("This API key is not allowed to call `{0}`.")]
    OperationNotAllowed(&'static str),
    /// No operation has this path.
    #[error(
        "No operation exists at this path. Paths are case-sensitive and have no trailing slash."
    )]
    NoSuchPath,
    /// The organization is not registered, or an anonymous caller names one that is disabled.
    #[error("This organization does not exist.")]
    NoSuchOrganization,
    /// The team was not created, or is being removed.
    #[error("This team does not exist in the project.")]
    NoSuchTeam,
    /// The path belongs to an operation, but the method is not POST.
    #[error("Only POST is supported on this path.")]
    MethodNotAllowed,
    /// A team with this id is being removed.
    #[error("The team `{id}` is being removed. Try again later.")]
    BeingRemoved { id: String },
    /// A record with another name has the same id.
    #[error(
        "Another {kind} already has the id `{id}`.{} Choose a name that gives a different id.",
        .existing_name.as_ref().map_or(String::new(), |name| format!(" Its name is \"{name}\"."))
    )]
    OtherName {
        /// What the record is, such as `team`.
        kind: &'static str,
        id: String,
        /// Its name. `None` if an anonymous caller could read it, who must not see stored text.
        existing_name: Option<String>,
    },
    /// A record with the same name has another description.
    #[error(
        "A {kind} with this name already exists with another description. Nothing was changed."
    )]
    OtherDescription { kind: &'static str, id: String },
    /// The project's logging instance has another project name, which is this one.
    #[error(
        "This project already has a logging instance with the project name \"{0}\". Nothing was changed."
    )]
    OtherProjectName(String),
    /// Models exist with other `id`s.
    #[error(
        "{models} model{} with another `id`. Nothing was added.",
        if *.models == 1 { " already exists" } else { "s already exist" }
    )]
    ModelTaken {
        /// How many.
        models: usize,
        /// One for each of their entries in the body.
        violations: Vec<Violation>,
    },
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

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// The cause of a failure.
pub(crate) type BoxError = Box<dyn StdError + Send + Sync>;

/// A rule that a value in the body violates.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Violation {
    /// The value, as a JSON pointer in a URI fragment (RFC 6901, section 6), such as
    /// `#/usersAddingToTeam/3/userid`.
    pub(crate) pointer: String,
    pub(crate) rule: Rule,
    /// The limit of the rule, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<u64>,
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

    pub(crate) fn with_limit(self, limit: u64) -> Self {
        Self {
            limit: Some(limit),
            ..self
        }
    }
}

/// A rule, as its keyword in JSON Schema, so that programs can say it in other words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
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

    /// The stable code for programs, and the title for people (RFC 9457, section 3.1).
    pub(crate) fn code_and_title(&self) -> (&'static str, &'static str) {
        match self {
            Self::MalformedEvent => ("malformed_event", "Malformed event"),
            Self::MalformedPath(..) => ("malformed_path", "Malformed path"),
            Self::NotJson(_) => ("not_json", "Not JSON"),
            Self::NoKey | Self::KeyNotAccepted => ("unauthenticated", "API key required"),
            Self::OtherOrganization => ("other_organization", "Other organization"),
            Self::OrganizationDisabled => ("organization_disabled", "Organization disabled"),
            Self::OperationNotAllowed(_) => ("operation_not_allowed", "Operation not allowed"),
            Self::NoSuchPath => ("no_such_path", "No such path"),
            Self::NoSuchOrganization => ("no_such_organization", "No such organization"),
            Self::NoSuchTeam => ("no_such_team", "No such team"),
            Self::MethodNotAllowed => ("method_not_allowed", "Method not allowed"),
            Self::BeingRemoved { .. } => ("being_removed", "Being removed"),
            Self::OtherName { .. } | Self::OtherDescription { .. } | Self::OtherProjectName(_) => {
                ("name_taken", "Name taken")
            }
            Self::ModelTaken { .. } => ("model_taken", "Model taken"),
            Self::BodyTooLarge(_) => ("body_too_large", "Body too large"),
            Self::InvalidBody(_) => ("invalid_body", "Invalid body"),
            Self::Internal(_) => ("internal", "Internal error"),
            Self::Unavailable(_) => ("unavailable", "Unavailable"),
        }
    }

    /// Why the existing record conflicts, if that is why the request was rejected.
    pub(crate) fn reason(&self) -> Option<&'static str> {
        Some(match self {
            Self::BeingRemoved { .. } => "being_removed",
            Self::OtherName { .. } => "other_name",
            Self::OtherDescription { .. } => "other_description",
            Self::OtherProjectName(_) => "other_project_name",
            Self::ModelTaken { .. } => "other_id",
            _ => return None,
        })
    }

    /// The id of the existing record, if it has one that the path does not contain.
    pub(crate) fn resource_id(&self) -> Option<&str> {
        match self {
            Self::OtherName { id, .. }
            | Self::OtherDescription { id, .. }
            | Self::BeingRemoved { id } => Some(id),
            _ => None,
        }
    }

    /// The values in the body that cause the error. Empty if it has another cause.
    pub(crate) fn violations(&self) -> &[Violation] {
        match self {
            Self::InvalidBody(violations) | Self::ModelTaken { violations, .. } => violations,
            _ => &[],
        }
    }

    /// The chain of causes in one line, for the log. `None` if the error has no cause.
    pub(crate) fn cause(&self) -> Option<String> {
        let mut link = self.source()?;
        let mut chain = link.to_string();
        while let Some(next) = link.source() {
            chain += &format!(": {next}");
            link = next;
        }
        Some(chain)
    }
}
