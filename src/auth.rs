//! Authorizes requests: turns the credential of a request into a `Caller`.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::{
    api_key::{ApiKey, Credential},
    error::{Error, Result},
    event::Request,
    log::RequestLog,
    operation::Operation,
    store::{OrganizationState, Store, timestamp},
    values::Identifier,
};

/// The `created_by` of records that anonymous callers create.
const ANONYMOUS: &str = "anonymous";

/// Whether a caller may omit the API key where the contract makes it optional.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnonymousOperations {
    /// Allowed, if the organization in the path is enabled.
    Allowed,
    /// Every operation requires an API key.
    Denied,
}

/// A caller who may call the requested operation for one organization.
///
/// Every operation requires one, and only [`authorize`] creates one.
pub(crate) struct Caller {
    /// The organization whose records the caller may write.
    pub(crate) organization: Identifier,
    /// When the function received the request.
    pub(crate) received_at: SystemTime,
    audit: Audit,
}

impl Caller {
    fn new(organization: Identifier, id: &str, request: &Request<'_>) -> Self {
        Self {
            organization,
            received_at: request.received_at,
            audit: Audit {
                created_at: timestamp(request.received_at),
                created_by: id.to_owned(),
                request_id: request.id.to_owned(),
            },
        }
    }

    /// Whether the caller may see stored text in a response.
    pub(crate) fn has_key(&self) -> bool {
        self.audit.created_by != ANONYMOUS
    }

    /// Whether this request created a record. If a response of DynamoDB was lost, an earlier
    /// attempt of the same request did.
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

/// Checks whether the sender of a request may call an operation. `organization` is the one in the
/// path, if the path has one. Adds the caller to the log, which has the id of a key already.
///
/// # Errors
/// [`Error::NoKey`], [`Error::KeyNotAccepted`], [`Error::OtherOrganization`],
/// [`Error::OrganizationDisabled`], [`Error::OperationNotAllowed`] or
/// [`Error::NoSuchOrganization`].
pub(crate) async fn authorize(
    store: &Store,
    anonymous_operations: AnonymousOperations,
    request: &Request<'_>,
    operation: Operation,
    organization: Option<&Identifier>,
    log: &mut RequestLog<'_>,
) -> Result<Caller> {
    match request.credential {
        Credential::Key(key) => {
            authorize_key(store, key, request, operation, organization, log).await
        }
        Credential::Malformed => Err(Error::KeyNotAccepted("malformed")),
        Credential::Missing => {
            let is_denied = anonymous_operations == AnonymousOperations::Denied;
            if is_denied || !operation.allows_anonymous() {
                return Err(Error::NoKey);
            }
            let organization = organization.ok_or(Error::NoKey)?;
            let now = request.received_at;
            let (id, state) = (organization.as_str(), OrganizationState::NotRead);
            let state = store.organization(id, state, None, now).await?;
            if state == OrganizationState::Disabled {
                return Err(Error::NoSuchOrganization);
            }
            log.organization = Some(organization.as_str().to_owned());
            log.key_id = Some(ANONYMOUS);
            Ok(Caller::new(organization.clone(), ANONYMOUS, request))
        }
    }
}

async fn authorize_key(
    store: &Store,
    key: ApiKey<'_>,
    request: &Request<'_>,
    operation: Operation,
    organization_in_path: Option<&Identifier>,
    log: &mut RequestLog<'_>,
) -> Result<Caller> {
    let now = request.received_at;
    let (record, state) = store.find_key(key, organization_in_path, now).await?;
    log.organization = Some(record.org_id.clone());
    let organization = Identifier::new(&record.org_id)
        .ok_or_else(|| Error::internal("the API key has an invalid org_id"))?;
    if organization_in_path.is_some_and(|in_path| *in_path != organization) {
        return Err(Error::OtherOrganization);
    }
    if !matches!(state, OrganizationState::Enabled(_)) {
        return Err(Error::OrganizationDisabled);
    }
    if !record.allows(operation) {
        return Err(Error::OperationNotAllowed(operation.name()));
    }
    Ok(Caller::new(organization, &record.key_id, request))
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
        let caller = Caller::new(Identifier::new("acme").unwrap(), "acmeDemoKey1", &request);
        let audit = caller.audit();
        assert_eq!(audit.created_at, "2026-01-01T00:00:00.123Z");
        assert_eq!(audit.created_by, "acmeDemoKey1");
        assert_eq!(audit.request_id, "request-1");
    }
}
