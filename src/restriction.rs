//! How attributes that restrict access are read: see "Other programs" in [`crate::store`].

use serde::{Deserialize, Deserializer};

/// Reads an attribute that restricts access. If it is missing, `#[serde(default)]` makes it `None`:
/// there is no restriction. NULL, which only other programs write, becomes `Some(T::default())`. A
/// key then counts as revoked or expired or may call no operation, and a team counts as being
/// removed.
pub(crate) fn null_as_strictest<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    attribute: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(attribute).map(|value| Some(value.unwrap_or_default()))
}
