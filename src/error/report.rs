//! What the response and the log line say about an error: status, code, title and more.

use serde::Serialize;

use super::{Error, Violation};

/// The `WWW-Authenticate` challenge if no API key was sent (RFC 6750, section 3).
const CHALLENGE_NO_KEY: &str = r#"Bearer realm="workspace-management""#;

/// The `WWW-Authenticate` challenge if the API key is not accepted.
const CHALLENGE_KEY_NOT_ACCEPTED: &str =
    r#"Bearer realm="workspace-management", error="invalid_token""#;

const RETRY_AFTER_ONE_SECOND: (&str, &str) = ("retry-after", "1");

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
    /// An additional header, such as `allow` for a 405.
    #[serde(skip)]
    pub(crate) header: Option<(&'static str, &'static str)>,
    /// Why the API key is not accepted, or `"none"` if no key was sent. Only for the log.
    #[serde(skip)]
    pub(crate) key_rejection: Option<&'static str>,
    /// Why the team or organization was not found, or why the body is not JSON. Logged as `reason`,
    /// but no field of the response.
    #[serde(skip)]
    pub(crate) log_only_reason: Option<&'a str>,
}

impl Error {
    /// Everything about an error except the detail and the cause.
    pub(crate) fn report(&self) -> ErrorReport<'_> {
        let (status, code, title) = self.classification();
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
            Self::NotJson(reason) => report.log_only_reason = Some(reason),
            Self::NoKey => {
                report.key_rejection = Some("none");
                report.header = Some(("www-authenticate", CHALLENGE_NO_KEY));
            }
            Self::KeyNotAccepted(rejection) => {
                report.key_rejection = Some(rejection.name());
                report.header = Some(("www-authenticate", CHALLENGE_KEY_NOT_ACCEPTED));
            }
            Self::NoSuchOrganization(reason) | Self::NoSuchTeam(reason) => {
                report.log_only_reason = Some(reason);
            }
            Self::MethodNotAllowed => report.header = Some(("allow", "POST")),
            Self::TeamBeingRemoved { id } => {
                report.conflict_reason = Some("being_removed");
                report.resource_id = Some(id);
                // In seconds. By default, `workspacectl` deletes a team 90 s after the removal
                // begins. Part of this time has usually passed, so `Retry-After` is shorter.
                report.header = Some(("retry-after", "60"));
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
            Self::Unavailable(_) => report.header = Some(RETRY_AFTER_ONE_SECOND),
            Self::OrganizationShed => {
                report.header = Some(RETRY_AFTER_ONE_SECOND);
                report.log_only_reason = Some("shed");
            }
            // These have nothing more to report.
            Self::MalformedEvent
            | Self::WrongOrganization
            | Self::OrganizationNotEnabled
            | Self::OperationNotAllowed { .. }
            | Self::ProjectNotAllowed { .. }
            | Self::NoSuchPath
            | Self::BodyTooLarge { .. }
            | Self::Internal(_) => {}
        }
        report
    }

    /// The status, the code and the title. The contract fixes the codes, which do not always match
    /// the names of the variants.
    #[rustfmt::skip] // keeps each error on one line
    fn classification(&self) -> (u16, &'static str, &'static str) {
        match self {
            Self::MalformedEvent => (400, "malformed_event", "Malformed event"),
            Self::MalformedPath { .. } => (400, "malformed_path", "Malformed path"),
            Self::NotJson(_) => (400, "not_json", "Not JSON"),
            Self::NoKey | Self::KeyNotAccepted(_) => (401, "unauthenticated", "Unauthenticated"),
            Self::WrongOrganization => (403, "other_organization", "Wrong organization"),
            Self::OrganizationNotEnabled => (403, "organization_disabled", "Organization disabled"),
            Self::OperationNotAllowed { .. } => (403, "operation_not_allowed", "Operation not allowed"),
            Self::ProjectNotAllowed { .. } => (403, "project_not_allowed", "Project not allowed"),
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
            Self::Unavailable(_) | Self::OrganizationShed => (503, "unavailable", "Unavailable"),
        }
    }
}
