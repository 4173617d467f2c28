//! Authenticates and authorizes a request: turns its `Authorization` header into a `Caller`.

use std::{sync::Arc, time::SystemTime};

use deserr::Deserr;
use serde::{Deserialize, Serialize};

use crate::{
    api_key::{ApiKey, KeyRecord},
    body::{self, Violations},
    error::{Error, Result},
    event::Request,
    operation::Operation,
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

/// When, by whom and in which request a record was created.
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
    anonymous_operations: AnonymousOperations,
    pub(crate) request: Request<'a>,
    credential: Credential<'a>,
    /// The operation that the path names.
    pub(crate) operation: Option<Operation>,
    /// The organization of the API key or of the anonymous caller. It is set as soon as it is known,
    /// so that the log of a rejected request includes it.
    pub(crate) organization: Option<String>,
    /// The id of the API key that was sent, even if the key is not valid, or `anonymous`.
    pub(crate) key_id: Option<&'a str>,
    /// The parameters in the path, by their names in the contract.
    pub(crate) path_parameters: Vec<(&'static str, String)>,
    /// The number of entries in the body, without duplicates, if it is a list.
    pub(crate) entries: Option<usize>,
}

/// What the `Authorization` headers of a request contain.
#[derive(Clone, Copy)]
enum Credential<'a> {
    /// Nothing, or a header without a key, which some clients send if none is configured.
    Missing,
    Malformed,
    Key(ApiKey<'a>),
}

impl<'a> Credential<'a> {
    /// Parses `Bearer <key>`, with the scheme in any case, or a key without a scheme.
    fn parse(authorization: &[&'a str]) -> Self {
        let [value] = authorization else {
            return if authorization.is_empty() {
                Self::Missing
            } else {
                Self::Malformed
            };
        };
        let is_bearer = |text: &str| text.eq_ignore_ascii_case("bearer");
        let key = match value.trim().split_once(' ') {
            Some((scheme, key)) if is_bearer(scheme) => key.trim_start(),
            Some(_) => return Self::Malformed,
            None if is_bearer(value.trim()) => "",
            None => value.trim(),
        };
        match ApiKey::parse(key) {
            Some(key) => Self::Key(key),
            None if key.is_empty() => Self::Missing,
            None => Self::Malformed,
        }
    }
}

impl<'a> Call<'a> {
    pub(crate) fn new(
        store: &'a Store,
        anonymous_operations: AnonymousOperations,
        request: Request<'a>,
    ) -> Self {
        let credential = Credential::parse(&request.authorization);
        Self {
            store,
            anonymous_operations,
            request,
            credential,
            operation: None,
            organization: None,
            key_id: match credential {
                Credential::Key(key) => Some(key.id()),
                _ => None,
            },
            path_parameters: Vec::with_capacity(3),
            entries: None,
        }
    }

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
    /// [`Error::MethodNotAllowed`], [`Error::NoKey`], [`Error::KeyNotAccepted`],
    /// [`Error::OtherOrganization`], [`Error::OrganizationDisabled`],
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
        let Some((key, is_enabled)) = self.verified_key(organization).await? else {
            return self.authorize_anonymous(operation, organization).await;
        };
        self.organization = Some(key.org_id.clone());
        let own = Identifier::new(&key.org_id)
            .ok_or_else(|| Error::internal("the API key has an invalid org_id"))?;
        if organization.is_some_and(|organization| *organization != own) {
            return Err(Error::OtherOrganization);
        }
        let now = self.request.received_at;
        let is_enabled = match is_enabled {
            Some(is_enabled) => is_enabled,
            None => self.store.organization_is_enabled(&own, now).await?,
        };
        if !is_enabled {
            return Err(Error::OrganizationDisabled);
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
            return Err(Error::NoKey);
        };
        let now = self.request.received_at;
        let is_enabled = self.store.organization_is_enabled(organization, now);
        if !is_enabled.await? {
            return Err(Error::NoSuchOrganization);
        }
        self.organization = Some(organization.as_str().to_owned());
        self.key_id = Some(ANONYMOUS);
        Ok(Caller::new(organization.clone(), ANONYMOUS, &self.request))
    }

    /// The record of the API key, if it is valid, and whether the organization is enabled, if that is
    /// known already. `None` if the request has no credential.
    async fn verified_key(
        &self,
        organization: Option<&Identifier>,
    ) -> Result<Option<(Arc<KeyRecord>, Option<bool>)>> {
        let now = self.request.received_at;
        let key = match self.credential {
            Credential::Missing => return Ok(None),
            Credential::Malformed => return Err(Error::KeyNotAccepted),
            Credential::Key(key) => key,
        };
        let is_valid = |record: &KeyRecord| {
            key.digest().matches(&record.secret_sha256) && record.is_valid_at(now)
        };
        let record = self.store.valid_key(key.id(), organization, now, is_valid);
        record.await?.map(Some).ok_or(Error::KeyNotAccepted)
    }

    /// Parses the body. `route` calls it after authorization, so other callers see no violations.
    pub(crate) fn body<T: Deserr<Violations>>(&self) -> Result<T> {
        body::parse(&self.request.body)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_credential_has_the_bearer_scheme_in_any_case_or_no_scheme() {
        let key = ApiKey::generate([1; 8], [[7; 16]; 2]);
        let is_key = |headers: &[&str]| matches!(Credential::parse(headers), Credential::Key(_));
        for scheme in ["Bearer ", "bearer ", "BEARER   ", "", " "] {
            assert!(is_key(&[&format!("{scheme}{key} ")]), "{scheme:?}");
        }
        for scheme in ["Basic ", "Bearer", "Bearer Bearer "] {
            assert!(!is_key(&[&format!("{scheme}{key}")]), "{scheme:?}");
        }
        assert!(!is_key(&[&key, &key]));
    }

    #[test]
    fn a_header_without_a_key_is_not_a_credential() {
        for headers in [&[][..], &[""], &[" "], &["Bearer"], &["bearer "]] {
            let credential = Credential::parse(headers);
            assert!(matches!(credential, Credential::Missing), "{headers:?}");
        }
        for headers in [&["Basic"][..], &["Bearer Bearer"], &["", ""]] {
            let credential = Credential::parse(headers);
            assert!(matches!(credential, Credential::Malformed), "{headers:?}");
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
