//! The API key: its text form, the `Authorization` header that contains it, and its record.
//!
//! The text form is `wsk_<id>_<secret><checksum>`. The id (12 characters) is the key of the
//! record. Only the holder has the secret (44 characters). The checksum (6 characters) covers
//! everything before it: the function rejects a mistyped key without a read, and scanners can find
//! published keys.

use std::time::SystemTime;

use serde::{Deserialize, Deserializer, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;

use crate::operations::Operation;

pub(crate) const PREFIX: &str = "wsk_";
const ID_LENGTH: usize = 12;
const SECRET_LENGTH: usize = 44;
const CHECKSUM_LENGTH: usize = 6;

/// A well-formed API key. It is not verified yet.
#[derive(Clone, Copy)]
pub struct ApiKey<'a> {
    /// The id. It is not secret: records and logs contain it.
    pub id: &'a str,
    secret: &'a str,
}

impl<'a> ApiKey<'a> {
    /// Parses the text form. `None` if a part is malformed or the checksum is wrong.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (id, rest) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let (secret, sum) = rest.split_at_checked(SECRET_LENGTH)?;
        let alphanumeric = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let well_formed = id.len() == ID_LENGTH && alphanumeric(id) && alphanumeric(secret);
        let covered = &text[..text.len() - sum.len()];
        (well_formed && sum == checksum(covered)).then_some(Self { id, secret })
    }

    /// Generates the text form of a new key from random bytes. The secret has two halves, because
    /// `base62` takes 128 bits.
    pub fn generate(id: [u8; 8], secret: [[u8; 16]; 2]) -> String {
        let id = base62::<ID_LENGTH>(u64::from_be_bytes(id).into());
        let half = |bytes| base62::<{ SECRET_LENGTH / 2 }>(u128::from_be_bytes(bytes));
        let key = format!("{PREFIX}{id}_{}", secret.map(half).concat());
        let sum = checksum(&key);
        key + &sum
    }

    /// The SHA-256 hash of the secret in lower-case hexadecimal, as the record contains it. A slow
    /// hash would add nothing, because the secret has 256 random bits.
    pub fn secret_sha256(&self) -> String {
        hex::encode(Sha256::digest(self.secret))
    }
}

