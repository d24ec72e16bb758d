//! The controls of the search form: each with its label above, its unit inside and its fault below, as look.md wants them.

use askama::Template;

use super::{
    super::workload::parse_context,
    form::{Form, label},
};
use crate::{benchmarks::Quantization, catalog::Catalog};

/// A line to type in.
#[derive(Template)]
#[template(path = "parts/input.html")]
pub(super) struct Input {
    name: &'static str,
    label: &'static str,
    unit: &'static str,
    mode: &'static str,
    /// Names that the browser may offer.
    list: Vec<&'static str>,
    value: String,
    fault: String,
}

/// A choice of a few values.
#[derive(Template)]
#[template(path = "parts/select.html")]
pub(super) struct Select {
    name: &'static str,
    label: &'static str,
    options: Vec<Choice>,
    fault: String,
}

struct Choice {
    value: String,
    text: String,
    is_chosen: bool,
}

/// Every control of the form.
pub(super) struct Fields {
    pub model: Input,
    pub quantization: Select,
    pub context: Select,
    pub concurrency: Input,
    pub min_tokens_per_second: Input,
    pub max_ttft_ms: Input,
    pub hardware: Input,
    pub gpu_count: Input,
    pub vram_gib: Input,
    pub region: Input,
    pub max_price: Input,
    pub by: Input,
    pub sort: Option<Select>,
    pub includes_unavailable: bool,
}

impl Fields {
    pub fn of(form: &Form) -> Self {
        let input = |name, unit, mode| Input {
            name,
            label: label(name),
            unit,
            mode,
            list: Vec::new(),
            value: form.value(name).to_owned(),
            fault: form.fault(name),
        };
        let catalog = Catalog::builtin();
        let models = catalog.models().iter().map(|row| row.name.as_str()).collect();
        let hardware = catalog.hardware_models().iter().map(|row| row.name.as_str()).collect();
        Self {
            model: Input { list: models, ..input("model", "", "text") },
            quantization: quantization(form),
            context: context(form),
            concurrency: input("concurrency", "", "numeric"),
            min_tokens_per_second: input("min_tokens_per_second", "tok/s", "decimal"),
            max_ttft_ms: input("max_ttft_ms", "ms", "decimal"),
            hardware: Input { list: hardware, ..input("hardware", "", "text") },
            gpu_count: input("gpu_count", "", "numeric"),
            vram_gib: input("vram_gib", "GiB", "decimal"),
            region: input("region", "", "text"),
            max_price: input("max_price", "$/h", "decimal"),
            by: input("by", "", "text"),
            sort: (form.has_workload() || form.has("sort")).then(|| sort(form)),
            includes_unavailable: form.value("include_unavailable") == "true",
        }
    }
}

/// The choices, and what was typed when it is none of them.
fn select(form: &Form, name: &'static str, any: &str, known: Vec<(String, String)>, chosen: Option<String>) -> Select {
    let typed = form.value(name);
    let chosen = chosen.unwrap_or_else(|| typed.to_owned());
    let mut options = vec![Choice { value: String::new(), text: any.to_owned(), is_chosen: typed.is_empty() }];
    options.extend(known.into_iter().map(|(value, text)| Choice { is_chosen: value == chosen, value, text }));
    if !options.iter().any(|option| option.is_chosen) {
        options.push(Choice { value: typed.to_owned(), text: typed.to_owned(), is_chosen: true });
    }
    Select { name, label: label(name), options, fault: form.fault(name) }
}

fn quantization(form: &Form) -> Select {
    let known = Quantization::known_slugs().map(|slug| (slug.to_owned(), Quantization::parse(slug).name().to_owned()));
    let typed = form.value("quantization");
    let chosen = (!typed.is_empty()).then(|| Quantization::parse(typed).as_str().to_owned());
    select(form, "quantization", "Any", known.collect(), chosen)
}

fn context(form: &Form) -> Select {
    let sizes = ["0", "4K", "8K", "16K", "32K", "64K", "128K", "256K"];
    let tokens = parse_context(form.value("context"));
    let same = sizes.iter().find(|size| tokens.is_some() && parse_context(size) == tokens);
    let known = sizes.iter().map(|size| (size.to_ascii_lowercase(), (*size).to_owned())).collect();
    select(form, "context", "Any", known, same.map(|size| size.to_ascii_lowercase()))
}

fn sort(form: &Form) -> Select {
    let known = [("price", "Price"), ("tokens_per_second", "Speed per user"), ("ttft", "TTFT")];
    let known = known.iter().map(|(value, text)| ((*value).to_owned(), (*text).to_owned())).collect();
    let chosen = (form.value("sort") == "price_per_million_tokens").then(String::new);
    select(form, "sort", "$ per million tokens", known, chosen)
}
