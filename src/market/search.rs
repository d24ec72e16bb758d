//! The search as its parameters, checked. Pure.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::workload::{CONCURRENCY_MAX, CONTEXT_MAX, Workload, parse_context};
use crate::{
    base::{
        Money, Result,
        faults::Faults,
        id::ListingId,
        shape::{ContextText, LimitText, RegionText},
    },
    benchmarks::Quantization,
    catalog::{self, Catalog, ModelMatch},
    machines::Region,
    web::Limit,
};

/// How listings are ordered; ties by id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// Per hour, cheapest first: the order without a workload.
    Price,
    /// Per user, fastest first. Needs a workload.
    TokensPerSecond,
    /// Of a prompt never seen before, shortest first; listings where it was not measured come last. Needs a workload.
    Ttft,
    /// Cheapest output first: the order with a workload.
    PricePerMillionTokens,
}

impl Sort {
    /// Whether the order goes by an amount of money, otherwise by a measured number.
    pub(super) const fn is_exact(self) -> bool {
        matches!(self, Self::Price | Self::PricePerMillionTokens)
    }
}

/// What to search for. Every parameter narrows; `model`, `context` and `concurrency` belong together and make a workload.
#[derive(Debug, Clone, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListingQuery {
    /// Any usual name of a GPU or SoC; it must mean one hardware model.
    #[param(example = "rtx-3090")]
    pub hardware: Option<String>,
    /// GPUs of the machine.
    #[param(minimum = 1)]
    pub gpu_count: Option<i32>,
    /// Nominal memory of one GPU in GiB: 24 finds a card that reports 24564 MiB.
    #[param(exclusive_minimum = 0)]
    pub vram_gib: Option<f64>,
    /// A country finds its subdivisions too.
    #[param(value_type = Option<RegionText>)]
    pub region: Option<String>,
    /// Per hour, for the whole machine.
    #[param(value_type = Option<LimitText>)]
    pub max_price: Option<Money>,
    /// Name, slug or repository of a model.
    pub model: Option<String>,
    /// Any spelling of a quantization.
    #[param(example = "awq-4bit")]
    pub quantization: Option<String>,
    /// Tokens of context for each user: `16384` or `16k`, at most 16777216.
    #[param(value_type = Option<ContextText>)]
    pub context: Option<String>,
    /// Users at once.
    #[param(minimum = 1, maximum = 4096)]
    pub concurrency: Option<i32>,
    /// Per user. Needs a workload.
    #[param(exclusive_minimum = 0)]
    pub min_tokens_per_second: Option<f64>,
    /// Of a prompt never seen before. Needs a workload.
    #[param(exclusive_minimum = 0)]
    pub max_ttft_ms: Option<f64>,
    /// Only this account's listings.
    #[param(example = "@ada")]
    pub by: Option<String>,
    /// Also machines that cannot be rented now: taken by a rental, reserved, or silent for a quarter of an hour.
    #[serde(default)]
    pub include_unavailable: bool,
    /// Default: `price`, or `price_per_million_tokens` with a workload.
    #[param(inline)]
    pub sort: Option<Sort>,
    #[serde(default)]
    #[param(inline)]
    pub limit: Limit,
    pub cursor: Option<String>,
}

/// A checked search.
#[derive(Debug, Clone)]
pub(super) struct Search {
    pub hardware_slug: Option<String>,
    pub gpu_count: Option<i32>,
    pub vram_gib: Option<f64>,
    pub region: Option<Region>,
    pub max_price: Option<Money>,
    pub quantization: Option<String>,
    pub by: Option<String>,
    pub include_unavailable: bool,
    /// This listing, if it fits, and no other.
    pub only: Option<ListingId>,
    pub workload: Option<Workload>,
    pub min_tokens_per_second: Option<f64>,
    pub max_ttft_ms: Option<f64>,
    pub sort: Sort,
}

/// Where a page begins: after the row with this value in the order, and this id. One of the two values, by the order; neither is the end of
/// the values (a TTFT that was not measured).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Position {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub micros: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<f64>,
    pub id: ListingId,
}

impl Search {
    /// Every published listing whose run answers the workload, cheapest output first.
    pub const fn of_workload(workload: Workload) -> Self {
        Self {
            hardware_slug: None,
            gpu_count: None,
            vram_gib: None,
            region: None,
            max_price: None,
            quantization: None,
            by: None,
            include_unavailable: false,
            only: None,
            workload: Some(workload),
            min_tokens_per_second: None,
            max_ttft_ms: None,
            sort: Sort::PricePerMillionTokens,
        }
    }