/// What the `Authorization` headers of a request contain.
#[derive(Clone, Copy)]
pub(crate) enum Credential<'a> {
    /// Nothing, or a header without a key, which some clients send if none is configured.
    Missing,
    /// Something else, with the reason for the log.
    Invalid(&'static str),
    Key(ApiKey<'a>),
}

impl<'a> Credential<'a> {
    /// Parses `Bearer <key>`, with the scheme in any case, or a key without a scheme. `headers` has
    /// the values of all `Authorization` headers.
    pub(crate) fn parse(headers: &[&'a str]) -> Self {
        let value = match headers {
            [] => "",
            [value] => value.trim(),
            _ => return Self::Invalid("two_headers"),
        };
        let is_bearer = |scheme: &str| scheme.eq_ignore_ascii_case("bearer");
        let key = match value.split_once(' ') {
            Some((scheme, key)) if is_bearer(scheme) => key.trim_start(),
            Some(_) => return Self::Invalid("other_scheme"),
            None if is_bearer(value) => "",
            None => value,
        };
        match ApiKey::parse(key) {
            Some(key) => Self::Key(key),
            None if key.is_empty() => Self::Missing,
            None => Self::Invalid("malformed"),
        }
    }
}

/// The record of an API key. The operator's tool, `workspacectl`, writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecord {
    /// The id in the key.
    pub key_id: String,
    /// The organization that the key belongs to.
    pub org_id: String,
    /// The `request_id` of its record. A key of an earlier registration of the id is not accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org_request_id: Option<String>,
    /// The operator's name for the key.
    #[serde(default)]
    pub label: String,
    /// The hash of the secret: see [`ApiKey::secret_sha256`].
    pub secret_sha256: String,
    /// The names of the operations that the key may call. `None` means every operation.
    #[serde(default, deserialize_with = "null_as_empty")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations: Option<Vec<String>>,
    /// When the key was issued (RFC 3339).
    pub created_at: String,
    /// When the key stops working (RFC 3339). `None` means that it does not expire.
    #[serde(default, deserialize_with = "null_as_empty")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// When the key was revoked (RFC 3339). `None` means that it was not.
    #[serde(default, deserialize_with = "null_as_empty")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<String>,
}

impl KeyRecord {
    /// Why a key with this id is not accepted. `None` if it has the secret and is valid.
    pub(crate) fn rejection(&self, key: ApiKey<'_>, now: SystemTime) -> Option<&'static str> {
        let hash = key.secret_sha256();
        let has_same_secret = hash.as_bytes().ct_eq(self.secret_sha256.as_bytes());
        match (bool::from(has_same_secret), self.is_valid_at(now)) {
            (false, _) => Some("wrong_secret"),
            (_, true) => None,
            _ if self.revoked_at.is_some() => Some("revoked"),
            _ => Some("expired"),
        }
    }

    /// Whether the key is neither revoked nor expired. An unreadable date counts as expired.
    pub fn is_valid_at(&self, now: SystemTime) -> bool {
        let expired = self.expires_at.as_deref().is_some_and(|expires_at| {
            humantime::parse_rfc3339(expires_at).map_or(true, |expires_at| now >= expires_at)
        });
        self.revoked_at.is_none() && !expired
    }

    /// Whether the organization's record with this `request_id` is the one that the key belongs to.
    pub(crate) fn is_of(&self, request_id: Option<&str>) -> bool {
        request_id.is_some() && self.org_request_id.as_deref() == request_id
    }

    /// Whether the key may call the operation.
    pub fn allows(&self, operation: Operation) -> bool {
        let mut names = self.operations.iter().flatten();
        self.operations.is_none() || names.any(|name| name == operation.name())
    }
}

/// Reads a null attribute, which only other programs write, as one that is set, and empty.
pub(crate) fn null_as_empty<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    attribute: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(attribute).map(|value| Some(value.unwrap_or_default()))
}

/// CRC-32 in base 62, as in GitHub's tokens.
fn checksum(text: &str) -> String {
    base62::<CHECKSUM_LENGTH>(crc32fast::hash(text.as_bytes()).into())
}

/// The number in `LENGTH` digits of `0-9 A-Z a-z`, with leading zeros.
fn base62<const LENGTH: usize>(mut number: u128) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut digits = [b'0'; LENGTH];
    for digit in digits.iter_mut().rev() {
        *digit = DIGITS[(number % 62) as usize];
        number /= 62;
    }
    digits.iter().map(|digit| char::from(*digit)).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The key of `cargo serve`, written out so that a change of the format breaks this test.
    const DEMO_KEY: &str = "wsk_acmeDemoKey1_PublicDemoKeyOfAcmeOnOneMachineNotASecret0002hGfAJ";

    #[test]
    fn parse_returns_the_id_of_a_well_formed_key() {
        assert_eq!(ApiKey::parse(DEMO_KEY).unwrap().id, "acmeDemoKey1");
    }

    #[test]
    fn generate_and_parse_agree() {
        for (id, secret) in [([0; 8], [[0; 16]; 2]), ([255; 8], [[255; 16]; 2])] {
            let text = ApiKey::generate(id, secret);
            let key = ApiKey::parse(&text).unwrap();
            assert_eq!(text.len(), DEMO_KEY.len());
            assert_eq!((key.id.len(), key.secret.len()), (ID_LENGTH, SECRET_LENGTH));
        }
        let [one, other] = [1, 2].map(|byte| ApiKey::generate([1; 8], [[7; 16], [byte; 16]]));
        let hash = |text| ApiKey::parse(text).unwrap().secret_sha256();
        assert_ne!(hash(&one), hash(&other));
    }

    #[test]
    fn parse_rejects_malformed_keys() {
        let (without_last, last) = DEMO_KEY.split_at(DEMO_KEY.len() - 1);
        let rows = [
            ("empty", String::new()),
            ("another prefix", DEMO_KEY.replace("wsk_", "wsx_")),
            ("no separator", DEMO_KEY.replace("1_P", "11P")),
            ("a character less", without_last.to_owned()),
            ("a character more", format!("{DEMO_KEY}0")),
            (
                "another checksum",
                format!("{without_last}{}", if last == "0" { "1" } else { "0" }),
            ),
            (
                "another id",
                DEMO_KEY.replace("acmeDemoKey1", "acmeDemoKey2"),
            ),
            ("another secret", DEMO_KEY.replace("Public", "public")),
            ("lower case", DEMO_KEY.to_lowercase()),
            ("white space", format!("{DEMO_KEY} ")),
            (
                "a multi-byte character at the end of the secret",
                format!("wsk_acmeDemoKey1_{}é", "a".repeat(43)),
            ),
        ];
        for (description, text) in rows {
            assert!(ApiKey::parse(&text).is_none(), "{description}: {text}");
        }
    }

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
        for (headers, reason) in [
            (&["Basic"][..], "malformed"),
            (&["Bearer Bearer"], "malformed"),
            (&["Basic YTpi"], "other_scheme"),
            (&["", ""], "two_headers"),
        ] {
            let credential = Credential::parse(headers);
            assert!(
                matches!(credential, Credential::Invalid(actual) if actual == reason),
                "{headers:?}"
            );
        }
    }

    #[test]
    fn a_record_accepts_only_the_key_with_its_secret() {
        let key = ApiKey::parse(DEMO_KEY).unwrap();
        let other_secret = ApiKey {
            secret: "abc",
            ..key
        };
        // FIPS 180-2, appendix B.1.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(other_secret.secret_sha256(), abc);
        let record = KeyRecord {
            secret_sha256: abc.to_owned(),
            ..record()
        };
        let rejection = |key| record.rejection(key, SystemTime::UNIX_EPOCH);
        assert_eq!(rejection(other_secret), None);
        assert_eq!(rejection(key), Some("wrong_secret"));
    }

    #[test]
    fn base62_has_leading_zeros_and_all_digits() {
        assert_eq!(base62::<3>(0), "000");
        assert_eq!(base62::<3>(61), "00z");
        assert_eq!(base62::<3>(62), "010");
        assert_eq!(base62::<22>(u128::MAX), "7n42DGM5Tflk9n8mt7Fhc7");
    }

    fn record() -> KeyRecord {
        KeyRecord {
            key_id: "acmeDemoKey1".to_owned(),
            org_id: "acme".to_owned(),
            org_request_id: None,
            label: String::new(),
            secret_sha256: String::new(),
            operations: None,
            created_at: "2026-01-01T00:00:00Z".to_owned(),
            expires_at: None,
            revoked_at: None,
        }
    }

    #[test]
    fn a_key_is_valid_until_the_second_at_which_it_expires() {
        let end = humantime::parse_rfc3339("2026-06-01T00:00:00Z").unwrap();
        let just_before = end - Duration::from_nanos(1);
        let mut key = record();
        assert!(key.is_valid_at(end));

        key.expires_at = Some("2026-06-01T00:00:00Z".to_owned());
        assert!(key.is_valid_at(just_before));
        assert!(!key.is_valid_at(end));

        key.expires_at = Some("tomorrow".to_owned());
        assert!(!key.is_valid_at(just_before));
    }

    #[test]
    fn a_revoked_key_is_not_valid() {
        let key = KeyRecord {
            revoked_at: Some("2026-06-01T00:00:00Z".to_owned()),
            ..record()
        };
        assert!(!key.is_valid_at(SystemTime::UNIX_EPOCH));
    }

    #[test]
    fn a_key_allows_every_operation_unless_it_names_some() {
        let all = record();
        for operation in Operation::ALL {
            let restricted = KeyRecord {
                operations: Some(vec![operation.name().to_owned()]),
                ..record()
            };
            for other in Operation::ALL {
                assert!(all.allows(*other));
                assert_eq!(restricted.allows(*other), operation == other);
            }
        }
        let none = KeyRecord {
            operations: Some(vec![]),
            ..record()
        };
        assert!(!none.allows(Operation::CreateTeam));
    }
}
