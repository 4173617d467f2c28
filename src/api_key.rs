//! API keys: their text form, the `Authorization` header that contains a key, and
//! the checks of a key.
//!
//! The text form is `wsk_<id>_<secret><checksum>`. The id (12 characters) is the primary key of the
//! record. Only the holder has the secret (44 characters). The checksum (6 characters) covers
//! everything before it. It lets the function reject mistyped keys without reading DynamoDB, and
//! lets secret scanners recognize leaked keys.

use std::time::SystemTime;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;

use crate::{
    error::KeyRejection,
    operations::Operation,
    prefer::split_unquoted,
    records::{ApiKeyRecord, ApiKeyState, Organization},
    values::Identifier,
};

/// The first characters of every key.
pub const API_KEY_PREFIX: &str = "wsk_";
/// The number of base-62 digits of an id. Its 64 bits need at most 11, so `encode` pads it with
/// zeros.
pub const API_KEY_ID_LENGTH: usize = 12;
const SECRET_LENGTH: usize = 44;
const CHECKSUM_LENGTH: usize = 6;

/// A well-formed API key. It may be unknown or have the wrong secret.
#[derive(Clone, Copy)]
pub struct ApiKey<'a> {
    /// The id. It is not secret, and appears in records and logs.
    pub id: &'a str,
    secret: &'a str,
}

impl<'a> ApiKey<'a> {
    /// Parses the text form. `None` if a part is malformed or the checksum is wrong.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (id, rest) = text.strip_prefix(API_KEY_PREFIX)?.split_once('_')?;
        let (secret, sent_checksum) = rest.split_at_checked(SECRET_LENGTH)?;
        let without_checksum = &text[..text.len() - sent_checksum.len()];
        let is_base62 = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let is_well_formed = id.len() == API_KEY_ID_LENGTH && is_base62(id) && is_base62(secret);
        if is_well_formed && sent_checksum == checksum(without_checksum) {
            return Some(Self { id, secret });
        }
        None
    }

    /// Whether a text contains the text form of a key.
    pub fn is_in(text: &str) -> bool {
        const LENGTH: usize =
            API_KEY_PREFIX.len() + API_KEY_ID_LENGTH + 1 + SECRET_LENGTH + CHECKSUM_LENGTH;
        // Looks for the first character, because a search for the prefix takes longer to prepare.
        text.match_indices('w').any(|(start, _)| {
            let candidate = text.get(start..start + LENGTH);
            candidate.and_then(ApiKey::parse).is_some()
        })
    }

    /// Encodes random bytes as a new key. The secret has two halves of 22 digits, because its 256
    /// bits do not fit into a `u128`.
    pub fn encode(id: [u8; 8], secret: [[u8; 16]; 2]) -> String {
        let id = base62::<API_KEY_ID_LENGTH>(u64::from_be_bytes(id).into());
        let [first, second] =
            secret.map(|half| base62::<{ SECRET_LENGTH / 2 }>(u128::from_be_bytes(half)));
        let without_checksum = format!("{API_KEY_PREFIX}{id}_{first}{second}");
        format!("{without_checksum}{}", checksum(&without_checksum))
    }

    /// The SHA-256 hash of the secret in lower-case hexadecimal, as stored in the record. A slow
    /// hash would not make the key safer, because the secret has 256 random bits.
    pub fn secret_sha256(&self) -> String {
        hex::encode(Sha256::digest(self.secret))
    }
}

/// What the `Authorization` headers of a request contain.
#[derive(Clone, Copy)]
pub(crate) enum Credential<'a> {
    /// No key. The header is absent, empty or only `Bearer`, as sent by a client without a key.
    Missing,
    /// A well-formed key.
    Key(ApiKey<'a>),
    /// Anything else. It is not accepted.
    Invalid(KeyRejection),
}

