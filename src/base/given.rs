//! Fields of a PATCH that can be left out, set to null, or given: `Option<Option<T>>` with [`given`].

use serde::{Deserialize, Deserializer};

/// For `#[serde(default, deserialize_with = "given")]`: absent is `None`, null is `Some(None)`.
///
/// # Errors
/// Those of `T`.
pub fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(deserializer).map(Some)
}
