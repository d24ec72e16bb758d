//! The search form: what was typed, kept as text whatever it is worth, and the search it makes. The address holds all of it.

use super::super::{search::Search, service::ListingQuery, workload::parse_context};
use crate::{
    base::{Code, Error, FieldError, Result, faults::Faults},
    benchmarks::{Quantization, context_name},
    catalog::Catalog,
    web::{Query, html},
};

pub(super) const PATH: &str = "/en/marketplace";
/// What a workload is made of, and what makes no sense without one.
pub(super) const WORKLOAD: [&str; 6] = ["model", "context", "concurrency", "min_tokens_per_second", "max_ttft_ms", "sort"];

/// The fields that are not empty, as typed.
#[derive(Clone)]
pub(super) struct Form {
    pairs: Vec<(String, String)>,
    faults: Vec<FieldError>,
    /// Names that an ambiguous one could mean: the field, and what to type.
    pub candidates: Vec<String>,
}

/// A condition in force, and the address of the search without it.
pub(super) struct Condition {
    pub text: String,
    pub without: String,
}

/// A fault as the summary shows it; the label is empty for what is no field of the form.
pub(super) struct Said {
    pub name: String,
    pub label: &'static str,
    pub text: String,
}

/// What stands above the field.
pub(super) fn label(name: &str) -> &'static str {
    match name {
        "model" => "Model",
        "quantization" => "Quantization",
        "context" => "Context",
        "concurrency" => "Users at once",
        "min_tokens_per_second" => "At least, per user",
        "max_ttft_ms" => "First token within",
        "hardware" => "GPU",
        "gpu_count" => "GPUs",
        "vram_gib" => "VRAM of one",
        "region" => "Region",
        "max_price" => "Price at most",
        "by" => "Host",
        "sort" => "Sort by",
        _ => "",
    }
}

impl Form {
    pub fn of(given: &[(String, String)]) -> Self {
        let typed = given.iter().map(|(name, value)| (name.clone(), value.trim().to_owned()));
        Self { pairs: typed.filter(|(_, value)| !value.is_empty()).collect(), faults: Vec::new(), candidates: Vec::new() }
    }

