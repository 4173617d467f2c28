//! The records that decide who may call the API: organizations and API keys.

use std::time::SystemTime;

use serde::{Deserialize, Deserializer, Serialize};

/// A registered organization.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Organization {
    pub org_id: String,
    pub created_at: String,
    pub created_by: String,
    /// The id of the run that registered it, stored as `request_id`. If the organization is erased
    /// and registered again, this id changes, and earlier API keys are not accepted.
    #[serde(rename = "request_id", skip_serializing_if = "Option::is_none")]
    pub registration_id: Option<String>,
    #[serde(deserialize_with = "null_as_strictest")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled_by: Option<String>,
    /// The id of the erasure, while `workspacectl` erases the organization.
    #[serde(deserialize_with = "null_as_strictest")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erasing_id: Option<String>,
}

/// Whether requests for an organization are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrganizationState {
    Enabled,
    Disabled,
    BeingErased,
}

impl Organization {
    pub fn state(&self) -> OrganizationState {
        if self.erasing_id.is_some() {
            OrganizationState::BeingErased
        } else if self.disabled_at.is_some() {
            OrganizationState::Disabled
        } else {
            OrganizationState::Enabled
        }
    }

    pub fn is_enabled(&self) -> bool {
        self.state() == OrganizationState::Enabled
    }
}

/// An API key, without its secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKeyRecord {
    pub key_id: String,
    pub org_id: String,
    /// The id of the registration that the key was issued for, stored as `org_request_id`. The key
    /// is accepted only while this id equals the `request_id` of the organization's record. A key
    /// without this id is rejected.
    #[serde(rename = "org_request_id", skip_serializing_if = "Option::is_none")]
    pub registration_id: Option<String>,
    #[serde(default)]
    pub label: String,
    /// The hash of the secret, from [`crate::api_key::ApiKey::secret_sha256`].
    pub secret_sha256: String,
    /// The names of the operations that the key may call. A missing attribute allows all of them,
    /// and NULL allows none.
    #[serde(default, deserialize_with = "null_as_strictest")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations: Option<Vec<String>>,
    /// The ids of the projects that the key is limited to. Such a key may not call operations
    /// whose path has no project. A missing attribute means no limit, and NULL allows nothing.
    #[serde(default, deserialize_with = "null_as_strictest")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub projects: Option<Vec<String>>,
    pub created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    #[serde(rename = "request_id", skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The last four characters of the key. They are part of its checksum and not of its secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_four: Option<String>,
    /// The lifetime that was chosen for the key, in seconds. Unlike `expires_at`, it does not change
    /// in a rotation. `None` if the key was issued without an expiry, or by another program.
    #[serde(rename = "issued_for", skip_serializing_if = "Option::is_none")]
    pub lifetime_seconds: Option<u64>,
    /// When the key expires (RFC 3339). `None` means never. NULL counts as expired.
    #[serde(default, deserialize_with = "null_as_strictest")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// When the key was revoked (RFC 3339). `None` means not revoked. NULL counts as revoked.
    #[serde(default, deserialize_with = "null_as_strictest")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<String>,
    #[serde(rename = "replaces", skip_serializing_if = "Option::is_none")]
    pub predecessor_id: Option<String>,
    #[serde(rename = "replaced_by", skip_serializing_if = "Option::is_none")]
    pub successor_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced_at: Option<String>,
}

/// The state of an API key, regardless of the state of its organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApiKeyState {
    Active,
    Expired,
    Revoked,
    /// The record has no registration, so that the key is never accepted.
    Malformed,
}

impl ApiKeyRecord {
    pub fn state(&self, now: SystemTime) -> ApiKeyState {
        let is_over = |time: &String| {
            let time = humantime::parse_rfc3339(time);
            time.map_or(true, |expires_at| now >= expires_at)
        };
        if self.revoked_at.is_some() {
            ApiKeyState::Revoked
        } else if self.expires_at.as_ref().is_some_and(is_over) {
            ApiKeyState::Expired
        } else if self.registration_id.is_none() {
            ApiKeyState::Malformed
        } else {
            ApiKeyState::Active
        }
    }
}

/// Reads an attribute that restricts access:
///
/// | attribute | result | meaning |
/// |---|---|---|
/// | missing | `None`, from `#[serde(default)]` | no restriction |
/// | NULL, which only other programs write | `Some(T::default())` | the strictest value |
/// | any other value | `Some` of the value | |
///
/// The strictest value is an empty `disabled_at` (disabled), `erasing_id` or `removing_id` (being
/// erased or removed), `revoked_at` (revoked) or `expires_at` (expired), or an empty list of
/// `operations` or `projects` (the API key may call none).
pub(super) fn null_as_strictest<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer).map(|value| Some(value.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_key_is_active_until_it_expires() {
        let end = humantime::parse_rfc3339("2026-06-01T00:00:00Z").unwrap();
        let state = |expires_at: &str, now| {
            let key = ApiKeyRecord {
                registration_id: Some("0000000000000000".to_owned()),
                expires_at: Some(expires_at.to_owned()),
                ..ApiKeyRecord::default()
            };
            key.state(now)
        };
        let just_before = end - Duration::from_nanos(1);
        let active = state("2026-06-01T00:00:00Z", just_before);
        assert_eq!(active, ApiKeyState::Active);
        assert_eq!(state("2026-06-01T00:00:00Z", end), ApiKeyState::Expired);
        assert_eq!(state("tomorrow", just_before), ApiKeyState::Expired);
    }
}
