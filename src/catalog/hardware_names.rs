//! Which hardware models a name can mean. Pure, and never by substring.
//!
//! A name is cut into words; vendor and brand words say nothing (but must not contradict the row) and sizes are set apart. What is left is
//! of two sorts:
//! - **core** words (`rtx`, `3090`, `ti`): must be the same set as in one of the row's spellings (slug, name, alias), so that "RTX 3090"
//!   is not a 3090 Ti and "A6000" not an "RTX 6000";
//! - **variant** words (`sxm5`, `ada`, `pro`, `max-q`, `40-core`): may be left out, and then every row with the same core is a candidate.
//!   So "H100" is PCIe, SXM and NVL, and "RTX 6000" the Quadro, the Ada and three Blackwells, although the CSV gives one of them the alias.
//!
//! Rows whose names differ only in size share all spellings without a size. Candidates are then narrowed by a size in the name (which must
//! fit), by the memory asked for (which may fit none: then it is ignored), by an exact slug, and last by an exact tool string: nvidia-smi
//! prints "NVIDIA H200" for the SXM part, since the NVL part prints its own. Unofficial memory swaps are candidates only when the name or
//! the memory says so.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::data::rows_at;
use super::model::{HardwareModel, within_tolerance};
use super::tokens;
use crate::base::units::MIB_PER_GIB;

/// What a hardware name means.
#[derive(Debug, Clone, PartialEq)]
pub enum HardwareMatch<'a> {
    One(&'a HardwareModel),
    /// At least two, in the catalog's order.
    Ambiguous(Vec<&'a HardwareModel>),
    Unknown,
}

impl<'a> HardwareMatch<'a> {
    pub fn one(&self) -> Option<&'a HardwareModel> {
        match self {
            Self::One(row) => Some(row),
            Self::Ambiguous(_) | Self::Unknown => None,
        }
    }

    /// Every row the name can mean.
    pub fn candidates(self) -> Vec<&'a HardwareModel> {
        match self {
            Self::One(row) => vec![row],
            Self::Ambiguous(rows) => rows,
            Self::Unknown => Vec::new(),
        }
    }
}

/// Companies. A tool string starts with one of these.
const COMPANIES: &[(&str, &str)] =
    &[("nvidia", "NVIDIA"), ("amd", "AMD"), ("intel", "Intel"), ("apple", "Apple"), ("qualcomm", "Qualcomm"), ("habana", "Intel")];
/// Brands that add nothing to the number after them.
const BRANDS: &[(&str, &str)] =
    &[("geforce", "NVIDIA"), ("tesla", "NVIDIA"), ("ati", "AMD"), ("radeon", "AMD"), ("instinct", "AMD"), ("arc", "Intel")];
const NOISE: &[&str] = &["gpu", "gpus", "graphics", "card", "corporation", "edition", "generation", "memory", "vram", "oam", "w", "with"];
/// Prefixes people glue to the next word ("geforcertx3090").
const GLUED: &[&str] = &["nvidia", "geforce", "radeon", "tesla"];
const ARCHITECTURES: &[&str] = &["pascal", "volta", "turing", "ampere", "ada", "lovelace", "hopper", "grace", "blackwell"];
const VARIANTS: &[&str] = &[
    "pcie",
    "pci",
    "sxm",
    "sxm2",
    "sxm3",
    "sxm4",
    "sxm5",
    "sxm6",
    "nvl",
    "hbm2",
    "hbm2e",
    "hbm3",
    "hbm3e",
    "quadro",
    "server",
    "workstation",
    "ws",
    "maxq",
    MODDED,
];
/// Series words that may be dropped before a number of three or more digits ("3090", "A6000").
const SERIES: &[&str] = &["rtx", "gtx", "rx"];
const MODDED: &str = "modded";
/// A longer number is no memory size.
const MEMORY_DIGITS_MAX: usize = 6;

#[derive(Debug, Default)]
pub(super) struct HardwareNames {
    /// Sorted core words, joined by a space, to rows.
    by_core: HashMap<String, HashSet<usize>>,
    /// Words written together, to the words.
    split: HashMap<String, Vec<String>>,
    traits: Vec<Traits>,
}

