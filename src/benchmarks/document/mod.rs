//! From bytes to a typed document: plain or wrapped, any version from none to 0.8 and later (evidence.md 1 and 2).
//!
//! Invariants: unknown keys are ignored; a known key of the wrong type is refused with its place; sizes are bounded before anything is
//! unpacked or kept. Numbers are read as f64; an absent one is `None`, never 0.

mod fields;
mod model;
mod plain;
mod unpack;
mod wrapped;

use serde_json::{Map, Value};

use super::json::{self, DEPTH_MAX, Unreadable, UnreadableCode};

pub use fields::{clean, whole_of};
pub use model::{Args, Document, Metadata, RawCell, RawPrefill, Sample, Stats, SummaryEntry, Telemetry, Version, Wrapper};
pub use plain::size;
pub use unpack::{PACKED_BYTES_MAX, UNPACKED_BYTES_MAX, unpack};

/// Cells of all layers together; more is refused. The rebuilt matrix (levels × contexts) has the same bound.
pub const CELLS_MAX: usize = 4_096;

/// A submission as the API takes it: what stands beside the document, the document, and where it stands in the bytes.
#[derive(Debug)]
pub struct Envelope {
    pub fields: Map<String, Value>,
    pub document: Value,
    pub document_span: std::ops::Range<usize>,
}

/// Reads a body `{"document": …, …}` under the same rules as a document: serde would refuse the bare NaN of telemetry and keep doubled keys.
/// Pointers of a fault are those of the body.
///
/// # Errors
/// [`Unreadable`] when the body is no JSON object by the rules, or has no `document`.
pub fn read_envelope(bytes: &[u8]) -> Result<Envelope, Unreadable> {
    let parsed = json::parse_with_span(bytes, Some("document"), DEPTH_MAX + 1)?;
    let Value::Object(mut fields) = parsed.value else {
        return Err(Unreadable::new("", UnreadableCode::NotAnObject, "The body is not a JSON object."));
    };
    match (fields.remove("document"), parsed.span) {
        (Some(document), Some(document_span)) => Ok(Envelope { fields, document, document_span }),
        _ => Err(Unreadable::new("/document", UnreadableCode::NotARunDocument, "The body has no document.")),
    }
}

/// Reads plain JSON, or gzip of it.
///
/// # Errors
/// [`Unreadable`] with the place and a reason code.
pub fn read_value(bytes: &[u8]) -> Result<Value, Unreadable> {
    json::parse(&unpack(bytes)?)
}

impl Document {
    /// Reads the typed view of a parsed document.
    ///
    /// # Errors
    /// [`Unreadable`] when it is not a run document, or a known field has the wrong type.
    pub fn of(value: &Value) -> Result<Self, Unreadable> {
        let Value::Object(top) = value else {
            let detail = format!("A run document is a JSON object, not {}.", fields::kind(value));
            return Err(Unreadable::new("", UnreadableCode::NotAnObject, detail));
        };
        if top.contains_key("schema") { wrapped::document(top) } else { plain::document(top) }
    }
}
