//! Authenticates and authorizes a request: turns its `Authorization` header into a `Caller`.

use std::{sync::Arc, time::SystemTime};

use deserr::Deserr;
use serde::{Deserialize, Serialize};

use crate::{
    api_key::{ApiKey, KeyRecord},
    body::{self, Violations},
    error::{CredentialProblem, Error, Result},
    operation::Operation,
    request::Request,
    store::{Store, timestamp},
    values::{Identifier, PathSegment},
};

/// The `created_by` of records that anonymous callers create.
const ANONYMOUS: &str = "anonymous";

/// Whether anonymous callers may call the operations that allow them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnonymousOperations {
    /// Allowed for registered organizations, as in the contract (`openapi.yaml`).
    Allowed,
    /// Every operation requires an API key.
    Denied,
}

/// A caller who may call the requested operation for one organization.
///
/// Every operation requires one and only [`Call::authorize`] creates one, so that `route` cannot
/// forget to authorize a request.
pub(crate) struct Caller {
    /// The organization whose records the caller may write.
    pub(crate) organization: Identifier,
    /// The id of the API key, or `anonymous`.
    pub(crate) id: String,
    /// When the function received the request.
    pub(crate) received_at: SystemTime,
    request_id: String,
}

impl Caller {
    fn new(organization: Identifier, id: &str, request: &Request<'_>) -> Self {
        Self {
            organization,
            id: id.to_owned(),
            received_at: request.received_at,
            request_id: request.id.to_owned(),
        }
    }

    /// The audit attributes of a record that the request creates.
    pub(crate) fn audit(&self) -> Audit {
        Audit {
            created_at: timestamp(self.received_at),
            created_by: self.id.clone(),
            request_id: self.request_id.clone(),
        }
    }
}

/// When, by whom and in which request a record was created. The `request_id` of a bot's voice is
/// that of the last change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Audit {
    /// RFC 3339, in UTC, with milliseconds.
    pub(crate) created_at: String,
    /// The id of an API key, or `anonymous`.
    pub(crate) created_by: String,
    pub(crate) request_id: String,
}

/// A request, what is needed to authorize it, and what the log shows about it.
pub(crate) struct Call<'a> {
    pub(crate) store: &'a Store,
    pub(crate) anonymous_operations: AnonymousOperations,
    pub(crate) request: Request<'a>,
    /// The operation that the path names.
    pub(crate) operation: Option<Operation>,
    /// The organization of the API key or of the anonymous caller. Like `key_id`, it is set as soon
    /// as it is known, so that the log of a rejected request includes it.
    pub(crate) organization: Option<String>,
    /// The id of the API key that was sent, even if the key is not valid, or `anonymous`.
    pub(crate) key_id: Option<String>,
    /// The parameters in the path, by their names in the contract.
    pub(crate) path_parameters: Vec<(&'static str, String)>,
    /// The number of entries in the body, without duplicates, if it is a list.
    pub(crate) entries: Option<usize>,
}

