//! The search form: what its fields are called, what a fault means in them, and the conditions that they make.

use super::super::workload::parse_context;
use crate::{
    base::{FieldError, Money},
    benchmarks::Quantization,
    catalog::Catalog,
    web::html::{
        Key, Messages,
        form::{Condition, Form, Words},
    },
};

pub(super) const WORDS: Words = Words { label, fault };
/// What a workload is made of, and what makes no sense without one.
pub(super) const WORKLOAD: [&str; 6] = ["model", "context", "concurrency", "min_tokens_per_second", "max_ttft_ms", "sort"];
/// What does not narrow the search.
const NOT_NARROWING: [&str; 4] = ["sort", "limit", "cursor", "include_unavailable"];
/// Conditions of one field each, in the order of the form.
const SINGLE: [&str; 9] =
    ["quantization", "min_tokens_per_second", "max_ttft_ms", "hardware", "gpu_count", "vram_gib", "region", "max_price", "by"];

/// What stands above the field.
fn label(name: &str) -> Option<Key> {
    Some(match name {
        "model" => Key("field-model"),
        "quantization" => Key("quantization"),
        "context" => Key("context"),
        "concurrency" => Key("field-users"),
        "min_tokens_per_second" => Key("field-min-speed"),
        "max_ttft_ms" => Key("field-max-ttft"),
        "hardware" => Key("field-gpu"),
        "gpu_count" => Key("field-gpus"),
        "vram_gib" => Key("field-vram"),
        "region" => Key("region"),
        "max_price" => Key("field-max-price"),
        "by" => Key("field-host"),
        "sort" => Key("field-sort"),
        _ => return None,
    })
}

/// A fault in the words of the form.
fn fault(t: Messages, name: &str, fault: &FieldError) -> Option<String> {
    let key = match (fault.code.as_ref(), name) {
        ("unknown_field", _) => return Some(t.with("fault-unknown-field", &[("name", name.into())])),
        ("needs_workload", _) => Key("fault-needs-workload"),
        ("missing_field", _) => Key("fault-part-of-workload"),
        ("duplicate_field", _) => return None,
        ("ambiguous_name", _) => Key("fault-ambiguous"),
        (_, "concurrency") => Key("fault-users"),
        (_, "gpu_count") => Key("fault-whole-number"),
        (_, "vram_gib" | "min_tokens_per_second" | "max_ttft_ms") => Key("fault-positive-number"),
        (_, "max_price") => Key("fault-amount"),
        (_, "region") => Key("fault-region"),
        (_, "context") => Key("fault-context"),
        ("unknown_hardware", _) => Key("fault-hardware"),
        _ => return None,
    };
    Some(t.text(key).into_owned())
}

pub(super) fn has_workload(form: &Form) -> bool {
    ["model", "context", "concurrency"].iter().all(|name| form.has(name))
}

/// Whether anything narrows the search.
pub(super) fn is_narrowed(form: &Form) -> bool {
    form.has_more_than(&NOT_NARROWING)
}

/// What is asked, each with the search that asks for all but that.
pub(super) fn conditions(t: Messages, form: &Form) -> Vec<(String, Form)> {
    let mut all = Vec::new();
    if has_workload(form) {
        all.push((workload(t, form), form.without(&WORKLOAD)));
    }
    let given = SINGLE.iter().filter(|name| form.has(name));
    all.extend(given.map(|name| (condition(t, name, form.value(name)), form.without(&[name]))));
    all
}

pub(super) fn as_links(conditions: &[(String, Form)]) -> Vec<Condition> {
    conditions.iter().map(|(text, form)| Condition { text: text.clone(), without: form.address() }).collect()
}

/// `Nemotron-Cascade-2-30B-A3B at 16K context, 8 users`.
pub(super) fn workload(t: Messages, form: &Form) -> String {
    let context = parse_context(form.value("context")).and_then(|tokens| u64::try_from(tokens).ok());
    let context = context.map_or_else(|| form.value("context").to_owned(), |tokens| t.context(tokens));
    let users = form.value("concurrency").parse::<u32>().unwrap_or(0);
    let model = Catalog::builtin().model(form.value("model")).map_or_else(|| form.value("model").to_owned(), |row| row.name.clone());
    t.with("condition-workload", &[("model", model.into()), ("context", context.into()), ("users", users.into())])
}

pub(super) fn condition(t: Messages, name: &str, value: &str) -> String {
    let number = |value: &str| t.digits(value);
    match name {
        "quantization" => Quantization::parse(value).name().to_owned(),
        "min_tokens_per_second" => t.with("condition-min-speed", &[("speed", number(value).into())]),
        "max_ttft_ms" => t.with("condition-max-ttft", &[("ms", number(value).into())]),
        "hardware" => Catalog::builtin().hardware(value).map_or_else(|| value.to_owned(), |row| row.name.clone()),
        "gpu_count" => value.parse::<u32>().map_or_else(|_| value.to_owned(), |count| t.with("condition-gpus", &[("count", count.into())])),
        "vram_gib" => t.with("condition-vram", &[("gib", number(value).into())]),
        "region" => t.with("condition-region", &[("region", value.into())]),
        "max_price" => {
            let price = value.parse::<Money>().map_or_else(|_| value.to_owned(), |price| t.money(price));
            t.with("condition-max-price", &[("price", price.into())])
        }
        "by" => t.with("condition-by", &[("handle", format!("@{}", value.trim_start_matches('@')).into())]),
        _ => value.to_owned(),
    }
}
