//! Request errors. `Display` is the `detail` of the problem document.

use std::error::Error as StdError;

use crate::operations::parameter;

mod report;
mod violation;

pub(crate) use report::ErrorReport;
pub(crate) use violation::Rule;
pub use violation::Violation;

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

pub(crate) type BoxError = Box<dyn StdError + Send + Sync>;

/// Appended to errors about a team id, which the API derives from the name of the team.
const TEAM_ID_HINT: &str = " Use the id in `x-resource-id`, which `create_team` returns if the request has `Prefer: return=headers-only`.";

fn hint_for_parameter(parameter_name: &str) -> &'static str {
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

/// Puts a description in quotes after a colon. Empty for `None`.
fn description_after_colon(description: Option<&str>) -> String {
    description.map_or_else(String::new, |description| format!(": \"{description}\""))
}

fn models_already_exist(count: usize) -> String {
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
        "The path parameter `{parameter_name}` must be 1 to {max_length} characters of `A-Z a-z 0-9 . _ ~ : @ -`. It must not be `.` or `..`, and must not contain an API key or begin with `wsk_`.{}",
        hint_for_parameter(.parameter_name)
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
    /// The path has a project that the API key does not allow, or no project.
    #[error("This API key allows only operations of these projects: `{allowed_projects}`.")]
    ProjectNotAllowed { allowed_projects: String },
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
        "An existing {resource_kind} with a different name{name_in_commas} has the id `{id}`. Use this id if that {resource_kind} is yours, or choose a name that gives a different id.",
        name_in_commas = name_in_commas(.existing_name.as_deref())
    )]
    DifferentName {
        /// What the record describes: `team` or `data store`.
        resource_kind: &'static str,
        id: String,
        /// The name of the record. `None` for anonymous callers, who must not see stored text.
        existing_name: Option<String>,
    },
    #[error(
        "A {resource_kind} with this name already exists with a different description{description_after_colon}. Nothing was changed.",
        description_after_colon = description_after_colon(.existing_description.as_deref())
    )]
    DifferentDescription {
        resource_kind: &'static str,
        id: String,
        /// The description in the record. `None` for anonymous callers.
        existing_description: Option<String>,
    },
    #[error(
        "This project already has a logging instance with the project name \"{existing_name}\". Nothing was changed."
    )]
    DifferentProjectName { existing_name: String },
    /// Models with the same model id (`modelid`) and a different number (`id`) exist. There is one
    /// violation per model.
    #[error("{} with a different `id`. Nothing was added.", models_already_exist(.0.len()))]
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
    /// Writes are throttled, and the organization asks for more than all others.
    #[error(
        "This organization sends more than the service can store now. The request is safe to retry. Send fewer requests per second."
    )]
    OrganizationShed,
}

/// Why an API key is not accepted. Only logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyRejection {
    /// The request has several `Authorization` headers.
    SeveralHeaders,
    /// The scheme is not `Bearer`.
    UnsupportedScheme,
    /// A part of the key is malformed, or the checksum is wrong.
    Malformed,
    /// There is no record with the id of the key.
    Unknown,
    WrongSecret,
    Revoked,
    Expired,
    /// The key was not issued for the current registration of its organization.
    WrongRegistration,
}

impl KeyRejection {
    /// The name in the log. Operators query by the names, so do not change them.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::SeveralHeaders => "several_headers",
            Self::UnsupportedScheme => "unsupported_scheme",
            Self::Malformed => "malformed",
            Self::Unknown => "unknown",
            Self::WrongSecret => "wrong_secret",
            Self::Revoked => "revoked",
            Self::Expired => "expired",
            Self::WrongRegistration => "wrong_registration",
        }
    }
}

impl Error {
    pub(crate) fn internal(cause: impl Into<BoxError>) -> Self {
        Self::Internal(cause.into())
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
