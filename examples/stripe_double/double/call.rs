//! One request as a handler sees it: where it goes, its parameters, and what to make of them.

use serde_json::{Map, Value, json};

use super::refusal::{Answer, Refusal};

#[derive(Clone, Debug)]
pub struct Call {
    pub method: String,
    /// Without the query.
    pub path: String,
    /// Query and form, as [`super::form::parse`] gives them.
    pub params: Value,
    /// `Stripe-Account`.
    pub account: Option<String>,
    pub idempotency_key: Option<String>,
    pub request_id: String,
}

impl Call {
    /// What one of our own pages does with these parameters.
    pub fn of_page(params: Value) -> Self {
        let text = String::new;
        Self { method: text(), path: text(), params, account: None, idempotency_key: None, request_id: text() }
    }

    /// Refuses what the route does not know, as Stripe does: a misspelt parameter is a fault and not a default.
    pub fn only(&self, known: &[&str]) -> Answer<()> {
        let names = self.params.as_object().into_iter().flat_map(Map::keys);
        match names.into_iter().find(|name| *name != "expand" && !known.contains(&name.as_str())) {
            Some(name) => Err(Refusal::coded("parameter_unknown", format!("Received unknown parameter: {name}"), Some(name))),
            None => Ok(()),
        }
    }

    /// A pointer such as `transfer_data/destination`. Empty text is absent: Stripe's way to unset.
    pub fn text(&self, pointer: &str) -> Option<&str> {
        self.params.pointer(&format!("/{pointer}")).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    pub fn need(&self, pointer: &str) -> Answer<&str> {
        self.text(pointer).ok_or_else(|| Refusal::missing(&bracketed(pointer)))
    }

    pub fn integer(&self, pointer: &str) -> Answer<Option<i64>> {
        let Some(text) = self.text(pointer) else { return Ok(None) };
        let param = bracketed(pointer);
        let fault = || Refusal::coded("parameter_invalid_integer", format!("Invalid integer: {text}"), Some(&param));
        text.parse().map(Some).map_err(|_| fault())
    }

    /// A positive number of the currency's smallest unit.
    pub fn amount(&self, pointer: &str) -> Answer<Option<i64>> {
        let amount = self.integer(pointer)?;
        if amount.is_some_and(|amount| amount < 1) {
            let message = "This value must be greater than or equal to 1.";
            return Err(Refusal::coded("parameter_invalid_integer", message, Some(&bracketed(pointer))));
        }
        Ok(amount)
    }

    pub fn flag(&self, pointer: &str) -> Answer<Option<bool>> {
        match self.text(pointer) {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(other) => Err(Refusal::invalid(format!("Invalid boolean: {other}"), Some(&bracketed(pointer)))),
        }
    }

    pub fn one_of(&self, pointer: &str, choices: &[&str]) -> Answer<Option<&str>> {
        match self.text(pointer) {
            Some(text) if !choices.contains(&text) => {
                let message = format!("Invalid {}: must be one of {}", bracketed(pointer), choices.join(", "));
                Err(Refusal::invalid(message, Some(&bracketed(pointer))))
            }
            found => Ok(found),
        }
    }

    pub fn list(&self, pointer: &str) -> Vec<Value> {
        self.params.pointer(&format!("/{pointer}")).and_then(Value::as_array).cloned().unwrap_or_default()
    }

    pub fn texts(&self, pointer: &str) -> Vec<String> {
        self.list(pointer).iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
    }

    /// The parameters below `pointer`, as a call of their own.
    pub fn below(&self, pointer: &str) -> Self {
        Self { params: self.params.pointer(&format!("/{pointer}")).cloned().unwrap_or(Value::Null), ..self.clone() }
    }

    pub fn has(&self, pointer: &str) -> bool {
        self.params.pointer(&format!("/{pointer}")).is_some()
    }

    /// Writes the given texts into `object` under the same names; empty text unsets.
    pub fn copy(&self, object: &mut Value, names: &[&str]) {
        for name in names {
            match self.params[*name].as_str() {
                Some("") => object[*name] = Value::Null,
                Some(text) => object[*name] = json!(text),
                None => {}
            }
        }
    }

    /// Merges `metadata[...]`; an empty value removes its key.
    pub fn copy_metadata(&self, object: &mut Value) {
        let Some(given) = self.params["metadata"].as_object() else { return };
        let mut kept = object["metadata"].as_object().cloned().unwrap_or_default();
        for (name, value) in given {
            if value == "" {
                kept.remove(name);
            } else {
                kept.insert(name.clone(), value.clone());
            }
        }
        object["metadata"] = Value::Object(kept);
    }
}

/// `a/b` as Stripe writes it: `a[b]`.
fn bracketed(pointer: &str) -> String {
    let mut parts = pointer.split('/');
    let head = parts.next().unwrap_or_default().to_owned();
    parts.fold(head, |text, part| format!("{text}[{part}]"))
}