/// What is compared once the core is equal.
#[derive(Debug, Default)]
struct Traits {
    variants: BTreeSet<String>,
    /// Sizes in GiB that stand in the row's own spellings, beside those of the columns.
    spelled_gib: Vec<f64>,
    /// Whole strings as tools print them, words written together.
    printed: HashSet<String>,
    size_in_name: bool,
}

/// A name cut up. `words` are core and variant words in the order written.
#[derive(Debug, Clone, Default)]
struct Parsed {
    words: Vec<String>,
    sizes_gib: Vec<f64>,
    vendors: BTreeSet<&'static str>,
}

impl HardwareNames {
    pub(super) fn new(rows: &[HardwareModel]) -> Self {
        let mut names = Self::default();
        for row in rows {
            for spelling in spellings(row) {
                names.learn_split(&parse(spelling).words);
            }
        }
        let mut families: HashMap<String, HashSet<usize>> = HashMap::new();
        for (index, row) in rows.iter().enumerate() {
            families.entry(names.family(row)).or_default().insert(index);
        }
        for (index, row) in rows.iter().enumerate() {
            let alone = HashSet::from([index]);
            let family = families.get(&names.family(row)).unwrap_or(&alone);
            let row_traits = names.learn(index, row, family);
            names.traits.push(row_traits);
        }
        names
    }

    /// Remembers how `words` are told apart when written together; the finer cut wins.
    fn learn_split(&mut self, words: &[String]) {
        for list in [words.to_vec(), core(words)].iter().flat_map(|list| [list.clone(), without_series(list)]) {
            let known = self.split.entry(list.concat()).or_default();
            if known.len() < list.len() {
                *known = list;
            }
        }
    }

    /// The name without size and without the mark of an unofficial swap.
    fn family(&self, row: &HardwareModel) -> String {
        let words = self.cut(&parse(&row.name).words);
        key(words.iter().filter(|word| *word != MODDED))
    }

    fn learn(&mut self, index: usize, row: &HardwareModel, family: &HashSet<usize>) -> Traits {
        let mut traits = Traits { size_in_name: !parse(&row.name).sizes_gib.is_empty(), ..Traits::default() };
        traits.variants.extend(tokens::words(&row.architecture).into_iter().filter(|word| ARCHITECTURES.contains(&word.as_str())));
        for spelling in spellings(row) {
            let parsed = parse(spelling);
            let words = self.cut(&parsed.words);
            traits.variants.extend(words.iter().filter(|word| is_variant(word, &words)).cloned());
            for core in [core(&words), core(&without_series(&words))].into_iter().filter(|core| !core.is_empty()) {
                let owners = self.by_core.entry(key(core.iter())).or_default();
                owners.insert(index);
                if parsed.sizes_gib.is_empty() {
                    owners.extend(family);
                }
            }
            traits.spelled_gib.extend(parsed.sizes_gib);
        }
        if traits.variants.iter().any(|word| word.starts_with("sxm")) {
            traits.variants.insert("sxm".to_owned());
        }
        for alias in &row.aliases {
            let words = tokens::words(alias);
            if words.first().is_some_and(|first| COMPANIES.iter().any(|(company, _)| company == first)) {
                traits.printed.insert(words.concat());
            }
        }
        traits
    }

    /// The words told apart as in a known spelling, if `words` written together are one.
    fn cut(&self, words: &[String]) -> Vec<String> {
        self.split.get(&words.concat()).filter(|known| known.len() > words.len()).cloned().unwrap_or_else(|| words.to_vec())
    }

