//! Reading known keys of an object: absent and null are `None`, a wrong type is refused with its place.

use serde_json::{Map, Value};

use crate::benchmarks::json::{Unreadable, UnreadableCode, push_key};

/// Largest whole number that f64 holds exactly.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;
/// Strings longer than this are cut when shown; the stored document keeps them.
const SHOWN_CHARS_MAX: usize = 300;

/// Where an object stands, linked to its parent on the stack; made into text only for a refusal.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    Root,
    Key(&'a Place<'a>, &'a str),
    Index(&'a Place<'a>, usize),
}

impl Place<'_> {
    pub(super) fn pointer(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Key(parent, key) => {
                let mut pointer = parent.pointer();
                push_key(&mut pointer, key);
                pointer
            }
            Self::Index(parent, index) => format!("{}/{index}", parent.pointer()),
        }
    }

    pub(super) fn wrong_type(&self, wanted: &str, found: &Value) -> Unreadable {
        Unreadable::new(self.pointer(), UnreadableCode::WrongType, format!("Expected {wanted}, found {}.", kind(found)))
    }
}

pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// An object and its place.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    pub map: &'a Map<String, Value>,
    pub place: Place<'a>,
}

impl<'a> Fields<'a> {
    pub(super) fn of(value: &'a Value, place: Place<'a>) -> Result<Self, Unreadable> {
        match value {
            Value::Object(map) => Ok(Self { map, place }),
            other => Err(place.wrong_type("an object", other)),
        }
    }

    fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|v| !v.is_null())
    }

    fn read<T>(&self, key: &str, wanted: &str, read: impl Fn(&'a Value) -> Option<T>) -> Result<Option<T>, Unreadable> {
        match self.get(key) {
            None => Ok(None),
            Some(value) => read(value).map(Some).ok_or_else(|| Place::Key(&self.place, key).wrong_type(wanted, value)),
        }
    }

    pub(super) fn number(&self, key: &str) -> Result<Option<f64>, Unreadable> {
        self.read(key, "a number", Value::as_f64)
    }

    /// A whole number of at least 0.
    pub(super) fn whole(&self, key: &str) -> Result<Option<u64>, Unreadable> {
        match self.get(key) {
            None => Ok(None),
            Some(value) => whole(value, Place::Key(&self.place, key)).map(Some),
        }
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&'a str>, Unreadable> {
        self.read(key, "a string", Value::as_str)
    }

    /// A string cleaned for showing; empty is `None`.
    pub(super) fn shown(&self, key: &str) -> Result<Option<String>, Unreadable> {
        Ok(self.text(key)?.map(clean).filter(|t| !t.is_empty()))
    }

    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, Unreadable> {
        self.read(key, "a boolean", Value::as_bool)
    }

    pub(super) fn list(&self, key: &str) -> Result<Option<&'a Vec<Value>>, Unreadable> {
        self.read(key, "an array", Value::as_array)
    }

    pub(super) fn object(&self, key: &str) -> Result<Option<&'a Map<String, Value>>, Unreadable> {
        self.read(key, "an object", Value::as_object)
    }

    /// A list of whole numbers.
    pub(super) fn wholes(&self, key: &str) -> Result<Vec<u64>, Unreadable> {
        let place = Place::Key(&self.place, key);
        let items = self.list(key)?.map(Vec::as_slice).unwrap_or_default();
        items.iter().enumerate().map(|(i, item)| whole(item, Place::Index(&place, i))).collect()
    }

    /// The number under `key` where it is one; for blocks whose shape nobody promised (telemetry, wrapper details).
    pub(super) fn lenient_number(&self, key: &str) -> Option<f64> {
        self.get(key).and_then(Value::as_f64)
    }

    pub(super) fn lenient_text(&self, key: &str) -> Option<String> {
        self.get(key).and_then(Value::as_str).map(clean).filter(|t| !t.is_empty())
    }

    pub(super) fn lenient_object(&self, key: &str) -> Option<&'a Map<String, Value>> {
        self.get(key).and_then(Value::as_object)
    }
}

pub(super) fn whole(value: &Value, place: Place<'_>) -> Result<u64, Unreadable> {
    let number = value.as_f64().ok_or_else(|| place.wrong_type("a number", value))?;
    whole_of(number)
        .ok_or_else(|| Unreadable::new(place.pointer(), UnreadableCode::OutOfRange, "Expected a whole number from 0 to 2^53.".to_owned()))
}

/// The whole number a float is, if it is one of at least 0.
pub fn whole_of(number: f64) -> Option<u64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be whole and in range")]
    ((0.0..=WHOLE_MAX).contains(&number) && number.fract() == 0.0).then_some(number as u64)
}

/// Hostile text made harmless for showing: no control or direction characters, one line, bounded length.
pub fn clean(text: &str) -> String {
    crate::base::text::label(text, SHOWN_CHARS_MAX)
}
