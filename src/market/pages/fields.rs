//! The controls of the search form.

use super::{super::workload::parse_context, form::has_workload};
use crate::{
    benchmarks::Quantization,
    catalog::Catalog,
    web::html::{
        Key,
        form::{Controls, Input, Select},
    },
};

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
    pub fn of(controls: &Controls<'_>) -> Self {
        let (t, form) = (controls.t, controls.form);
        let catalog = Catalog::builtin();
        let models = catalog.models().iter().map(|row| row.name.as_str()).collect();
        let hardware = catalog.hardware_models().iter().map(|row| row.name.as_str()).collect();
        Self {
            model: controls.input("model", "text").offering(models),
            quantization: quantization(controls),
            context: context(controls),
            concurrency: controls.input("concurrency", "numeric"),
            min_tokens_per_second: controls.input("min_tokens_per_second", "decimal").unit(t.text("unit-tokens-per-second")),
            max_ttft_ms: controls.input("max_ttft_ms", "decimal").unit(t.text("unit-ms")),
            hardware: controls.input("hardware", "text").offering(hardware),
            gpu_count: controls.input("gpu_count", "numeric"),
            vram_gib: controls.input("vram_gib", "decimal").unit(t.text("unit-gib")),
            region: controls.input("region", "text"),
            max_price: controls.input("max_price", "decimal").unit(t.text("unit-price")),
            by: controls.input("by", "text"),
            sort: (has_workload(form) || form.has("sort")).then(|| sort(controls)),
            includes_unavailable: form.value("include_unavailable") == "true",
        }
    }
}

fn quantization(controls: &Controls<'_>) -> Select {
    let known = Quantization::known_slugs().map(|slug| (slug.to_owned(), Quantization::parse(slug).name().to_owned()));
    let typed = controls.form.value("quantization");
    let chosen = (!typed.is_empty()).then(|| Quantization::parse(typed).as_str().to_owned());
    controls.select("quantization", &controls.t.text("any"), known.collect(), chosen)
}

fn context(controls: &Controls<'_>) -> Select {
    let sizes = ["0", "4K", "8K", "16K", "32K", "64K", "128K", "256K"];
    let tokens = parse_context(controls.form.value("context"));
    let same = sizes.iter().find(|size| tokens.is_some() && parse_context(size) == tokens);
    let known = sizes.iter().map(|size| (size.to_ascii_lowercase(), (*size).to_owned())).collect();
    controls.select("context", &controls.t.text("any"), known, same.map(|size| size.to_ascii_lowercase()))
}

fn sort(controls: &Controls<'_>) -> Select {
    let t = controls.t;
    let known = [("price", Key("price")), ("tokens_per_second", Key("sort-speed")), ("ttft", Key("ttft"))];
    let known = known.iter().map(|(value, key)| ((*value).to_owned(), t.text(key).into_owned())).collect();
    let chosen = (controls.form.value("sort") == "price_per_million_tokens").then(String::new);
    controls.select("sort", &t.text("sort-output"), known, chosen)
}
