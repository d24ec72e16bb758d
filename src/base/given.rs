//! Fields of requests whose reading differs from serde's own: those of a PATCH, which can be left out, set to null, or given
//! (`Option<Option<T>>` with [`given`]), instants ([`optional_instant`]), and objects inside a body ([`object`]).

use std::{fmt, marker::PhantomData};

use chrono::{DateTime, Datelike, Utc};
use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, Visitor},
};

/// For `#[serde(default, deserialize_with = "given")]`: absent is `None`, null is `Some(None)`.
///
/// # Errors
/// Those of `T`.
pub fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(deserializer).map(Some)
}

/// For `#[serde(default, deserialize_with = "optional_instant")]`. chrono's own reader takes years of six digits too, which no answer could repeat:
/// RFC 3339 has four.
///
/// # Errors
/// For what is no instant of RFC 3339 before the year 9999.
pub fn optional_instant<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<DateTime<Utc>>, D::Error> {
    let text = Option::<std::borrow::Cow<str>>::deserialize(deserializer)?;
    text.map(|text| read_instant(&text).ok_or_else(|| de::Error::custom(INSTANT_MESSAGE))).transpose()
}

/// [`optional_instant`] for a field of a PATCH.
///
/// # Errors
/// As there.
pub fn given_instant<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<DateTime<Utc>>>, D::Error> {
    optional_instant(deserializer).map(Some)
}

const INSTANT_MESSAGE: &str = "an instant is RFC 3339, before the year 9999: 2026-11-30T12:00:00Z";

fn read_instant(text: &str) -> Option<DateTime<Utc>> {
    let at = DateTime::parse_from_rfc3339(text).ok()?.to_utc();
    // A leap second or an offset may carry the instant over the end of the last year.
    (0..9_999).contains(&at.year()).then_some(at)
}

/// For members that are structs: `#[serde(deserialize_with = "object")]`. serde would take an array for a struct, field by field.
///
/// # Errors
/// Those of `T`, and for what is no object.
pub fn object<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    optional_object(deserializer)?.ok_or_else(|| de::Error::invalid_type(de::Unexpected::Unit, &"an object"))
}

/// [`object`] for `#[serde(default)]` members that may be left out or null.
///
/// # Errors
/// As there.
pub fn optional_object<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    deserializer.deserialize_any(ObjectVisitor(PhantomData))
}

/// [`object`] for a field of a PATCH.
///
/// # Errors
/// As there.
pub fn given_object<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<T>>, D::Error> {
    optional_object(deserializer).map(Some)
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }
    fn visit_unit<E>(self) -> Result<Option<T>, E> {
        Ok(None)
    }
    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Option<T>, A::Error> {
        T::deserialize(de::value::MapAccessDeserializer::new(members)).map(Some)
    }
}
