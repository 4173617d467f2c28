//! Every way a request can fail, with its status and its code in one table.

use std::error::Error as StdError;

use lambda_http::http::StatusCode;

/// Why a request was refused or could not be carried out.
///
/// A variant stands for a decision that a client can take, not for a cause. `Display` is what the caller may read;
/// the cause, where there is one, is the `source` and goes to the log alone.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Lambda was given something that is no HTTP request, or whose body is not the base64 it claims to be.
    #[error(
        "The event is not an HTTP request from API Gateway, a load balancer or a function URL."
    )]
    MalformedEvent,
    /// A path parameter is empty, too long, or holds another character than an identifier may.
    #[error(
        "`{parameter}` in the path must be 1 to {longest} characters of A-Z a-z 0-9 . _ ~ : @ -"
    )]
    MalformedPath {
        /// The parameter by the contract's name.
        parameter: &'static str,
        /// How many characters it may have.
        longest: usize,
    },
    /// The body is not JSON, with the parser's reason.
    #[error("The body is not JSON: {0}.")]
    NotJson(String),
    /// The credential is missing, malformed, unknown, expired or revoked: a caller cannot tell which.
    #[error("A valid key is needed: send `Authorization: Bearer <key>`.")]
    Unauthenticated {
        /// Whether a credential was sent at all (RFC 6750 answers the two differently).
        sent: bool,
    },
    /// A valid key, but of another organization than the path's.
    #[error("This key belongs to another organization.")]
    OtherOrganization,
    /// A valid key that may not call this operation.
    #[error("This key is not allowed to call this operation.")]
    OperationNotAllowed,
    /// No operation has this path.
    #[error("There is no operation at this path.")]
    NoSuchPath,
    /// Nobody has registered the organization.
    #[error("There is no such organization.")]
    NoSuchOrganization,
    /// Nobody has created the team.
    #[error("There is no such team in this project.")]
    NoSuchTeam,
    /// A known path, called with another method than POST.
    #[error("This path takes POST alone.")]
    MethodNotAllowed,
    /// Something different is there under this name already.
    #[error("Something else is there already: with other content, or made by another caller.")]
    NameTaken,
    /// A model is in the organization already under another `id`.
    #[error(
        "A model of this request is in the organization already, with another `id`. Nothing was added."
    )]
    ModelTaken,
    /// The body is larger than the service reads.
    #[error("The body is larger than {limit} bytes.")]
    BodyTooLarge {
        /// How many bytes a body may have.
        limit: usize,
    },
    /// JSON that breaks rules of the body, with every one of them.
    #[error("The body breaks {} of its rules.", .0.len())]
    InvalidBody(Vec<Violation>),
    /// A defect or a misconfiguration: repeating the request will not help.
    #[error("The service failed. The request id finds the reason in its log.")]
    Internal(#[source] Cause),
    /// DynamoDB throttles, conflicts, fails or is too slow: repeating the request is safe and may help.
    #[error("The service is busy or cut off for a moment. It is safe to send the request again.")]
    Unavailable(#[source] Cause),
}

/// What lies behind a failure of the service, for the log.
pub type Cause = Box<dyn StdError + Send + Sync>;

/// One rule that a body breaks.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Violation {
    /// Where: a JSON pointer as a URI fragment (RFC 6901, section 6), such as `#/usersAddingToTeam/3/userid`.
    pub pointer: String,
    /// Which rule, in a sentence for the developer who sent it.
    pub detail: String,
}

/// How many seconds a client should wait before it sends a request again that was answered 503.
pub const RETRY_AFTER_SECONDS: u16 = 1;

impl Error {
    /// The status, the stable code for programs, and the title (RFC 9457) of this failure.
    pub fn kind(&self) -> (StatusCode, &'static str, &'static str) {
        use StatusCode as Status;
        match self {
            Self::MalformedEvent => (Status::BAD_REQUEST, "malformed_event", "Malformed event"),
            Self::MalformedPath { .. } => (Status::BAD_REQUEST, "malformed_path", "Malformed path"),
            Self::NotJson(_) => (Status::BAD_REQUEST, "not_json", "Not JSON"),
            Self::Unauthenticated { .. } => (Status::UNAUTHORIZED, "unauthenticated", "Key needed"),
            Self::OtherOrganization => (
                Status::FORBIDDEN,
                "other_organization",
                "Other organization",
            ),
            Self::OperationNotAllowed => (
                Status::FORBIDDEN,
                "operation_not_allowed",
                "Operation not allowed",
            ),
            Self::NoSuchPath => (Status::NOT_FOUND, "no_such_path", "No such path"),
            Self::NoSuchOrganization => (
                Status::NOT_FOUND,
                "no_such_organization",
                "No such organization",
            ),
            Self::NoSuchTeam => (Status::NOT_FOUND, "no_such_team", "No such team"),
            Self::MethodNotAllowed => (
                Status::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                "Method not allowed",
            ),
            Self::NameTaken => (Status::CONFLICT, "name_taken", "Name taken"),
            Self::ModelTaken => (Status::CONFLICT, "model_taken", "Model taken"),
            Self::BodyTooLarge { .. } => (
                Status::PAYLOAD_TOO_LARGE,
                "body_too_large",
                "Body too large",
            ),
            Self::InvalidBody(_) => (Status::UNPROCESSABLE_ENTITY, "invalid_body", "Invalid body"),
            Self::Internal(_) => (
                Status::INTERNAL_SERVER_ERROR,
                "internal",
                "Internal failure",
            ),
            Self::Unavailable(_) => (Status::SERVICE_UNAVAILABLE, "unavailable", "Unavailable"),
        }
    }

    /// The whole chain of causes in one line, for the log; `None` where the answer says all there is.
    pub fn cause(&self) -> Option<String> {
        let mut link = self.source()?;
        let mut chain = link.to_string();
        while let Some(next) = link.source() {
            chain.push_str(": ");
            chain.push_str(&next.to_string());
            link = next;
        }
        Some(chain)
    }
}
