//! The JSON body: strict, and with a pointer to what is wrong.
//!
//! Refused: unknown fields (the struct says `deny_unknown_fields`), a key that stands twice in an object, the NUL character in any string or
//! key (PostgreSQL's text cannot hold it), nesting beyond serde_json's 128 levels, anything after the value. An absent body is read as `{}`.

use std::{collections::HashSet, future::Future, ops::Deref, pin::Pin};

use actix_web::{FromRequest, HttpRequest, dev::Payload, http::header};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, MapAccess, SeqAccess, Visitor},
};
use serde_path_to_error::{Path, Segment};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use super::body::{self, Body, DEFAULT_BYTES_MAX};
use crate::base::{Code, Error, FieldError, Result};

/// A body that does not fit this many bytes is parsed off the thread that serves requests.
const INLINE_BYTES_MAX: usize = 262_144;

/// A list that is short enough to be given whole.
#[derive(Debug, Serialize, ToSchema)]
pub struct Listed<T> {
    pub data: Vec<T>,
}

/// The body as `T`; at most `LIMIT` bytes, unpacked. For run uploads: `Json<T, { body::RUN_BYTES_MAX }>`.
#[derive(Debug)]
pub struct Json<T, const LIMIT: usize = DEFAULT_BYTES_MAX> {
    value: T,
    body: Body,
}

impl<T, const LIMIT: usize> Json<T, LIMIT> {
    pub fn into_inner(self) -> T {
        self.value
    }

    /// What the body says, whatever its spacing and the order of its keys: the same for equal JSON values.
    pub fn fingerprint(&self) -> [u8; 32] {
        // The keys of a `Value` are sorted; an absent body is `null` here, which no other body is.
        let value: serde_json::Value = serde_json::from_slice(&self.body).unwrap_or_default();
        Sha256::digest(value.to_string()).into()
    }
}

impl<T, const LIMIT: usize> Deref for Json<T, LIMIT> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: DeserializeOwned + Send + 'static, const LIMIT: usize> FromRequest for Json<T, LIMIT> {
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self>>>>;

    fn from_request(req: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let media_type = check_content_type(req);
        let body = body::read(req.headers(), payload.take(), LIMIT);
        Box::pin(async move {
            media_type?;
            let body = body.await?;
            if body.len() <= INLINE_BYTES_MAX {
                return Ok(Self { value: parse(&body)?, body });
            }
            let job = move || parse(&body).map(|value| Self { value, body });
            actix_web::web::block(job).await.map_err(Error::internal)?
        })
    }
}

/// For routes that read JSON themselves; a body of no stated type passes.
///
/// # Errors
/// `unsupported_media_type`.
pub fn check_content_type(req: &HttpRequest) -> Result<()> {
    let Some(value) = req.headers().get(header::CONTENT_TYPE) else { return Ok(()) };
    let text = value.to_str().unwrap_or_default().to_ascii_lowercase();
    let mut parts = text.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default();
    let json = essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"));
    let utf8 = parts.filter_map(|p| p.strip_prefix("charset=")).all(|c| matches!(c.trim_matches('"'), "utf-8" | "utf8" | "us-ascii"));
    if json && utf8 {
        return Ok(());
    }
    Err(Error::new(Code::UnsupportedMediaType, "Content-Type must be application/json, in UTF-8."))
}

/// Reads `T` out of JSON text by the rules of this module; also for JSON that came another way.
///
/// # Errors
/// `malformed_request` with line and column when it is no JSON, `invalid_input` with a pointer when it is not a `T`.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    let bytes = if bytes.iter().all(u8::is_ascii_whitespace) { b"{}" } else { bytes };
    match serde_json::from_slice::<Strict>(bytes) {
        Ok(Strict) => {}
        Err(error) if error.is_data() => return Err(explain::<Strict>(bytes)),
        Err(error) => return Err(malformed(&error)),
    }
    if bytes.iter().find(|b| !b.is_ascii_whitespace()) != Some(&b'{') {
        // serde would take an array for a struct, field by field.
        return Err(Error::invalid("", "wrong_type", "The body must be a JSON object."));
    }
    // Tracking the path costs time, so it is done only when there is something to explain.
    serde_json::from_slice(bytes).map_err(|_| explain::<T>(bytes))
}

