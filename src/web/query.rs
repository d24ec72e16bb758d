//! The query string as a struct: unknown, repeated and mistyped parameters are 422 with the pointer `?name`.

use std::{
    future::{Ready, ready},
    ops::Deref,
};

use actix_web::{FromRequest, HttpMessage, HttpRequest, dev::Payload};
use serde::de::DeserializeOwned;
use url::form_urlencoded;

use super::json;
use crate::base::{Error, FieldError, Result};

/// The parameters as `T`, a flat struct with `deny_unknown_fields`.
#[derive(Debug)]
pub struct Query<T> {
    value: T,
    binding: String,
}

/// Says that somebody looked at the query string; `api` refuses parameters that nobody reads.
pub(super) struct QueryRead;

impl<T> Query<T> {
    pub fn into_inner(self) -> T {
        self.value
    }

    /// The address of this list at another cursor: path and parameters as bound, and `limit` is the default again.
    pub fn address(&self, cursor: Option<&str>) -> String {
        let bound = self.binding.trim_end_matches('?');
        let Some(cursor) = cursor else { return bound.to_owned() };
        let cursor: String = form_urlencoded::byte_serialize(cursor.as_bytes()).collect();
        format!("{bound}{}cursor={cursor}", if bound.contains('?') { '&' } else { '?' })
    }

    /// What a cursor of this list is bound to: the path and every parameter but `cursor` and `limit`.
    pub fn binding(&self) -> &str {
        &self.binding
    }
}

impl<T: DeserializeOwned> Query<T> {
    /// The same, out of parameters that came another way: a form's, say, without the fields that were left empty.
    ///
    /// # Errors
    /// `invalid_input` with the first fault.
    pub fn parse(path: &str, query: &str) -> Result<Self> {
        Ok(Self { value: read(query)?, binding: binding(path, query) })
    }
}

impl<T> Deref for Query<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: DeserializeOwned> FromRequest for Query<T> {
    type Error = Error;
    type Future = Ready<Result<Self>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        req.extensions_mut().insert(QueryRead);
        let read = read(req.query_string()).map(|value| Self { value, binding: binding(req.path(), req.query_string()) });
        ready(read)
    }
}

fn read<T: DeserializeOwned>(query: &str) -> Result<T> {
    check_pairs(query)?;
    let deserializer = serde_urlencoded::Deserializer::new(form_urlencoded::parse(query.as_bytes()));
    serde_path_to_error::deserialize(deserializer).map_err(|error| {
        let at = error.path().iter().next().map(ToString::to_string).filter(|name| name != "?").unwrap_or_default();
        let mut fault = json::fault(&error.inner().to_string(), format!("?{at}"));
        if fault.code == "unknown_field" || fault.code == "missing_field" {
            // `fault` joins names with a slash.
            let name = fault.pointer.rsplit(['/', '?']).next().unwrap_or_default();
            fault.pointer = format!("?{name}");
        } else if is_number_fault(&fault.detail) {
            fault.code = "wrong_type".into();
        }
        Error::invalid_fields(vec![fault])
    })
}

/// How the standard library says that a text is no number or no truth value.
fn is_number_fault(detail: &str) -> bool {
    ["Invalid digit", "Cannot parse", "Number too", "Provided string", "Invalid float"].iter().any(|start| detail.starts_with(start))
}

fn check_pairs(query: &str) -> Result<()> {
    let mut seen = std::collections::HashSet::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let fault = |code: &'static str, detail: &str| Err(Error::invalid(format!("?{name}"), code, detail));
        if name.contains('\0') || value.contains('\0') {
            return fault("nul_character", "The NUL character is not allowed.");
        }
        // Bytes that are no UTF-8 have become U+FFFD, which nobody searches for.
        if name.contains(char::REPLACEMENT_CHARACTER) || value.contains(char::REPLACEMENT_CHARACTER) {
            return fault("invalid_value", "The parameter is not UTF-8.");
        }
        if !seen.insert(name.clone()) {
            return fault("duplicate_field", "The parameter stands more than once.");
        }
    }
    Ok(())
}

fn binding(path: &str, query: &str) -> String {
    let mut pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name != "cursor" && name != "limit").collect();
    pairs.sort();
    form_urlencoded::Serializer::new(format!("{path}?")).extend_pairs(pairs).finish()
}

/// Every parameter as a fault, for requests that take none.
pub(super) fn unread(query: &str) -> Option<Error> {
    let fault = |name: &str| FieldError::new(format!("?{name}"), "unknown_field", "This request takes no such parameter.");
    let faults: Vec<_> = form_urlencoded::parse(query.as_bytes()).map(|(name, _)| fault(&name)).collect();
    (!faults.is_empty()).then(|| Error::invalid_fields(faults))
}
