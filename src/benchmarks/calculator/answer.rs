//! The calculator's answer: every asked cell with its speed, kind and basis, and what fits in memory.

use serde::Serialize;
use utoipa::ToSchema;

use super::memory::{kv_bytes, kv_bytes_per_token, state_bytes};
use super::{
    Anchor, Figure, GENERATED_TOKENS, Kind, MemoryFit, Priors, Range, Seen, Setup, WeightBits, ceiling::ceiling, decode, prefill, real,
};
use crate::base::units::GIB_BYTES;

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    pub setup: Setup<'a>,
    pub contexts: &'a [u64],
    pub concurrency_levels: &'a [u32],
}

/// Why a cell has no speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = NoSpeedReason)]
pub enum Reason {
    /// Weights, cache and state of the batch do not fit into the memory.
    DoesNotFit,
    /// The run it is anchored to was over its KV capacity there, and no other measured it.
    OverCapacityInRun,
    /// Longer than the model's configuration allows.
    ExceedsMaxContext,
    /// The catalog has no bandwidth of this hardware, and no run reaches the cell.
    BandwidthUnknown,
}

/// What a number stands on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = SpeedBasis)]
pub struct Basis {
    /// In words.
    pub text: String,
    /// The run that has the median, in the cell itself or in the nearest measured one; null for the formula alone.
    pub run_id: Option<String>,
    /// Accepted runs in that cell, and the accounts they are of, each of which counts once in the median; null for the formula alone.
    pub run_count: Option<u32>,
    pub account_count: Option<u32>,
    /// Slug of the hardware model those runs were on.
    pub hardware: Option<String>,
    pub gpu_count: Option<u32>,
}

impl Basis {
    fn of(anchor: &Anchor<'_>, figure: &Figure, text: String) -> Self {
        let (run_count, account_count) = (Some(figure.run_count), Some(figure.account_count));
        Self { run_count, account_count, ..Self::of_run(anchor, &figure.run_id, text) }
    }

    fn of_run(anchor: &Anchor<'_>, run_id: &str, text: String) -> Self {
        let (hardware, gpu_count) = (Some(anchor.setup.hardware.slug.clone()), Some(anchor.setup.gpu_count));
        Self { text, run_id: Some(run_id.to_owned()), run_count: Some(1), account_count: Some(1), hardware, gpu_count }
    }

    fn formula(text: impl Into<String>) -> Self {
        Self { text: text.into(), run_id: None, run_count: None, account_count: None, hardware: None, gpu_count: None }
    }
}

/// "run x", or how many runs, with the one that has the median.
fn whose(figure: &Figure) -> String {
    match figure.run_count {
        1 => format!("run {}", figure.run_id),
        runs => format!("{runs} runs of {}, the median that of run {}", accounts(figure), figure.run_id),
    }
}

fn accounts(figure: &Figure) -> String {
    if figure.account_count == 1 { "one account".to_owned() } else { format!("{} accounts", figure.account_count) }
}

/// What was measured in the very place.
fn measured_text(figure: &Figure) -> String {
    match figure.run_count {
        1 => format!("Measured by run {}", figure.run_id),
        runs => format!("Median of {runs} runs of {}, each account counting once: that of run {}", accounts(figure), figure.run_id),
    }
}

/// Decode at one context and concurrency. Speeds are totals over all requests, and null with a reason.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = DecodeCellAnswer)]
pub struct CellAnswer {
    pub context_tokens: u64,
    pub concurrency: u32,
    pub tokens_per_second: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// The speed of one request.
    pub tokens_per_second_per_user: Option<f64>,
    /// What no engine passes at this batch without speculation: bandwidth over the active weights, as publishers count them, and the context's
    /// cache once; at most the compute peak.
    pub ceiling_tokens_per_second: Option<f64>,
    /// Weights, KV cache and state of all requests with what they generate.
    pub memory_gib: f64,
    /// KV cache of all requests at exactly this context.
    pub kv_cache_gib: f64,
    pub kind: Kind,
    pub basis: Basis,
    pub reason: Option<Reason>,
}

/// Prefill of one uncached prompt.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct PrefillAnswer {
    pub context_tokens: u64,
    pub tokens_per_second: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Time to read the prompt.
    pub ttft_ms: Option<f64>,
    pub kind: Kind,
    pub basis: Basis,
    pub reason: Option<Reason>,
}

