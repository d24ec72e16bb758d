//! Cuts a typed name into comparable words.

use unicode_normalization::UnicodeNormalization;

use super::NAME_CHARS_MAX;

/// Whether `text` is longer than any name we look at; does not walk further than the bound.
pub(super) fn too_long(text: &str) -> bool {
    text.chars().nth(NAME_CHARS_MAX).is_some()
}

/// `text` in compatibility form and lower case, without trade marks.
pub(super) fn fold(text: &str) -> String {
    let unmarked: String = text.chars().filter(|c| !matches!(c, '®' | '™' | '©')).collect();
    let folded: String = unmarked.nfkc().flat_map(char::to_lowercase).collect();
    ["(r)", "(tm)", "(c)"].iter().fold(folded, |text, mark| text.replace(mark, " "))
}

/// The runs of letters and digits of `text`, folded. Everything else separates.
pub(super) fn words(text: &str) -> Vec<String> {
    fold(text).split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}
