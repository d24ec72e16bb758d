//! Finding rows by the beginnings of words, for lists and suggestions.
//!
//! Every word asked for must begin a word of the row. Rows whose name is asked for come first, then rows with all words whole in the name,
//! then whole anywhere, then by beginnings; within a rank in the catalog's order.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::data::Catalog;
use super::hardware_names::HardwareMatch;
use super::model::{HardwareKind, HardwareModel, Model};
use super::tokens;

/// More words than any name has; further ones are not looked at.
const WORDS_MAX: usize = 16;

/// What a list of hardware models is narrowed to. Empty texts narrow nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct HardwareFilter<'a> {
    pub q: &'a str,
    /// In any case.
    pub vendor: Option<&'a str>,
    pub kind: Option<HardwareKind>,
}

/// What a list of models is narrowed to. Empty texts narrow nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct ModelFilter<'a> {
    pub q: &'a str,
    /// Handle of the publishing organization, in any case.
    pub publisher: Option<&'a str>,
}

impl Catalog {
    /// Hardware models for a list. A `q` that is a whole name gives the rows of that name alone: "RTX 3090" does not list the 3090 Ti.
    pub fn search_hardware(&self, filter: HardwareFilter<'_>) -> Vec<&HardwareModel> {
        let named = match self.resolve_hardware(filter.q, None) {
            HardwareMatch::Unknown => self.ranked_hardware(filter.q),
            found => found.candidates(),
        };
        let wanted = |row: &&HardwareModel| {
            filter.vendor.is_none_or(|vendor| row.vendor.eq_ignore_ascii_case(vendor)) && filter.kind.is_none_or(|kind| row.kind == kind)
        };
        named.into_iter().filter(wanted).collect()
    }

    pub fn search_models(&self, filter: ModelFilter<'_>) -> Vec<&Model> {
        let wanted = |row: &&Model| filter.publisher.is_none_or(|publisher| row.publisher.eq_ignore_ascii_case(publisher));
        self.ranked_models(filter.q).into_iter().filter(wanted).collect()
    }

    /// Hardware models to offer while somebody types: "3090" offers the 3090 Ti too, after the 3090.
    pub fn suggest_hardware(&self, typed: &str, limit: usize) -> Vec<&HardwareModel> {
        self.ranked_hardware(typed).into_iter().filter(|row| !row.unofficial).take(limit).collect()
    }

    /// Models to offer while somebody types.
    pub fn suggest_models(&self, typed: &str, limit: usize) -> Vec<&Model> {
        self.ranked_models(typed).into_iter().take(limit).collect()
    }

    fn ranked_hardware(&self, q: &str) -> Vec<&HardwareModel> {
        self.hardware_search.find(q).into_iter().filter_map(|index| self.hardware_models().get(index)).collect()
    }

    fn ranked_models(&self, q: &str) -> Vec<&Model> {
        self.model_search.find(q).into_iter().filter_map(|index| self.models().get(index)).collect()
    }
}

#[derive(Debug, Default)]
pub(super) struct SearchIndex {
    rows: Vec<SearchRow>,
}

#[derive(Debug)]
struct SearchRow {
    /// The name's words written together.
    name: String,
    name_words: BTreeSet<String>,
    /// Words as they stand, and neighbours written together.
    whole: BTreeSet<String>,
    /// Words as they stand. Only these count by their beginnings: "qwen3" does not begin "Qwen 32B".
    single: BTreeSet<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Name,
    WordsOfName,
    Words,
    Beginnings,
}

impl SearchIndex {
    pub(super) fn new<'a>(rows: impl Iterator<Item = (&'a str, Vec<&'a str>)>) -> Self {
        Self { rows: rows.map(|(name, texts)| SearchRow::new(name, &texts)).collect() }
    }

    /// Positions of the rows that fit, best first; all rows if nothing is asked.
    fn find(&self, q: &str) -> Vec<usize> {
        if q.trim().is_empty() {
            return (0..self.rows.len()).collect();
        }
        if tokens::too_long(q) {
            return Vec::new();
        }
        let words: Vec<String> = tokens::words(q).into_iter().take(WORDS_MAX).collect();
        let ranked = self.rows.iter().enumerate().filter_map(|(index, row)| row.rank(&words).map(|rank| (rank, index)));
        let mut found: Vec<(Rank, usize)> = ranked.collect();
        found.sort_unstable();
        found.into_iter().map(|(_, index)| index).collect()
    }
}

impl SearchRow {
    fn new(name: &str, texts: &[&str]) -> Self {
        let cut: Vec<Vec<String>> = texts.iter().map(|text| tokens::words(text)).collect();
        let name_words = tokens::words(name);
        Self {
            name: name_words.concat(),
            name_words: with_joined(&name_words).collect(),
            whole: cut.iter().flat_map(|words| with_joined(words)).collect(),
            single: cut.into_iter().flatten().collect(),
        }
    }

    fn rank(&self, words: &[String]) -> Option<Rank> {
        if words.is_empty() {
            return None;
        }
        if words.concat() == self.name {
            return Some(Rank::Name);
        }
        if words.iter().all(|word| self.name_words.contains(word)) {
            return Some(Rank::WordsOfName);
        }
        if words.iter().all(|word| self.whole.contains(word)) {
            return Some(Rank::Words);
        }
        words.iter().all(|word| self.begins(word)).then_some(Rank::Beginnings)
    }

    fn begins(&self, word: &str) -> bool {
        let next = self.single.range::<str, _>((Bound::Included(word), Bound::Unbounded)).next();
        self.whole.contains(word) || next.is_some_and(|next| next.starts_with(word))
    }
}

/// The words, and every two and three neighbours written together ("3060ti").
fn with_joined(words: &[String]) -> impl Iterator<Item = String> {
    (1..=3).flat_map(|length| words.windows(length).map(<[String]>::concat))
}
