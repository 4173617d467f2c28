//! Reads NULL as the strictest value of an attribute that restricts access.

use serde::{Deserialize, Deserializer};

/// Reads an attribute that restricts access:
///
/// | attribute | result | meaning |
/// |---|---|---|
/// | missing | `None`, from `#[serde(default)]` | no restriction |
/// | NULL, which only other programs write | `Some(T::default())` | the strictest value |
/// | any other value | `Some` of the value | |
///
/// The strictest value is an empty `revoked_at` (revoked), an empty `expires_at` (expired), an
/// empty list of `operations` (the API key may call none), or an empty `removing_id` (being
/// removed).
pub(crate) fn null_as_strictest<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer).map(|value| Some(value.unwrap_or_default()))
}
