//! Authorizes requests: turns the credential of a request into a `Caller`.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::{
    api_key::Credential,
    error::{Error, Result},
    event::Request,
    log::RequestLog,
    operations::Operation,
    store::{FoundKey, Organization, Store, timestamp},
    values::Identifier,
};

/// Whether a caller may omit the API key where the contract makes it optional.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnonymousOperations {
    /// Allowed, if the organization in the path is enabled.
    Allowed,
    /// Every operation requires an API key.
    Denied,
}

/// Who sends a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity<'a> {
    /// The holder of the API key with this id.
    Key(&'a str),
    /// A caller without an API key.
    Anonymous,
}

impl<'a> Identity<'a> {
    /// The id of the API key, or `anonymous`.
    pub(crate) fn name(self) -> &'a str {
        match self {
            Self::Key(id) => id,
            Self::Anonymous => "anonymous",
        }
    }
}

/// A caller who may call the requested operation for one organization.
///
/// Every operation requires one, and only [`authorize`] creates one.
pub(crate) struct Caller<'a> {
    /// The organization whose records the caller may write.
    pub(crate) organization: Identifier,
    pub(crate) identity: Identity<'a>,
    /// When the function received the request.
    pub(crate) received_at: SystemTime,
    audit: Audit,
}

impl<'a> Caller<'a> {
    fn new(organization: Identifier, identity: Identity<'a>, request: &Request<'a>) -> Self {
        Self {
            organization,
            identity,
            received_at: request.received_at,
            audit: Audit {
                created_at: timestamp(request.received_at),
                created_by: identity.name().to_owned(),
                request_id: request.id.to_owned(),
            },
        }
    }

    /// Whether a response to the caller may contain text of stored records.
    pub(crate) fn sees_stored_text(&self) -> bool {
        self.identity != Identity::Anonymous
    }

    /// Whether this request created the record: now, or in an earlier attempt whose response was lost.
    pub(crate) fn created(&self, existing: &Audit) -> bool {
        existing.request_id == self.audit.request_id
    }

    /// The audit attributes of the records that the request creates.
    pub(crate) fn audit(&self) -> &Audit {
        &self.audit
    }
}

/// When, by whom and in which request a record was created. An attribute that another program
/// removed is read as an empty string.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Audit {
    /// RFC 3339, in UTC, with milliseconds.
    pub(crate) created_at: String,
    /// The id of an API key, or `anonymous`.
    pub(crate) created_by: String,
    pub(crate) request_id: String,
}

/// Checks whether a caller may call an operation. Has every reason for a 401 or a 403, and for the 404
/// of an organization, in the order in which the reasons apply. `in_path` is the organization in the
/// path, if the path has one. Adds the organization of the key, or of the anonymous caller, to the log.
///
/// # Errors
/// The 401, 403 or 404 that applies, or [`Error::Unavailable`] or [`Error::Internal`] if a read fails.
pub(crate) async fn authorize<'a>(
    store: &Store,
    anonymous_operations: AnonymousOperations,
    request: &Request<'a>,
    operation: Operation,
    in_path: Option<&Identifier>,
    log: &mut RequestLog<'_>,
) -> Result<Caller<'a>> {
    let key = match request.credential {
        Credential::Key(key) => key,
        Credential::Invalid(reason) => return Err(Error::KeyNotAccepted(reason)),
        Credential::Missing => {
            let is_allowed = operation.allows_anonymous()
                && anonymous_operations == AnonymousOperations::Allowed;
            let (true, Some(id)) = (is_allowed, in_path) else {
                return Err(Error::NoKey);
            };
            match store.organization(id.as_str()).await? {
                None => return Err(Error::NoSuchOrganization("not_registered")),
                Some(it) if !it.is_enabled() => return Err(Error::NoSuchOrganization("disabled")),
                Some(_) => {}
            }
            log.organization = Some(id.as_str().to_owned());
            log.key_id = Some(Identity::Anonymous.name());
            return Ok(Caller::new(id.clone(), Identity::Anonymous, request));
        }
    };
    let now = request.received_at;
    let found = store.find_key(key.id, in_path, now).await?;
    let found = found.ok_or(Error::KeyNotAccepted("unknown"))?;
    let record = found.record();
    if let Some(cause) = record.rejection(key, now) {
        return Err(Error::KeyNotAccepted(cause));
    }
    log.organization = Some(record.org_id.clone());
    if in_path.is_some_and(|id| id.as_str() != record.org_id) {
        return Err(Error::OtherOrganization);
    }
    // A cached key was cached only after these checks.
    if let FoundKey::Read(record, organization_in_path) = &found {
        let organization = match in_path {
            Some(_) => organization_in_path.clone(),
            None => store.organization(&record.org_id).await?,
        };
        let organization = organization.filter(Organization::is_enabled);
        let organization = organization.ok_or(Error::OrganizationDisabled)?;
        if !record.is_of(organization.request_id()) {
            return Err(Error::KeyNotAccepted("other_registration"));
        }
        store.cache_key(record, now);
    }
    if !record.allows(operation) {
        return Err(Error::OperationNotAllowed(operation.name()));
    }
    let organization = Identifier::new(&record.org_id)
        .ok_or_else(|| Error::internal("the API key has an invalid org_id"))?;
    Ok(Caller::new(organization, Identity::Key(key.id), request))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn audit_attributes_have_the_time_of_the_request() {
        let request = Request {
            id: "request-1",
            received_at: SystemTime::UNIX_EPOCH + Duration::from_millis(1_767_225_600_123),
            method: "POST",
            path: vec![],
            credential: Credential::Missing,
            body: b"".into(),
        };
        let acme = Identifier::new("acme").unwrap();
        let caller = Caller::new(acme, Identity::Key("acmeDemoKey1"), &request);
        let audit = caller.audit();
        assert_eq!(audit.created_at, "2026-01-01T00:00:00.123Z");
        assert_eq!(audit.created_by, "acmeDemoKey1");
        assert_eq!(audit.request_id, "request-1");
    }
}