    pub(super) fn resolve<'a>(&self, rows: &'a [HardwareModel], name: &str, memory_gib: Option<f64>) -> HardwareMatch<'a> {
        if tokens::too_long(name) {
            return HardwareMatch::Unknown;
        }
        let parsed = parse(name);
        let mut words = self.cut(&parsed.words);
        let mut found = self.named(rows, &parsed, &words);
        if found.is_empty() {
            // "L 40S": apart where the catalog writes together.
            words = self.split.get(&parsed.words.concat()).cloned().unwrap_or_default();
            found = self.named(rows, &parsed, &words);
        }
        if let Some(memory_gib) = memory_gib.filter(|gib| gib.is_finite() && *gib > 0.0) {
            keep_if_any(&mut found, |index| self.has_size(rows, index, memory_gib));
        }
        if parsed.sizes_gib.is_empty() && !words.iter().any(|word| word == MODDED) {
            keep_if_any(&mut found, |index| rows.get(index).is_some_and(|row| !row.unofficial));
        }
        self.narrow_by_exact_text(rows, &mut found, name);
        match rows_at(rows, &found).as_slice() {
            [] => HardwareMatch::Unknown,
            [row] => HardwareMatch::One(row),
            several => HardwareMatch::Ambiguous(several.to_vec()),
        }
    }

    /// Rows that carry the name, its vendor and its size.
    fn named(&self, rows: &[HardwareModel], parsed: &Parsed, words: &[String]) -> HashSet<usize> {
        let variants: Vec<&String> = words.iter().filter(|word| is_variant(word, words)).collect();
        let fits = |index: usize| {
            let (Some(row), Some(traits)) = (rows.get(index), self.traits.get(index)) else { return false };
            parsed.vendors.iter().all(|vendor| row.vendor == *vendor || row.vendor == "generic")
                && variants.iter().all(|word| traits.variants.contains(*word))
                && parsed.sizes_gib.iter().all(|size| self.has_size(rows, index, *size))
        };
        let owners = self.by_core.get(&key(core(words).iter()));
        owners.into_iter().flatten().copied().filter(|index| fits(*index)).collect()
    }

    /// Whether the row is sold or shown with this size. Shared memory without a size in the name is sold in any size up to the largest.
    fn has_size(&self, rows: &[HardwareModel], index: usize, gib: f64) -> bool {
        let (Some(row), Some(traits)) = (rows.get(index), self.traits.get(index)) else { return false };
        let Some(nominal_gib) = row.memory_gib else { return true };
        let in_pool = row.unified && !traits.size_in_name && gib <= nominal_gib;
        in_pool || row.own_sizes_gib().chain(traits.spelled_gib.iter().copied()).any(|size| within_tolerance(gib, size))
    }

    /// Of several candidates, the one with exactly this slug; else the one whose tool string this is, if every other prints another.
    fn narrow_by_exact_text(&self, rows: &[HardwareModel], found: &mut HashSet<usize>, name: &str) {
        if found.len() < 2 {
            return;
        }
        let slug = name.trim().to_lowercase();
        keep_if_any(found, |index| rows.get(index).is_some_and(|row| row.slug == slug));
        let printed = tokens::words(name).concat();
        let all_print = found.iter().all(|index| self.traits.get(*index).is_some_and(|traits| !traits.printed.is_empty()));
        if all_print {
            keep_if_any(found, |index| self.traits.get(index).is_some_and(|traits| traits.printed.contains(&printed)));
        }
    }
}

fn keep_if_any(found: &mut HashSet<usize>, keep: impl Fn(usize) -> bool) {
    let kept: HashSet<usize> = found.iter().copied().filter(|index| keep(*index)).collect();
    if !kept.is_empty() {
        *found = kept;
    }
}

fn spellings(row: &HardwareModel) -> impl Iterator<Item = &str> {
    [row.slug.as_str(), row.name.as_str()].into_iter().chain(row.aliases.iter().map(String::as_str))
}

/// A key that ignores order and repetition.
fn key<'a>(words: impl Iterator<Item = &'a String>) -> String {
    let sorted: BTreeSet<&str> = words.map(String::as_str).collect();
    sorted.into_iter().collect::<Vec<_>>().join(" ")
}

fn core(words: &[String]) -> Vec<String> {
    words.iter().filter(|word| !is_variant(word, words)).cloned().collect()
}