/// What the machine's memory holds, over all GPUs.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct MemoryAnswer {
    /// Whether the weights leave room for a cache; null where the memory's size is not known.
    pub fits: Option<bool>,
    pub memory_gib: Option<f64>,
    pub weights_gib: f64,
    pub overhead_gib: Option<f64>,
    pub kv_bytes_per_token: f64,
    pub state_bytes_per_sequence: f64,
    /// Room for KV cache and state.
    pub cache_room_gib: Option<Range>,
    /// Tokens that the room holds in one sequence.
    pub kv_capacity_tokens: Option<Range>,
    pub basis: Basis,
}

/// What the numbers were computed from.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = CalculatorInputs)]
pub struct Inputs {
    pub model: String,
    pub hardware: String,
    pub gpu_count: u32,
    pub weight_bits: WeightBits,
    /// The weights' size is that of the published repository.
    pub weights_from_repository: bool,
    pub kv_bits: f64,
    pub bandwidth_gb_s: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = DecodeAnswer)]
pub struct Answer {
    pub cells: Vec<CellAnswer>,
    pub memory: MemoryAnswer,
    pub prefill: Vec<PrefillAnswer>,
    pub inputs: Inputs,
}

/// Answers a question from what was measured, best first among what is of the same hardware, and the formula.
pub fn answer(question: &Question<'_>, anchors: &[Anchor<'_>]) -> Answer {
    let setup = &question.setup;
    let same = |anchor: &&Anchor<'_>| anchor.setup.hardware.slug == setup.hardware.slug && anchor.setup.gpu_count == setup.gpu_count;
    let (own, foreign) = anchors.iter().partition(same);
    let sources = Sources { own, foreign };
    let fit = MemoryFit::of(setup);
    let places = question.contexts.iter().flat_map(|context| question.concurrency_levels.iter().map(move |level| (*context, *level)));
    Answer {
        cells: places.map(|(context, level)| cell(setup, &fit, &sources, context, level)).collect(),
        memory: memory(setup, &fit),
        prefill: question
            .contexts
            .iter()
            .filter(|context| **context > 0)
            .map(|context| prefill_row(setup, &fit, &sources, *context))
            .collect(),
        inputs: Inputs {
            model: setup.model.slug.clone(),
            hardware: setup.hardware.slug.clone(),
            gpu_count: setup.gpu_count,
            weight_bits: setup.weights.bits,
            weights_from_repository: setup.weights.from_repository,
            kv_bits: setup.kv.bits,
            bandwidth_gb_s: setup.hardware.bandwidth_gb_s,
        },
    }
}

struct Sources<'a> {
    own: Vec<&'a Anchor<'a>>,
    foreign: Vec<&'a Anchor<'a>>,
}

/// A speed and what it stands on, or why there is none.
type Told = (Result<Range, Reason>, Kind, Basis);

fn cell(setup: &Setup<'_>, fit: &MemoryFit, sources: &Sources<'_>, context: u64, level: u32) -> CellAnswer {
    let (range, kind, basis) = told(setup, fit, sources, context, level);
    let value = range.ok().map(|range| range.value);
    CellAnswer {
        context_tokens: context,
        concurrency: level,
        tokens_per_second: value,
        low: range.ok().map(|range| range.low),
        high: range.ok().map(|range| range.high),
        tokens_per_second_per_user: value.map(|value| value / f64::from(level.max(1))),
        ceiling_tokens_per_second: ceiling(setup, level, real(context)),
        memory_gib: gib(setup.weights.total_bytes + MemoryFit::batch_bytes(setup, level, real(context) + GENERATED_TOKENS)),
        kv_cache_gib: gib(f64::from(level) * kv_bytes(setup.model, setup.kv, real(context))),
        kind,
        basis,
        reason: range.err(),
    }
}

