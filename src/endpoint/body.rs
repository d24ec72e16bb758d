//! A request's body on its way to the engine: an object whose members stay as they were written, in their order.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// A JSON object, member by member.
#[derive(Debug, Default)]
pub struct Passing(Vec<(String, Box<RawValue>)>);

impl Passing {
    fn get<'a, T: Deserialize<'a>>(&'a self, name: &str) -> Option<T> {
        let (_, value) = self.0.iter().find(|(key, _)| key == name)?;
        serde_json::from_str(value.get()).ok()
    }

    /// The model asked for; none when the member is missing or no text.
    pub fn model(&self) -> Option<String> {
        self.get("model")
    }

    pub fn is_stream(&self) -> bool {
        self.get("stream").unwrap_or(false)
    }

    /// The object as JSON, with this model.
    pub fn with_model(&self, model: &str) -> String {
        let model = serde_json::Value::from(model).to_string();
        let mut text = String::from("{");
        for (name, value) in &self.0 {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(&serde_json::Value::from(name.as_str()).to_string());
            text.push(':');
            text.push_str(if name == "model" { &model } else { value.get() });
        }
        text.push('}');
        text
    }
}

impl<'de> Deserialize<'de> for Passing {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Passing;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Passing, A::Error> {
        let mut all = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            all.push(entry);
        }
        Ok(Passing(all))
    }
}
