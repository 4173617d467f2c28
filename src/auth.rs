//! Who is asking, or refused: a credential to a [`Caller`].

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use crate::{
    api_key::{ApiKey, KeyRecord, SecretDigest},
    caller::{ANONYMOUS, Caller},
    error::Error,
    store::{Store, Table},
    values::Identifier,
};

/// How many keys are remembered at most; then all are forgotten and read again.
const MOST_KNOWN_KEYS: usize = 10_000;

/// The rules of who may call, and the keys that were verified of late.
pub struct Auth {
    anonymous_operations: AnonymousOperations,
    key_cache: Duration,
    known: Mutex<HashMap<String, Known>>,
}

/// Whether the operations that the contract shows without `Authorization` may be called without a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnonymousOperations {
    /// As the contract shows them: for registered organizations.
    Allowed,
    /// A key is needed for every operation.
    Denied,
}

/// A key's record, and when it was read.
struct Known {
    record: Arc<KeyRecord>,
    // The wall clock: a monotonic one may stand still while Lambda freezes the process.
    read_at: SystemTime,
}

/// What a request asks for, and what it brings to prove that it may.
#[derive(Debug)]
pub struct Asked<'a> {
    /// The operation's name.
    pub operation: &'a str,
    /// The organization in the path, if the path names one.
    pub organization: Option<Identifier>,
    /// Whether the contract shows the operation without `Authorization`.
    pub open: bool,
    /// What the operation will ask for, to be read together with the key.
    pub foreseen: Option<(Table, [String; 2])>,
    /// Every value of the request's `Authorization` header.
    pub authorization: &'a [&'a str],
    /// The request's id, which the caller's records will show.
    pub request_id: &'a str,
}

impl Auth {
    /// `key_cache` is how long a verified key is remembered, and so how long a revoked one may still work.
    pub fn new(anonymous_operations: AnonymousOperations, key_cache: Duration) -> Self {
        Self {
            anonymous_operations,
            key_cache,
            known: Mutex::default(),
        }
    }

    /// Admits the holder of a valid key, for the key's own organization; and to an open operation, where the deployment
    /// allows it, anyone who sends no key, for a registered organization.
    ///
    /// Who is `recognized` is told even if they are not admitted, for the log.
    ///
    /// # Errors
    /// [`Error::Unauthenticated`]; [`Error::OtherOrganization`] if the path names another than the key's;
    /// [`Error::OperationNotAllowed`]; [`Error::NoSuchOrganization`]; or the store's.
    pub async fn admit(
        &self,
        store: &Store,
        asked: Asked<'_>,
        recognized: &mut Option<Caller>,
    ) -> Result<Caller, Error> {
        let Some(key) = presented(asked.authorization)? else {
            let caller = self.admit_anonymous(store, asked).await?;
            return Ok(recognized.insert(caller).clone());
        };
        let record = self.verify(store, key, asked.foreseen.as_ref()).await?;
        let own = Identifier::parse("org_id", &record.org_id)
            .map_err(|_| Error::Internal("the key's record names no valid organization".into()))?;
        let caller = recognized.insert(Caller::admitted(own, key.id(), asked.request_id));
        if asked
            .organization
            .is_some_and(|organization| organization != *caller.organization())
        {
            return Err(Error::OtherOrganization);
        }
        if !record.allows(asked.operation) {
            return Err(Error::OperationNotAllowed);
        }
        Ok(caller.clone())
    }

    async fn admit_anonymous(&self, store: &Store, asked: Asked<'_>) -> Result<Caller, Error> {
        let open = asked.open && self.anonymous_operations == AnonymousOperations::Allowed;
        let Some(organization) = asked.organization.filter(|_| open) else {
            return Err(Error::Unauthenticated { sent: false });
        };
        if !store
            .exists(Table::ORGANIZATIONS, &[organization.as_str()])
            .await?
        {
            return Err(Error::NoSuchOrganization);
        }
        Ok(Caller::admitted(organization, ANONYMOUS, asked.request_id))
    }

    /// The record of a presented key, if the secret is the right one and the key is neither expired nor revoked.
    async fn verify(
        &self,
        store: &Store,
        key: ApiKey<'_>,
        foreseen: Option<&(Table, [String; 2])>,
    ) -> Result<Arc<KeyRecord>, Error> {
        let now = SystemTime::now();
        let presented = key.digest();
        // Another secret than the remembered one is looked up as an unknown id is, and so takes as long.
        let known = self.remembered(key.id(), now);
        let record = match known.filter(|record| presented.matches(&record.secret_sha256)) {
            Some(record) => Some(record),
            None => {
                let ahead = foreseen.map(|(table, [one, two])| (*table, [one.as_str(), two]));
                let ahead = ahead.as_ref().map(|(table, key)| (*table, &key[..]));
                let record: Option<KeyRecord> = store.find(Table::KEYS, &[key.id()], ahead).await?;
                record.map(Arc::new)
            }
        };
        // Compared for an unknown id too.
        let digest = record
            .as_ref()
            .map_or_else(SecretDigest::of_nothing, |record| {
                record.secret_sha256.clone()
            });
        match (presented.matches(&digest), record) {
            (true, Some(record)) if record.is_valid_at(now) => {
                self.remember(&record, now);
                Ok(record)
            }
            _ => Err(Error::Unauthenticated { sent: true }),
        }
    }

    fn remembered(&self, id: &str, now: SystemTime) -> Option<Arc<KeyRecord>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let key = known.get(id)?;
        let age = now.duration_since(key.read_at).ok()?;
        (age < self.key_cache).then(|| key.record.clone())
    }

    fn remember(&self, record: &Arc<KeyRecord>, now: SystemTime) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = known
            .get(&record.key_id)
            .is_some_and(|key| Arc::ptr_eq(&key.record, record));
        if fresh || self.key_cache.is_zero() {
            return;
        }
        if known.len() >= MOST_KNOWN_KEYS {
            known.clear();
        }
        let record = record.clone();
        known.insert(
            record.key_id.clone(),
            Known {
                record,
                read_at: now,
            },
        );
    }
}

/// The key in `Authorization`: `Bearer <key>`, the scheme in any case, or the bare key. `None` if there is no such header.
fn presented<'a>(authorization: &[&'a str]) -> Result<Option<ApiKey<'a>>, Error> {
    let malformed = Error::Unauthenticated { sent: true };
    let credential = match authorization {
        [] => return Ok(None),
        [credential] => credential.trim(),
        _ => return Err(malformed),
    };
    let key = match credential.split_once(' ') {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => key.trim_start(),
        Some(_) => return Err(malformed),
        None => credential,
    };
    ApiKey::parse(key).map(Some).ok_or(malformed)
}