/// Whether a word may be left out. `pro` may only before or after a bare number ("RTX PRO 6000"): an "M1 Pro" is no M1.
fn is_variant(word: &str, words: &[String]) -> bool {
    VARIANTS.contains(&word)
        || ARCHITECTURES.contains(&word)
        || core_count(word).is_some()
        || (word == "pro" && words.iter().any(|other| other.len() == 4 && is_digits(other)))
}

/// The words as people shorten them: no series before a long number, no "pro" before a "W7800". A Quadro keeps its series, because
/// a "Quadro 6000" is another, older card.
fn without_series(words: &[String]) -> Vec<String> {
    let long_number = |word: &String| word.bytes().filter(u8::is_ascii_digit).count() >= 3;
    if !words.iter().any(long_number) || words.iter().any(|word| word == "quadro") {
        return words.to_vec();
    }
    let letter_and_number = words.iter().any(|word| word.len() == 5 && word.get(1..).is_some_and(is_digits) && !is_digits(word));
    let dropped = |word: &str| SERIES.contains(&word) || (word == "pro" && letter_and_number);
    words.iter().filter(|word| !dropped(word)).cloned().collect()
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `40core` and `40c` are the same bin of a chip.
fn core_count(word: &str) -> Option<&str> {
    word.strip_suffix("core").filter(|count| is_digits(count) && count.len() <= 3)
}

fn size_gib(word: &str) -> Option<f64> {
    let digits = word.find(|c: char| !c.is_ascii_digit()).and_then(|end| word.split_at_checked(end));
    let (number, unit) = digits.filter(|(number, _)| !number.is_empty() && number.len() <= MEMORY_DIGITS_MAX)?;
    let value: f64 = number.parse().ok()?;
    match unit {
        "gb" | "gib" | "g" => Some(value),
        "mb" | "mib" => Some(value / MIB_PER_GIB),
        _ => None,
    }
}

fn parse(name: &str) -> Parsed {
    let mut parsed = Parsed::default();
    for word in joined(tokens::words(name)) {
        let vendor = COMPANIES.iter().chain(BRANDS).find(|(known, _)| *known == word);
        if let Some((_, vendor)) = vendor {
            parsed.vendors.insert(vendor);
        } else if let Some(size) = size_gib(&word) {
            parsed.sizes_gib.push(size);
        } else if !NOISE.contains(&word.as_str()) {
            parsed.words.push(word);
        }
    }
    parsed
}

/// Puts words together that belong together ("8 GB", "Max-Q", "40-core"), takes glued brands apart, and drops counts of CPU cores.
fn joined(raw: Vec<String>) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in raw.into_iter().flat_map(unglued) {
        let previous = words.last().map(String::as_str);
        let after_number = previous.is_some_and(is_digits);
        match (previous, word.as_str()) {
            (Some("max"), "q") => replace_last(&mut words, "maxq".to_owned()),
            (Some(number), "gb" | "gib" | "mb" | "mib" | "core") if after_number => {
                let together = format!("{number}{word}");
                replace_last(&mut words, together);
            }
            (Some(before), "cpu") if core_count(before).is_some() => {
                words.pop();
            }
            (_, "mod") => words.push(MODDED.to_owned()),
            (_, other) => match other.strip_suffix('c').filter(|count| is_digits(count) && count.len() <= 3) {
                Some(count) => words.push(format!("{count}core")),
                None => words.push(word),
            },
        }
    }
    if words.iter().any(|word| word == "maxq") {
        // The Max-Q card is a "Max-Q Workstation Edition", but a "Workstation Edition" is the other card.
        words.retain(|word| word != "workstation");
    }
    words
}

fn replace_last(words: &mut Vec<String>, word: String) {
    words.pop();
    words.push(word);
}

fn unglued(word: String) -> Vec<String> {
    let cut = GLUED.iter().find_map(|brand| word.strip_prefix(brand).filter(|rest| !rest.is_empty()).map(|rest| (*brand, rest.to_owned())));
    match cut {
        Some((brand, rest)) => [vec![brand.to_owned()], unglued(rest)].concat(),
        None => vec![word],
    }
}
