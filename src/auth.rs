//! Authorizes requests: turns the credential of a request into a `Caller`.

use std::{sync::Arc, time::SystemTime};

use crate::{
    api_key::{ApiKey, Credential},
    error::{Error, KeyRejection, Result},
    event::Request,
    log::RequestLog,
    operations::Operation,
    records::CreationAttributes,
    store::{FoundApiKey, Store, timestamp},
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

/// The id of the organization in a path, and of the project, if the path has one. `None` if the path
/// has neither.
pub(crate) type PathIds<'a> = Option<(&'a Identifier, Option<&'a Identifier>)>;

/// The id of callers without an API key, in records and in the log.
const ANONYMOUS: &str = "anonymous";

/// An authorized caller, the organization that the caller acts for, and the time of the request.
///
/// Every operation requires a `Caller`, and only [`authorize`] creates one.
pub(crate) struct Caller {
    /// The organization whose records the caller may write.
    pub(crate) org_id: Identifier,
    /// When the function received the request.
    pub(crate) received_at: SystemTime,
    is_anonymous: bool,
    creation: CreationAttributes,
}

impl Caller {
    fn new(org_id: Identifier, key_id: Option<&str>, request: &Request<'_>) -> Self {
        Self {
            org_id,
            received_at: request.received_at,
            is_anonymous: key_id.is_none(),
            creation: CreationAttributes {
                created_at: timestamp(request.received_at),
                created_by: key_id.unwrap_or(ANONYMOUS).to_owned(),
                request_id: request.id.to_owned(),
            },
        }
    }

    /// The id of the API key, or `anonymous`.
    pub(crate) fn caller_id(&self) -> &str {
        &self.creation.created_by
    }

    /// Who has a limit while DynamoDB throttles writes: the organization, or all anonymous callers
    /// together, so that they do not use up the limit of the organization in the path.
    pub(crate) fn requester(&self) -> &str {
        if self.is_anonymous {
            ""
        } else {
            self.org_id.as_str()
        }
    }

    /// Whether a response to the caller may contain values of stored records.
    pub(crate) fn may_see_stored_values(&self) -> bool {
        !self.is_anonymous
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

/// Authorizes the caller of an operation. Adds the organization that the caller acts for, and when
/// an accepted API key expires, to `log`.
///
/// # Errors
/// Any error with the status 401 or 403, or [`Error::NoSuchOrganization`]. If a read fails or a
/// stored record is invalid, [`Error::Unavailable`] or [`Error::Internal`].
pub(crate) async fn authorize(
    store: &Store,
    anonymous_access: AnonymousAccess,
    request: &Request<'_>,
    operation: Operation,
    path_ids: PathIds<'_>,
    log: &mut RequestLog<'_>,
) -> Result<Caller> {
    let path_org_id = path_ids.map(|(org_id, _)| org_id);
    let is_key_optional =
        operation.is_key_optional() && anonymous_access == AnonymousAccess::Allowed;
    let key = match (request.credential, path_org_id) {
        (Credential::Key(key), _) => key,
        (Credential::Invalid(rejection), _) => return Err(Error::KeyNotAccepted(rejection)),
        (Credential::Missing, Some(org_id)) if is_key_optional => {
            return authorize_anonymous(store, request, org_id, log).await;
        }
        (Credential::Missing, _) => return Err(Error::NoKey),
    };
    let found = accept_key(store, key, path_org_id, request.received_at, log).await?;
    let record = &found.record;
    let expires_at = record.expires_at.as_ref();
    // `humantime` ignores the end of some malformed times, and a header cannot contain every text.
    let expires_at = expires_at.filter(|it| it.bytes().all(|byte| byte.is_ascii_graphic()));
    log.key_expires_at = expires_at.cloned();
    if !record.allows(operation) {
        return Err(Error::OperationNotAllowed {
            operation_name: operation.name(),
        });
    }
    if !record.allows_project(path_ids.and_then(|(_, project_id)| project_id)) {
        let allowed = record.projects.as_deref().unwrap_or_default();
        return Err(Error::ProjectNotAllowed {
            allowed_projects: shorten(&allowed.join("`, `")),
        });
    }
    let org_id = Identifier::parse(&record.org_id)
        .ok_or_else(|| Error::internal("the API key has an invalid org_id"))?;
    Ok(Caller::new(org_id, Some(key.id), request))
}

/// Finds an API key and its organization, and caches them if the key is accepted.
async fn accept_key(
    store: &Store,
    key: ApiKey<'_>,
    path_org_id: Option<&Identifier>,
    received_at: SystemTime,
    log: &mut RequestLog<'_>,
) -> Result<Arc<FoundApiKey>> {
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
    let Some(organization) = organization.filter(|it| it.is_enabled()) else {
        return Err(Error::OrganizationNotEnabled);
    };
    if !record.is_for_registration(organization) {
        return Err(Error::KeyNotAccepted(KeyRejection::WrongRegistration));
    }
    store.cache_api_key(&found);
    Ok(found)
}

/// Authorizes a caller without an API key, for the organization in the path.
async fn authorize_anonymous(
    store: &Store,
    request: &Request<'_>,
    org_id: &Identifier,
    log: &mut RequestLog<'_>,
) -> Result<Caller> {
    match store.find_organization(org_id.as_str()).await? {
        None => return Err(Error::NoSuchOrganization("not_registered")),
        Some(organization) if !organization.is_enabled() => {
            return Err(Error::NoSuchOrganization("disabled"));
        }
        Some(_) => {}
    }
    log.caller_org_id = Some(org_id.as_str().to_owned());
    log.caller_id = Some(ANONYMOUS);
    Ok(Caller::new(org_id.clone(), None, request))
}