    pub fn value(&self, name: &str) -> &str {
        self.pairs.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    pub fn has(&self, name: &str) -> bool {
        !self.value(name).is_empty()
    }

    pub fn has_workload(&self) -> bool {
        ["model", "context", "concurrency"].iter().all(|name| self.has(name))
    }

    /// Whether anything narrows the search.
    pub fn is_narrowed(&self) -> bool {
        self.pairs.iter().any(|(name, _)| !["sort", "limit", "cursor", "include_unavailable"].contains(&name.as_str()))
    }

    /// The search that the fields make.
    ///
    /// # Errors
    /// `invalid_input` with every value that is not of its field's type, and with what is wrong with the others.
    pub fn query(&self) -> Result<Query<ListingQuery>> {
        let mut faults = Faults::default();
        let mut readable = Vec::new();
        for (name, value) in &self.pairs {
            let read = faults.take(Query::<ListingQuery>::parse(PATH, &encoded([(name, value)])));
            readable.extend(read.map(|_| (name, value)));
        }
        let query = Query::<ListingQuery>::parse(PATH, &encoded(readable.iter().copied()))?;
        if readable.len() < self.pairs.len() {
            faults.take(Search::check(&query));
        }
        faults.finish()?;
        Ok(query)
    }

    /// Keeps what is wrong beside the fields; any other error comes back.
    pub fn refuse(&mut self, error: Error) -> Result<()> {
        if error.code() != Code::InvalidInput {
            return Err(error);
        }
        for fault in error.fields() {
            // What follows from a field that could not be read says nothing new about it.
            if !self.faults.iter().any(|known| known.pointer == fault.pointer) {
                self.faults.push(fault.clone());
            }
        }
        let names = error.extra().get("candidates").and_then(|all| all.as_array()).into_iter().flatten();
        self.candidates = names.filter_map(|one| one.get("name")?.as_str().map(str::to_owned)).collect();
        Ok(())
    }

    /// What to write under the field; empty when it is fine.
    pub fn fault(&self, name: &str) -> String {
        let own = self.faults.iter().find(|fault| fault.pointer.strip_prefix('?') == Some(name));
        own.map(|fault| said(name, fault)).unwrap_or_default()
    }

    /// Every fault with the field it belongs to, which may be none of the form's.
    pub fn all_faults(&self) -> Vec<Said> {
        let said = |fault: &FieldError| {
            let name = fault.pointer.trim_start_matches('?').to_owned();
            Said { label: label(&name), text: said(&name, fault), name }
        };
        self.faults.iter().map(said).collect()
    }

    /// The same search with other values; an empty one leaves the field out. It begins at the first page.
    pub fn with(&self, changes: &[(&str, &str)]) -> Self {
        let is_changed = |name: &str| name == "cursor" || changes.iter().any(|(changed, _)| *changed == name);
        let kept = self.pairs.iter().filter(|(name, _)| !is_changed(name)).cloned();
        let added = changes.iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Self { pairs: kept.chain(added).collect(), faults: Vec::new(), candidates: Vec::new() }
    }

    pub fn address(&self) -> String {
        html::address(PATH, self.pairs.iter().map(|(name, value)| (name, value)))
    }

    fn without(&self, names: &[&str]) -> Self {
        let changes: Vec<(&str, &str)> = names.iter().map(|name| (*name, "")).collect();
        self.with(&changes)
    }

    /// What is asked, each with the search that asks for all but that.
    pub fn conditions(&self) -> Vec<(Condition, Self)> {
        let mut all = Vec::new();
        if self.has_workload() {
            let context = parse_context(self.value("context")).and_then(|tokens| u64::try_from(tokens).ok());
            let context = context.map_or_else(|| self.value("context").to_owned(), context_name);
            let users = if self.value("concurrency") == "1" { "user" } else { "users" };
            let text = format!("{} at {context} context, {} {users}", self.value("model"), self.value("concurrency"));
            all.push((text, self.without(&WORKLOAD)));
        }
        let single =
            ["quantization", "min_tokens_per_second", "max_ttft_ms", "hardware", "gpu_count", "vram_gib", "region", "max_price", "by"];
        let given = single.iter().filter(|name| self.has(name));
        all.extend(given.map(|name| (said_condition(name, self.value(name)), self.without(&[name]))));
        all.into_iter().map(|(text, form)| (Condition { text, without: form.address() }, form)).collect()
    }
}

fn encoded<K: AsRef<str>, V: AsRef<str>>(pairs: impl IntoIterator<Item = (K, V)>) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

fn said_condition(name: &str, value: &str) -> String {
    match name {
        "quantization" => Quantization::parse(value).name().to_owned(),
        "min_tokens_per_second" => format!("≥ {value} tok/s per user"),
        "max_ttft_ms" => format!("TTFT ≤ {value} ms"),
        "hardware" => Catalog::builtin().hardware(value).map_or_else(|| value.to_owned(), |row| row.name.clone()),
        "gpu_count" if value == "1" => "1 GPU".to_owned(),
        "gpu_count" => format!("{value} GPUs"),
        "vram_gib" => format!("{value} GiB a GPU"),
        "region" => format!("region {value}"),
        "max_price" => format!("≤ $ {value} per hour"),
        "by" => format!("by @{}", value.trim_start_matches('@')),
        _ => value.to_owned(),
    }
}

/// A fault in the words of the form. What a workload lacks is said by the search itself.
fn said(name: &str, fault: &FieldError) -> String {
    let is_value = !["needs_workload", "missing_field", "duplicate_field"].contains(&fault.code.as_ref());
    match name {
        "concurrency" if is_value => "Enter a whole number from 1 to 4,096.".to_owned(),
        "gpu_count" if is_value => "Enter a whole number, at least 1.".to_owned(),
        "vram_gib" | "min_tokens_per_second" | "max_ttft_ms" if is_value => "Enter a number above 0.".to_owned(),
        "max_price" if is_value => "Enter an amount in dollars, such as 0.50.".to_owned(),
        "region" if is_value => "Enter a country, optionally with a part of it: us or us-ca.".to_owned(),
        "context" if is_value => "Enter tokens, such as 16384 or 16K.".to_owned(),
        _ if fault.code == "unknown_field" => format!("The search has no field {name}."),
        _ => fault.detail.clone(),
    }
}