impl Call<'_> {
    /// Parses the segment of the path that has the parameter of this name in the contract, and
    /// keeps it for the log.
    ///
    /// # Errors
    /// [`Error::MalformedPath`]
    pub(crate) fn path_parameter<const MAX: usize>(
        &mut self,
        name: &'static str,
        segment: &str,
    ) -> Result<PathSegment<MAX>> {
        let value = PathSegment::new(segment).ok_or(Error::MalformedPath(name, MAX))?;
        self.path_parameters.push((name, segment.to_owned()));
        Ok(value)
    }

    /// Checks the method, and whether the sender of the request may call an operation.
    /// `organization` is the one in the path, if the path has one.
    ///
    /// # Errors
    /// [`Error::MethodNotAllowed`], [`Error::Unauthenticated`], [`Error::OtherOrganization`],
    /// [`Error::OperationNotAllowed`] or [`Error::NoSuchOrganization`].
    pub(crate) async fn authorize(
        &mut self,
        operation: Operation,
        organization: Option<&Identifier>,
    ) -> Result<Caller> {
        self.operation = Some(operation);
        if self.request.method != "POST" {
            return Err(Error::MethodNotAllowed);
        }
        let Some(key) = self.verified_key().await? else {
            return self.authorize_anonymous(operation, organization).await;
        };
        self.organization = Some(key.org_id.clone());
        let Some(own) = Identifier::new(&key.org_id) else {
            return Err(Error::internal("the API key has an invalid org_id"));
        };
        if organization.is_some_and(|organization| *organization != own) {
            return Err(Error::OtherOrganization);
        }
        if !key.allows(operation) {
            return Err(Error::OperationNotAllowed(operation.name()));
        }
        Ok(Caller::new(own, &key.key_id, &self.request))
    }

    async fn authorize_anonymous(
        &mut self,
        operation: Operation,
        organization: Option<&Identifier>,
    ) -> Result<Caller> {
        let is_allowed = operation.allows_anonymous()
            && self.anonymous_operations == AnonymousOperations::Allowed;
        let (true, Some(organization)) = (is_allowed, organization) else {
            return Err(Error::Unauthenticated(CredentialProblem::Missing));
        };
        let now = self.request.received_at;
        if !self.store.organization_exists(organization, now).await? {
            return Err(Error::NoSuchOrganization);
        }
        self.organization = Some(organization.as_str().to_owned());
        self.key_id = Some(ANONYMOUS.to_owned());
        Ok(Caller::new(organization.clone(), ANONYMOUS, &self.request))
    }

    /// The record of the API key, if it is valid. `None` if the request has no credential.
    async fn verified_key(&mut self) -> Result<Option<Arc<KeyRecord>>> {
        let now = self.request.received_at;
        let rejected = Error::Unauthenticated(CredentialProblem::Rejected);
        let credential = match *self.request.authorization {
            [] => return Ok(None),
            [value] => bearer_token(value),
            _ => None,
        };
        if credential == Some("") {
            return Ok(None);
        }
        let Some(key) = credential.and_then(ApiKey::parse) else {
            return Err(rejected);
        };
        self.key_id = Some(key.id().to_owned());
        match self.store.api_key(key.id(), now).await? {
            Some(record)
                if key.digest().matches(&record.secret_sha256) && record.is_valid_at(now) =>
            {
                Ok(Some(record))
            }
            _ => Err(rejected),
        }
    }

    /// Parses the body. `route` does so after authorization: others see no violations.
    pub(crate) fn body<T: Deserr<Violations>>(&self) -> Result<T> {
        body::parse(&self.request.body)
    }
}

/// The token in `Bearer <token>`, with the scheme in any case, or the whole value if it has no
/// scheme. Empty if there is only the scheme or nothing, which some clients send for an unset key.
/// `None` if the value has another scheme.
fn bearer_token(value: &str) -> Option<&str> {
    let is_bearer = |scheme: &str| scheme.eq_ignore_ascii_case("bearer");
    match value.trim().split_once(' ') {
        Some((scheme, token)) => is_bearer(scheme).then(|| token.trim_start()),
        None if is_bearer(value.trim()) => Some(""),
        None => Some(value.trim()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn bearer_token_accepts_the_scheme_in_any_case_or_no_scheme() {
        for value in ["Bearer abc", "bearer abc", "BEARER   abc ", "abc", " abc "] {
            assert_eq!(bearer_token(value), Some("abc"), "{value:?}");
        }
        for value in ["Basic abc", "Bearerabc abc"] {
            assert_eq!(bearer_token(value), None, "{value:?}");
        }
        for value in ["", " ", "Bearer", "bearer "] {
            assert_eq!(bearer_token(value), Some(""), "{value:?}");
        }
    }

    #[test]
    fn audit_attributes_have_the_time_of_the_request() {
        let caller = Caller {
            organization: Identifier::new("acme").unwrap(),
            id: "acmeDemoKey1".to_owned(),
            request_id: "request-1".to_owned(),
            received_at: SystemTime::UNIX_EPOCH + Duration::from_millis(1_767_225_600_123),
        };
        let audit = caller.audit();
        assert_eq!(audit.created_at, "2026-01-01T00:00:00.123Z");
        assert_eq!(audit.created_by, "acmeDemoKey1");
        assert_eq!(audit.request_id, "request-1");
    }
}
