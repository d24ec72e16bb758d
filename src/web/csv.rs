//! CSV for people who open it in a spreadsheet.

/// A text that begins like a formula gets an apostrophe, so that a spreadsheet shows it instead of running it. Numbers need none: one with a
/// minus is a number.
pub fn inert_text(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) { format!("'{text}") } else { text.to_owned() }
}
