//! Free text from outside: the one rule for characters that show as nothing or turn the direction of what stands beside them, with which a text
//! imitates another or hides a part of itself.
//!
//! Short texts (names, versions, quantizations) and long ones (notes, descriptions, launch commands) with such a character are refused
//! ([`label_fault`], [`prose_fault`]). Where a refusal would come too late they are cleaned: strings of documents and answers of engines
//! ([`label`]), a decision's reason and the answer to it ([`prose`]).

use super::FieldError;

/// Whether a character is neither seen nor space: control characters, direction marks and overrides, zero widths, fillers, tags.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e007f}')
}

/// The fault of a short text that hides a character.
pub fn label_fault(pointer: &str, text: &str) -> Option<FieldError> {
    (!is_label(text)).then(|| hidden_fault(pointer))
}

/// The fault of a text of several lines that hides a character.
pub fn prose_fault(pointer: &str, text: &str) -> Option<FieldError> {
    (!is_prose(text)).then(|| hidden_fault(pointer))
}

fn hidden_fault(pointer: &str) -> FieldError {
    FieldError::new(pointer, "characters", "None of the characters is a control character or invisible.")
}

/// Whether every character of a one-line text can be seen.
pub fn is_label(text: &str) -> bool {
    !text.chars().any(is_hidden)
}

/// Whether every character of a text of several lines can be seen.
pub fn is_prose(text: &str) -> bool {
    text.chars().all(is_prose_char)
}

fn is_prose_char(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\t') || !is_hidden(c)
}

/// The text on one line and without what is hidden, cut at `chars_max`.
pub fn label(text: &str, chars_max: usize) -> String {
    let spaced = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c });
    spaced.filter(|c| !is_hidden(*c)).take(chars_max).collect::<String>().trim().to_owned()
}

/// The text without what is hidden, with the line ends of one system and no space around it.
pub fn prose(text: &str) -> String {
    text.replace("\r\n", "\n").chars().filter(|c| *c != '\r' && is_prose_char(*c)).collect::<String>().trim().to_owned()
}