fn told(setup: &Setup<'_>, fit: &MemoryFit, sources: &Sources<'_>, context: u64, level: u32) -> Told {
    if context > u64::from(setup.model.max_context) {
        let text = format!("The model's configuration allows {} tokens.", setup.model.max_context);
        return (Err(Reason::ExceedsMaxContext), Kind::Estimated, Basis::formula(text));
    }
    if let Some(told) = sources.own.iter().find_map(|anchor| measured(anchor, context, level)) {
        return told;
    }
    let refused = |anchor: &&Anchor<'_>| match anchor.seen(context, level) {
        Some(Seen::OverCapacity(run_id)) => {
            let text = "The run's engine had too little KV cache for this cell.".to_owned();
            Some((Err(Reason::OverCapacityInRun), Kind::Measured, Basis::of_run(anchor, run_id, text)))
        }
        _ => None,
    };
    if let Some(told) = sources.own.iter().find_map(refused) {
        return told;
    }
    if fit.excludes(setup, level, real(context) + GENERATED_TOKENS) {
        let text = "Weights, KV cache and state of the batch are larger than the memory that an engine can use.";
        return (Err(Reason::DoesNotFit), Kind::Estimated, Basis::formula(text));
    }
    anchored(setup, sources, context, level).unwrap_or_else(|| by_formula(setup, context, level))
}

/// What runs on the same hardware measured at the very cell.
fn measured(anchor: &Anchor<'_>, context: u64, level: u32) -> Option<Told> {
    let (figure, queued) = match anchor.seen(context, level)? {
        Seen::Valid(figure) => (figure, ""),
        Seen::Queued(figure) => (figure, "; requests queued there"),
        Seen::OverCapacity(_) => return None,
    };
    let text = format!("{}{queued}.", measured_text(figure));
    Some((Ok(figure.range), Kind::Measured, Basis::of(anchor, figure, text)))
}

/// From runs on the same hardware near the cell, or from those on other hardware.
fn anchored(setup: &Setup<'_>, sources: &Sources<'_>, context: u64, level: u32) -> Option<Told> {
    let near = |anchor: &&'_ Anchor<'_>| anchor.surface().total(setup, context, level);
    let best = sources.own.iter().filter_map(|anchor| Some((*anchor, near(anchor)?))).min_by_key(|(_, (_, kind))| *kind);
    if let Some((anchor, (range, kind))) = best {
        let figure = anchor.nearest(context, level)?;
        let (range, whose) = (anchor.widened(range), whose(figure));
        let text = match kind {
            Kind::Interpolated => format!("Interpolated between measured cells, {}; nearest: {whose}.", off(range)),
            _ => format!("Extrapolated from measured cells, at most twice as far, {}; nearest: {whose}.", off(range)),
        };
        return Some((Ok(range), kind, Basis::of(anchor, figure, text)));
    }
    let scaled = |anchor: &&'_ Anchor<'_>| anchor.surface().scaled(&anchor.setup, setup, context, level);
    let (anchor, range) = sources.foreign.iter().find_map(|anchor| Some((*anchor, scaled(anchor)?)))?;
    let figure = anchor.nearest(context, level)?;
    let text = format!(
        "Scaled by bandwidth from {}× {}; not tested on this hardware. Nearest cell: {}.",
        anchor.setup.gpu_count,
        anchor.setup.hardware.name,
        whose(figure)
    );
    let range = capped(anchor.widened(range), ceiling(setup, level, real(context)));
    Some((Ok(range), Kind::Scaled, Basis::of(anchor, figure, text)))
}

/// `±10 %`, or both sides where they differ.
fn off(range: Range) -> String {
    let percent = |end: f64| ((end / range.value - 1.0) * 100.0).abs();
    let (low, high) = (percent(range.low), percent(range.high));
    if (low - high).abs() < 0.5 { format!("±{high:.0} %") } else { format!("−{low:.0} to +{high:.0} %") }
}

fn capped(range: Range, ceiling: Option<f64>) -> Range {
    Range { high: ceiling.map_or(range.high, |ceiling| range.high.min(ceiling).max(range.value)), ..range }
}

fn by_formula(setup: &Setup<'_>, context: u64, level: u32) -> Told {
    match decode::estimate(setup, &Priors::default(), level, real(context)) {
        Some(range) => {
            let text = "No run of this model and quantization reaches this cell: the range of the formula, step time = launches + \
                        exchange between GPUs + bytes read ÷ 75 % of the bandwidth + attention; tensor parallelism, no speculation.";
            (Ok(range), Kind::Estimated, Basis::formula(text))
        }
        None => (Err(Reason::BandwidthUnknown), Kind::Estimated, Basis::formula("The catalog has no memory bandwidth of this hardware.")),
    }
}

