//! How attributes that restrict access are read: see "Other programs" in [`crate::store`].

use serde::{Deserialize, Deserializer};

/// Reads an attribute that restricts access. NULL, which only other programs write, becomes
/// `Some(T::default())`: an empty time of revocation or expiry, which makes a key invalid, an empty
/// list of operations, or an empty `removing_id`, with which a team counts as being removed. For a
/// missing attribute, `#[serde(default)]` gives `None`: there is no restriction.
pub(crate) fn null_as_strictest<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer).map(|value| Some(value.unwrap_or_default()))
}
