//! Faults of one request, gathered so that the client sees all of them at once.

use serde_json::Value;

use super::{Error, FieldError, Result};

/// What is wrong so far, and members of the problem body that belong to it (`candidates`).
#[derive(Default)]
pub struct Faults {
    fields: Vec<FieldError>,
    extra: Vec<(String, Value)>,
}

impl Faults {
    pub fn add(&mut self, pointer: &str, code: &'static str, detail: impl Into<String>) {
        self.fields.push(FieldError::new(pointer, code, detail));
    }

    pub fn extend(&mut self, faults: impl IntoIterator<Item = FieldError>) {
        self.fields.extend(faults);
    }

    /// The value; or nothing, and the faults of the error kept. An error without faulty fields becomes one of the whole request.
    pub fn take<T>(&mut self, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                if error.fields().is_empty() {
                    self.add("", error.code().as_str(), error.detail());
                }
                self.fields.extend_from_slice(error.fields());
                self.extra.extend(error.extra().iter().map(|(name, value)| (name.clone(), value.clone())));
                None
            }
        }
    }

    /// # Errors
    /// `invalid_input` with everything found.
    pub fn finish(self) -> Result<()> {
        if self.fields.is_empty() {
            return Ok(());
        }
        let error = Error::invalid_fields(self.fields);
        Err(self.extra.into_iter().fold(error, |error, (name, value)| error.with_extra(&name, value)))
    }
}