fn prefill_row(setup: &Setup<'_>, fit: &MemoryFit, sources: &Sources<'_>, context: u64) -> PrefillAnswer {
    let (range, kind, basis) = prefill_told(setup, fit, sources, context);
    PrefillAnswer {
        context_tokens: context,
        tokens_per_second: range.ok().map(|range| range.value),
        low: range.ok().map(|range| range.low),
        high: range.ok().map(|range| range.high),
        ttft_ms: range.ok().map(|range| real(context) / range.value * 1_000.0),
        kind,
        basis,
        reason: range.err(),
    }
}

fn prefill_told(setup: &Setup<'_>, fit: &MemoryFit, sources: &Sources<'_>, context: u64) -> Told {
    if context > u64::from(setup.model.max_context) {
        let text = format!("The model's configuration allows {} tokens.", setup.model.max_context);
        return (Err(Reason::ExceedsMaxContext), Kind::Estimated, Basis::formula(text));
    }
    if let Some((anchor, figure)) = sources.own.iter().find_map(|anchor| Some((*anchor, anchor.prefill().get(&context)?))) {
        return (Ok(figure.range), Kind::Measured, Basis::of(anchor, figure, format!("{}.", measured_text(figure))));
    }
    let near = sources.own.iter().filter_map(|anchor| Some((*anchor, prefill_near(anchor, context)?)));
    if let Some((anchor, (range, kind, figure))) = near.min_by_key(|(_, (_, kind, _))| *kind) {
        let whose = whose(figure);
        let text = match kind {
            Kind::Interpolated => format!("Interpolated in time per token between measured rows, ±10 %; nearest: {whose}."),
            _ => format!("Extrapolated in time per token from measured rows, ±25 %; nearest: {whose}."),
        };
        return (Ok(range), kind, Basis::of(anchor, figure, text));
    }
    if fit.excludes(setup, 1, real(context)) {
        let text = "Weights and KV cache of the prompt are larger than the memory that an engine can use.";
        return (Err(Reason::DoesNotFit), Kind::Estimated, Basis::formula(text));
    }
    match prefill::estimate(setup, real(context)) {
        Some(range) => {
            let text = "Formula: operations of the layers at 65 % and of attention at 25 % of the 16-bit peak, and exchange between GPUs.";
            (Ok(range), Kind::Estimated, Basis::formula(text))
        }
        None => (Err(Reason::BandwidthUnknown), Kind::Estimated, Basis::formula("The catalog has no compute rate of this hardware.")),
    }
}

/// Between measured prefill rows, with the nearest of them.
fn prefill_near<'a>(anchor: &'a Anchor<'_>, context: u64) -> Option<(Range, Kind, &'a Figure)> {
    let rows: Vec<(f64, f64)> = anchor.prefill().iter().map(|(at, figure)| (real(*at), 1.0 / figure.range.value)).collect();
    let (range, kind) = prefill::between(&rows, context)?;
    Some((range, kind, anchor.nearest_prefill(context)?))
}

fn memory(setup: &Setup<'_>, fit: &MemoryFit) -> MemoryAnswer {
    let source =
        if setup.weights.from_repository { "the size of the published repository" } else { "the parameters and bits of the catalog" };
    let copies = if fit.copies > 1.0 { "; tensor parallelism keeps the cache more than once" } else { "" };
    let text =
        format!("Weights by {source}; cache by the attention layers of the model{copies}; engines use 90 to 98 % of a card's memory.");
    let range = |[low, value, high]: [f64; 3]| Range { low, value, high };
    MemoryAnswer {
        fits: fit.weights_fit(),
        memory_gib: fit.memory_bytes.map(gib),
        weights_gib: gib(fit.weights_bytes),
        overhead_gib: fit.overhead_bytes.map(gib),
        kv_bytes_per_token: kv_bytes_per_token(setup.model, setup.kv),
        state_bytes_per_sequence: state_bytes(setup.model),
        cache_room_gib: fit.cache_room_bytes.map(|rooms| range(rooms.map(|room| gib(room.max(0.0))))),
        kv_capacity_tokens: fit.capacity_tokens(setup).map(range),
        basis: Basis::formula(text),
    }
}

fn gib(bytes: f64) -> f64 {
    bytes / real(GIB_BYTES)
}
