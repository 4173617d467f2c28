//! Authorizes requests: turns the credential of a request into a `Caller`.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::{
    api_key::Credential,
    error::{Error, KeyRejection, Result},
    event::Request,
    log::RequestLog,
    operations::Operation,
    store::{Store, timestamp},
    text::shorten,
    values::Identifier,
};

/// Whether callers may omit the API key where the contract makes it optional.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnonymousAccess {
    /// Callers may omit the key if the organization in the path is enabled.
    Allowed,
    /// Every operation requires a key.
    Denied,
}

/// Who the caller is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity<'a> {
    /// The holder of the API key with this id.
    KeyId(&'a str),
    /// A caller without an API key.
    Anonymous,
}

impl<'a> Identity<'a> {
    /// The id of the API key, or `anonymous`.
    pub(crate) fn caller_id(self) -> &'a str {
        match self {
            Self::KeyId(id) => id,
            Self::Anonymous => "anonymous",
        }
    }
}

/// An authorized caller, the organization that the caller acts for, and the time of the request.
///
/// Every operation requires a `Caller`, and only [`authorize`] creates one.
pub(crate) struct Caller<'a> {
    /// The organization whose records the caller may write.
    pub(crate) org_id: Identifier,
    pub(crate) identity: Identity<'a>,
    /// When the function received the request.
    pub(crate) received_at: SystemTime,
    creation: CreationAttributes,
}

impl<'a> Caller<'a> {
    fn new(org_id: Identifier, identity: Identity<'a>, request: &Request<'a>) -> Self {
        Self {
            org_id,
            identity,
            received_at: request.received_at,
            creation: CreationAttributes {
                created_at: timestamp(request.received_at),
                created_by: identity.caller_id().to_owned(),
                request_id: request.id.to_owned(),
            },
        }
    }

    /// Whether a response to the caller may contain values of stored records.
    pub(crate) fn may_see_stored_values(&self) -> bool {
        self.identity != Identity::Anonymous
    }

    /// Escapes and shortens text from a stored record. `None` if the caller may not see the text.
    pub(crate) fn text_for_response(&self, text: &str) -> Option<String> {
        self.may_see_stored_values().then(|| shorten(text))
    }

    /// Whether an earlier attempt of this request created the existing record, which has these
    /// attributes. The SDK retries a write whose response is lost, and then finds the record. The
    /// request id alone is not enough, because clients can repeat it.
    pub(crate) fn created_in_this_request(&self, existing: &CreationAttributes) -> bool {
        *existing == self.creation
    }

    /// The attributes for the records that this request creates.
    pub(crate) fn creation_attributes(&self) -> &CreationAttributes {
        &self.creation
    }
}

/// The attributes that say when, by whom and in which request a record was created. A missing one
/// is read as an empty string: see "Other programs" in [`crate::store`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct CreationAttributes {
    /// RFC 3339, in UTC, with milliseconds.
    pub(crate) created_at: String,
    /// The id of the API key, or `anonymous`.
    pub(crate) created_by: String,
    pub(crate) request_id: String,
}

/// Authorizes the caller of an operation. `path_org_id` is the id of the organization in the path,
/// if the path has one. Adds the organization that the caller acts for to `log`.
///
/// # Errors
/// Any error with the status 401 or 403, or [`Error::NoSuchOrganization`]. If a read fails or a
/// stored record is invalid, [`Error::Unavailable`] or [`Error::Internal`].
pub(crate) async fn authorize<'a>(
    store: &Store,
    anonymous_access: AnonymousAccess,
    request: &Request<'a>,
    operation: Operation,
    path_org_id: Option<&Identifier>,
    log: &mut RequestLog<'_>,
) -> Result<Caller<'a>> {
    let key = match request.credential {
        Credential::Key(key) => key,
        Credential::Invalid(rejection) => return Err(Error::KeyNotAccepted(rejection)),
        Credential::Missing => {
            if !operation.is_key_optional() || anonymous_access == AnonymousAccess::Denied {
                return Err(Error::NoKey);
            }
            // Every operation that allows anonymous callers has an organization in its path.
            let id = path_org_id.ok_or(Error::NoKey)?;
            return authorize_anonymous(store, request, id, log).await;
        }
    };
    let received_at = request.received_at;
    let Some(found) = store.find_api_key(key.id, path_org_id, received_at).await? else {
        return Err(Error::KeyNotAccepted(KeyRejection::Unknown));
    };
    let record = &found.record;
    if let Some(rejection) = record.rejection(key, received_at) {
        return Err(Error::KeyNotAccepted(rejection));
    }
    log.caller_org_id = Some(record.org_id.clone());
    if path_org_id.is_some_and(|id| id.as_str() != record.org_id) {
        return Err(Error::WrongOrganization);
    }
    let organization = found.organization.as_ref();
    let Some(organization) = organization.filter(|organization| organization.is_enabled) else {
        return Err(Error::OrganizationNotEnabled);
    };
    if !record.is_for_registration(organization.registration_id.as_deref()) {
        return Err(Error::KeyNotAccepted(KeyRejection::WrongRegistration));
    }
    store.cache_api_key(&found);
    if !record.allows(operation) {
        return Err(Error::OperationNotAllowed {
            operation_name: operation.name(),
        });
    }
    let org_id = Identifier::parse(&record.org_id)
        .ok_or_else(|| Error::internal("the API key has an invalid org_id"))?;
    Ok(Caller::new(org_id, Identity::KeyId(key.id), request))
}

/// Authorizes a caller without an API key, for the organization in the path.
async fn authorize_anonymous<'a>(
    store: &Store,
    request: &Request<'a>,
    org_id: &Identifier,
    log: &mut RequestLog<'_>,
) -> Result<Caller<'a>> {
    let Some(organization) = store.find_organization(org_id.as_str()).await? else {
        let log_only_reason = "not_registered";
        return Err(Error::NoSuchOrganization { log_only_reason });
    };
    if !organization.is_enabled {
        let log_only_reason = "disabled";
        return Err(Error::NoSuchOrganization { log_only_reason });
    }
    log.caller_org_id = Some(org_id.as_str().to_owned());
    log.caller_id = Some(Identity::Anonymous.caller_id());
    Ok(Caller::new(org_id.clone(), Identity::Anonymous, request))
}
