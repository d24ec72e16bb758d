//! Names that people choose freely: of accounts and of keys.

use crate::base::FieldError;

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
    if name.chars().any(|c| c.is_control() || is_invisible(c)) {
        return Err(FieldError::new(pointer, "characters", "A name has no control characters and none that is invisible."));
    }
    Ok(name.trim().to_owned())
}

const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
