//! Names that people choose freely: of accounts and of keys.

use crate::base::{FieldError, text};

const CHARS_MAX: usize = 80;

/// Checks a name and trims it: 1 to 80 characters, none that is invisible or turns the direction of text (it would let a name imitate others).
///
/// # Errors
/// The fault, at `pointer`.
pub(super) fn check(name: &str, pointer: &str) -> Result<String, FieldError> {
    // As it was sent: what trimming would take away counts too.
    if name.trim().is_empty() || name.chars().count() > CHARS_MAX {
        return Err(FieldError::new(pointer, "length", format!("A name has 1 to {CHARS_MAX} characters.")));
    }
    text::label_fault(pointer, name).map_or_else(|| Ok(name.trim().to_owned()), Err)
}