fn malformed(error: &serde_json::Error) -> Error {
    let message = error.to_string();
    let what = message.split(" at line ").next().unwrap_or_default();
    let detail = format!("The body is not valid JSON: {what}, at line {}, column {}.", error.line(), error.column());
    Error::new(Code::MalformedRequest, detail)
}

fn explain<T: DeserializeOwned>(bytes: &[u8]) -> Error {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    match serde_path_to_error::deserialize::<_, T>(&mut deserializer) {
        Ok(_) => Error::internal("a body was refused and then accepted"),
        Err(error) if error.inner().is_data() => {
            let message = error.inner().to_string();
            let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(text, _)| text);
            Error::invalid_fields(vec![fault(message, pointer(error.path()))])
        }
        Err(error) => malformed(error.inner()),
    }
}

/// RFC 6901.
fn pointer(path: &Path) -> String {
    let mut text = String::new();
    for segment in path {
        text.push('/');
        match segment {
            Segment::Seq { index } => text.push_str(&index.to_string()),
            Segment::Map { key } => push_escaped(&mut text, key),
            Segment::Enum { variant } => push_escaped(&mut text, variant),
            Segment::Unknown => text.push('?'),
        }
    }
    text
}

fn push_escaped(text: &mut String, key: &str) {
    text.push_str(&key.replace('~', "~0").replace('/', "~1"));
}

/// serde's message as one of our codes. Serde tells kinds of errors apart only by their text.
pub(super) fn fault(message: &str, mut pointer: String) -> FieldError {
    let named = message.split('`').nth(1).unwrap_or_default();
    let (code, names_field) = match message {
        m if m.starts_with("unknown field") => ("unknown_field", true),
        m if m.starts_with("missing field") => ("missing_field", true),
        m if m.starts_with("duplicate field") => ("duplicate_field", true),
        m if m.starts_with("invalid type") || m.starts_with("data did not match any variant") => ("wrong_type", false),
        m if m.starts_with("unknown variant") => ("unknown_value", false),
        m if m.starts_with(NUL_MESSAGE) => ("nul_character", false),
        _ => ("invalid_value", false),
    };
    let mut last = String::from("/");
    push_escaped(&mut last, named);
    if names_field && !named.is_empty() && !pointer.ends_with(&last) {
        pointer.push_str(&last);
    }
    FieldError::new(pointer, code, sentence(message))
}

/// The message as a sentence of bounded length: it may quote the client's own value.
fn sentence(message: &str) -> String {
    let mut chars = message.chars();
    let mut text: String = chars.next().into_iter().flat_map(char::to_uppercase).chain(chars.take(299)).collect();
    text.push('.');
    text
}

const NUL_MESSAGE: &str = "the NUL character is not allowed";

/// Accepts any JSON without NUL characters and without a key that stands twice; keeps nothing.
struct Strict;

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Strict;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<Strict, E> {
        Ok(Strict)
    }
    fn visit_bool<E>(self, _: bool) -> Result<Strict, E> {
        Ok(Strict)
    }
    fn visit_i64<E>(self, _: i64) -> Result<Strict, E> {
        Ok(Strict)
    }
    fn visit_u64<E>(self, _: u64) -> Result<Strict, E> {
        Ok(Strict)
    }
    fn visit_f64<E>(self, _: f64) -> Result<Strict, E> {
        Ok(Strict)
    }
    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Strict, E> {
        if text.contains('\0') { Err(E::custom(NUL_MESSAGE)) } else { Ok(Strict) }
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Strict, A::Error> {
        while items.next_element::<Strict>()?.is_some() {}
        Ok(Strict)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Strict, A::Error> {
        use serde::de::Error as _;
        let mut seen = HashSet::new();
        while let Some(key) = entries.next_key::<String>()? {
            if key.contains('\0') {
                return Err(A::Error::custom(NUL_MESSAGE));
            }
            if seen.contains(&key) {
                return Err(A::Error::custom(format_args!("duplicate field `{key}`")));
            }
            entries.next_value::<Strict>()?;
            seen.insert(key);
        }
        Ok(Strict)
    }
}