impl<'a> Credential<'a> {
    /// Parses the values of all `Authorization` headers. Accepts `Bearer <key>`, whose scheme is
    /// case-insensitive, and a key without a scheme.
    pub(crate) fn parse(values: &[&'a str]) -> Self {
        let value = match values {
            [] => "",
            [value] if !has_several_credentials(value) => value.trim(),
            _ => return Self::Invalid(KeyRejection::SeveralHeaders),
        };
        let is_bearer = |scheme: &str| scheme.eq_ignore_ascii_case("bearer");
        let key_text = match value.split_once(' ') {
            Some((scheme, text)) if is_bearer(scheme) => text.trim_start(),
            Some(_) => return Self::Invalid(KeyRejection::UnsupportedScheme),
            None if is_bearer(value) => "",
            None => value,
        };
        match ApiKey::parse(key_text) {
            Some(key) => Self::Key(key),
            None if key_text.is_empty() => Self::Missing,
            None => Self::Invalid(KeyRejection::Malformed),
        }
    }
}

/// Whether the value of an `Authorization` header has several credentials, because payload 2.0 joins
/// the values of repeated headers with commas. In one credential, only parameters follow a comma, as
/// in `Digest realm="a", nonce=b`.
fn has_several_credentials(value: &str) -> bool {
    let mut after_commas = split_unquoted(value, ',').skip(1);
    let is_parameter = |part: &str| {
        let (name, value) = part.split_once('=').unwrap_or_default();
        // Otherwise, it is a scheme before a credential, or the end of one in base64.
        !name.trim().contains([' ', '\t']) && !value.trim_start_matches('=').trim().is_empty()
    };
    after_commas.any(|part| !is_parameter(part))
}

impl ApiKeyRecord {
    /// Why `key`, which has the id of this record, is not accepted. `None` if the secret matches,
    /// and the key is neither revoked nor expired.
    pub(crate) fn rejection(&self, key: ApiKey<'_>, now: SystemTime) -> Option<KeyRejection> {
        let hash = key.secret_sha256();
        let has_same_secret: bool = hash.as_bytes().ct_eq(self.secret_sha256.as_bytes()).into();
        if !has_same_secret {
            return Some(KeyRejection::WrongSecret);
        }
        match self.state(now) {
            ApiKeyState::Revoked => Some(KeyRejection::Revoked),
            ApiKeyState::Expired => Some(KeyRejection::Expired),
            // `is_for_registration` decides, after the organization is known.
            ApiKeyState::Malformed | ApiKeyState::Active => None,
        }
    }

    /// Whether the key was issued for the current registration of its organization. False if either
    /// registration is unknown.
    pub(crate) fn is_for_registration(&self, organization: &Organization) -> bool {
        self.registration_id.is_some() && self.registration_id == organization.registration_id
    }

    /// Whether the key may call the operation.
    pub(crate) fn allows(&self, operation: Operation) -> bool {
        match &self.operations {
            None => true,
            Some(names) => names.iter().any(|name| name == operation.name()),
        }
    }

    /// Whether the key may call an operation with this project in the path. `None` if the path of
    /// the operation has no project.
    pub(crate) fn allows_project(&self, project_id: Option<&Identifier>) -> bool {
        match &self.projects {
            None => true,
            Some(ids) => project_id.is_some_and(|it| ids.iter().any(|id| id == it.as_str())),
        }
    }
}

/// CRC-32 in base 62, as in GitHub's tokens.
fn checksum(text: &str) -> String {
    base62::<CHECKSUM_LENGTH>(crc32fast::hash(text.as_bytes()).into())
}

/// Formats a number with `LENGTH` digits of `0-9 A-Z a-z`, including leading zeros.
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
    use super::*;

    /// The API key of `cargo serve`, as a literal: if the format changes, these tests fail.
    const DEMO_KEY: &str = "wsk_acmeDemoKey1_PublicDemoKeyOfAcmeOnOneMachineNotASecret0002hGfAJ";

    #[test]
    fn parse_reads_what_encode_writes() {
        let smallest = ApiKey::encode([0; 8], [[0; 16]; 2]);
        assert_eq!(ApiKey::parse(&smallest).unwrap().id, "000000000000");
        let largest = ApiKey::encode([255; 8], [[255; 16]; 2]);
        assert_eq!(ApiKey::parse(&largest).unwrap().id, "0LygHa16AHYF");
        let expected = "wsk_0LygHa16AHYF_7n42DGM5Tflk9n8mt7Fhc77n42DGM5Tflk9n8mt7Fhc71AvoEE";
        assert_eq!(largest, expected);
        let [one, two] = [1, 2].map(|byte| ApiKey::encode([1; 8], [[7; 16], [byte; 16]]));
        let hash = |text| ApiKey::parse(text).unwrap().secret_sha256();
        assert_ne!(hash(&one), hash(&two));
    }

    #[test]
    fn parse_accepts_only_well_formed_keys() {
        assert_eq!(ApiKey::parse(DEMO_KEY).unwrap().id, "acmeDemoKey1");
        let without_last = DEMO_KEY.strip_suffix('J').unwrap();
        let cases = [
            ("empty", String::new()),
            ("a different prefix", DEMO_KEY.replace("wsk_", "wsx_")),
            ("no separator", DEMO_KEY.replace("1_P", "11P")),
            ("one character too few", without_last.to_owned()),
            ("one character too many", format!("{DEMO_KEY}0")),
            ("a different checksum", format!("{without_last}0")),
            ("a different id", DEMO_KEY.replace("Key1", "Key2")),
            ("a different secret", DEMO_KEY.replace("Pub", "pub")),
            // The secret would end in the middle of this character.
            ("a multi-byte character", DEMO_KEY.replace("02hGfAJ", "é")),
        ];
        for (description, text) in cases {
            assert!(ApiKey::parse(&text).is_none(), "{description}: {text}");
        }
    }

    #[test]
    fn the_stored_hash_is_the_sha256_of_the_secret() {
        let key = ApiKey {
            id: "",
            secret: "abc",
        };
        // FIPS 180-2, appendix B.1.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(key.secret_sha256(), abc);
    }
}
