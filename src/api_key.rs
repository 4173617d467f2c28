//! The API key: its text form, its digest, how it is verified.
//!
//! `wsk_<id>_<secret><checksum>`: an id of 12 characters that names the key's record, a secret of 44 that only its holder
//! knows, and a checksum of 6 over all before it. The checksum lets a mistyped or an invented key be refused without a
//! read, and lets scanners find keys that were published by mistake.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;

/// What every key begins with.
pub const PREFIX: &str = "wsk_";

const ID_LENGTH: usize = 12;
const SECRET_LENGTH: usize = 44;
const CHECKSUM_LENGTH: usize = 6;

/// A key as it was presented: well-formed, its checksum right, not yet verified.
#[derive(Clone, Copy)]
pub struct ApiKey<'a> {
    id: &'a str,
    secret: &'a str,
}

impl<'a> ApiKey<'a> {
    /// Reads a key's text form; `None` if any part is malformed or the checksum is wrong.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (id, rest) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let (secret, sum) = rest.split_at_checked(SECRET_LENGTH)?;
        let alphanumeric = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let well_formed = id.len() == ID_LENGTH && alphanumeric(id) && alphanumeric(secret);
        let summed = &text[..text.len() - sum.len()];
        (well_formed && sum == checksum(summed)).then_some(Self { id, secret })
    }

    /// The id that names the key's record. It is no secret: records and logs show it.
    pub fn id(&self) -> &'a str {
        self.id
    }

    /// The digest that the key's record keeps in place of the secret.
    pub fn digest(&self) -> SecretDigest {
        SecretDigest::of(self.secret)
    }
}

/// A new key's text form, from random bytes of the operating system.
pub fn mint(id: [u8; 8], secret: [u8; 32]) -> String {
    let (high, low) = secret.split_at(16);
    let number = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0, |number, byte| number << 8 | u128::from(*byte))
    };
    let key = [
        PREFIX,
        &base62::<ID_LENGTH>(number(&id)),
        "_",
        &base62::<{ SECRET_LENGTH / 2 }>(number(high)),
        &base62::<{ SECRET_LENGTH / 2 }>(number(low)),
    ]
    .concat();
    let sum = checksum(&key);
    key + &sum
}

/// What is stored of a key. `workspacectl` writes it and the function reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecord {
    /// The key's id.
    pub key_id: String,
    /// The organization that the key's holder acts for.
    pub org_id: String,
    /// What the operator calls the key.
    #[serde(default)]
    pub label: String,
    /// The digest of its secret.
    pub secret_sha256: SecretDigest,
    /// The operations that it may call, by name; absent means all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<Vec<String>>,
    /// When it was issued (RFC 3339).
    pub created_at: String,
    /// From when on it is refused (RFC 3339), if it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// When it was revoked (RFC 3339), if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<String>,
}

impl KeyRecord {
    /// Whether the key is neither revoked nor, at that moment, expired. An unreadable date counts as expired.
    pub fn is_valid_at(&self, moment: SystemTime) -> bool {
        let expired = self.expires_at.as_deref().is_some_and(|expires_at| {
            humantime::parse_rfc3339(expires_at).map_or(true, |expires_at| moment >= expires_at)
        });
        self.revoked_at.is_none() && !expired
    }

    /// Whether the key may call the operation of that name.
    pub fn allows(&self, operation: &str) -> bool {
        self.operations
            .as_ref()
            .is_none_or(|allowed| allowed.iter().any(|name| name == operation))
    }
}

/// SHA-256 of a secret, in lower-case hexadecimal. The secret has 256 random bits, so a slow hash would add nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretDigest(String);

impl SecretDigest {
    fn of(secret: &str) -> Self {
        Self(
            Sha256::digest(secret)
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect(),
        )
    }

    /// A digest that no secret has, to compare with where there is no record: a caller shall not learn from the time
    /// whether a key's id is known.
    pub fn of_nothing() -> Self {
        Self("-".repeat(64))
    }

    /// Compares in a time that does not depend on where the two differ.
    pub fn matches(&self, other: &Self) -> bool {
        self.0.as_bytes().ct_eq(other.0.as_bytes()).into()
    }
}

/// CRC-32 in base 62, as in the tokens that GitHub issues.
fn checksum(text: &str) -> String {
    base62::<CHECKSUM_LENGTH>(crc32fast::hash(text.as_bytes()).into())
}

/// The number in `LENGTH` digits of `0-9 A-Z a-z`, leading zeros included.
fn base62<const LENGTH: usize>(mut number: u128) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut digits = [b'0'; LENGTH];
    for digit in digits.iter_mut().rev() {
        *digit = DIGITS[(number % 62) as usize];
        number /= 62;
    }
    digits.iter().map(|digit| char::from(*digit)).collect()
}