    /// # Errors
    /// `invalid_input` with every fault (and `candidates` for a name that means several).
    pub fn check(query: &ListingQuery) -> Result<Self> {
        let mut faults = Faults::default();
        let hardware_slug = query
            .hardware
            .as_deref()
            .and_then(|name| faults.take(catalog::service::hardware_input("?hardware", name, query.vram_gib)).map(|row| row.slug.clone()));
        if query.gpu_count.is_some_and(|count| count < 1) {
            faults.add("?gpu_count", "out_of_range", "gpu_count is at least 1.");
        }
        for (pointer, value) in
            [("?vram_gib", query.vram_gib), ("?min_tokens_per_second", query.min_tokens_per_second), ("?max_ttft_ms", query.max_ttft_ms)]
        {
            if value.is_some_and(|value| !(value.is_finite() && value > 0.0)) {
                faults.add(pointer, "out_of_range", "The value is above 0.");
            }
        }
        let region = query.region.as_deref().and_then(|text| match text.parse::<Region>() {
            Ok(region) => Some(region),
            Err(error) => {
                faults.add("?region", "unknown_region", format!("This is no region: {error}."));
                None
            }
        });
        let workload = check_workload(query, &mut faults);
        let by_workload = Some(Sort::PricePerMillionTokens).filter(|_| workload.is_some());
        let sort = query.sort.or(by_workload).unwrap_or(Sort::Price);
        faults.finish()?;
        Ok(Self {
            hardware_slug,
            gpu_count: query.gpu_count,
            vram_gib: query.vram_gib,
            region,
            max_price: query.max_price,
            quantization: query.quantization.as_deref().map(|text| Quantization::parse(text).as_str().to_owned()),
            by: query.by.as_deref().map(|handle| handle.trim_start_matches('@').to_ascii_lowercase()),
            include_unavailable: query.include_unavailable,
            only: None,
            workload,
            min_tokens_per_second: query.min_tokens_per_second,
            max_ttft_ms: query.max_ttft_ms,
            sort,
        })
    }
}

/// All of the three, or none; and nothing that needs them without them.
fn check_workload(query: &ListingQuery, faults: &mut Faults) -> Option<Workload> {
    let given = [query.model.is_some(), query.context.is_some(), query.concurrency.is_some()];
    if given.iter().all(|is_given| !is_given) {
        let needs = [
            ("?min_tokens_per_second", query.min_tokens_per_second.is_some()),
            ("?max_ttft_ms", query.max_ttft_ms.is_some()),
            ("?sort", query.sort.is_some_and(|sort| sort != Sort::Price)),
        ];
        for (pointer, _) in needs.iter().filter(|(_, is_given)| *is_given) {
            faults.add(pointer, "needs_workload", "This needs a workload: model, context and concurrency.");
        }
        return None;
    }
    for (pointer, _) in ["?model", "?context", "?concurrency"].iter().zip(given).filter(|(_, is_given)| !is_given) {
        faults.add(pointer, "missing_field", "A workload is model, context and concurrency together.");
    }
    let model = query.model.as_deref().and_then(|name| check_model(name, faults));
    let context_tokens = query.context.as_deref().map(parse_context);
    if context_tokens == Some(None) {
        faults.add("?context", "invalid_value", format!("A context is a number of tokens up to {CONTEXT_MAX}, such as 16384 or 16k."));
    }
    if query.concurrency.is_some_and(|users| !(1..=CONCURRENCY_MAX).contains(&users)) {
        faults.add("?concurrency", "out_of_range", format!("concurrency is from 1 to {CONCURRENCY_MAX}."));
    }
    Some(Workload { model: model?, context_tokens: context_tokens??, concurrency: query.concurrency? })
}

/// The slug of a name that the catalog knows; another name finds the runs that were measured under it.
fn check_model(name: &str, faults: &mut Faults) -> Option<String> {
    match Catalog::builtin().resolve_model(name) {
        ModelMatch::One(row) => Some(row.slug.clone()),
        ModelMatch::Ambiguous(_) => faults.take(catalog::service::model_input("?model", name)).map(|row| row.slug.clone()),
        ModelMatch::Unknown => Some(name.trim().to_owned()),
    }
}
