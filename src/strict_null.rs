//! Reads NULL as the strictest value of an attribute that restricts access.

use serde::{Deserialize, Deserializer};

/// Reads an attribute that restricts access. Without the attribute, `#[serde(default)]` gives
/// `None`, which means no restriction. NULL, which only other programs write, becomes
/// `Some(T::default())`. This value is the strictest:
///
/// - an empty `revoked_at` or `expires_at`: the API key is revoked or expired
/// - an empty list of `operations`: the API key may call none
/// - an empty `removing_id`: the team is being removed
pub(crate) fn null_as_strictest<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer).map(|value| Some(value.unwrap_or_default()))
}
