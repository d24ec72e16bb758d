//! The calculator's answer: every asked cell with its speed, kind and basis, and what fits in memory.

use serde::Serialize;
use utoipa::ToSchema;

use super::memory::{kv_bytes_per_token, state_bytes};
use super::{GENERATED_TOKENS, Kind, MemoryFit, Priors, Range, Setup, Surface, WeightBits, decode, prefill, real};
use crate::base::units::GIB_BYTES;
use crate::benchmarks::matrix::{CellStatus, Matrix};

/// A run that the answer may stand on: same model and quantization, on its own hardware.
#[derive(Debug, Clone)]
pub struct Anchor<'a> {
    pub run_id: String,
    pub matrix: &'a Matrix,
    pub setup: Setup<'a>,
}

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
    /// The run it is anchored to was over its KV capacity there.
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
    /// The run that was measured; null for the formula alone.
    pub run_id: Option<String>,
    /// Slug of the hardware model that run was on.
    pub hardware: Option<String>,
    pub gpu_count: Option<u32>,
}

impl Basis {
    fn of_run(anchor: &Anchor<'_>, text: String) -> Self {
        let hardware = Some(anchor.setup.hardware.slug.clone());
        Self { text, run_id: Some(anchor.run_id.clone()), hardware, gpu_count: Some(anchor.setup.gpu_count) }
    }

    fn formula(text: impl Into<String>) -> Self {
        Self { text: text.into(), run_id: None, hardware: None, gpu_count: None }
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
    /// What no engine passes at this batch without speculation.
    pub ceiling_tokens_per_second: Option<f64>,
    pub memory_gib: f64,
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

/// Answers a question from runs, best first among those of the same hardware, and the formula.
pub fn answer(question: &Question<'_>, anchors: &[Anchor<'_>]) -> Answer {
    let setup = &question.setup;
    let same = |anchor: &&Anchor<'_>| anchor.setup.hardware.slug == setup.hardware.slug && anchor.setup.gpu_count == setup.gpu_count;
    let (own, foreign): (Vec<&Anchor<'_>>, Vec<&Anchor<'_>>) = anchors.iter().partition(same);
    let with_surface = |anchors: Vec<&'_ Anchor<'_>>| anchors.into_iter().map(|anchor| Surface::of(anchor.matrix)).collect::<Vec<_>>();
    let sources = Sources { own_surfaces: with_surface(own.clone()), foreign_surfaces: with_surface(foreign.clone()), own, foreign };
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
    own_surfaces: Vec<Surface>,
    foreign: Vec<&'a Anchor<'a>>,
    foreign_surfaces: Vec<Surface>,
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
        ceiling_tokens_per_second: decode::ceiling(setup, level, real(context)),
        memory_gib: gib(setup.weights.total_bytes + MemoryFit::batch_bytes(setup, level, real(context) + GENERATED_TOKENS)),
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
    let refused = |anchor: &&&Anchor<'_>| anchor.matrix.cell(context, level).is_some_and(|cell| cell.status == CellStatus::OverCapacity);
    if let Some(anchor) = sources.own.iter().find(refused) {
        let text = "The run's engine had too little KV cache for this cell.".to_owned();
        return (Err(Reason::OverCapacityInRun), Kind::Measured, Basis::of_run(anchor, text));
    }
    if fit.excludes(setup, level, real(context) + GENERATED_TOKENS) {
        let text = "Weights, KV cache and state of the batch are larger than the memory that an engine can use.";
        return (Err(Reason::DoesNotFit), Kind::Estimated, Basis::formula(text));
    }
    anchored(setup, sources, context, level).unwrap_or_else(|| by_formula(setup, context, level))
}

/// What a run of the same hardware measured at the very cell.
fn measured(anchor: &Anchor<'_>, context: u64, level: u32) -> Option<Told> {
    let cell = anchor.matrix.cell(context, level).filter(|cell| cell.status.is_measured())?;
    let total = cell.total_tokens_per_second.filter(|total| *total > 0.0)?;
    let queued = if cell.status == CellStatus::Queued { "; requests queued there" } else { "" };
    let text = format!("Measured by run {}{queued}.", anchor.run_id);
    Some((Ok(Range::exact(total)), Kind::Measured, Basis::of_run(anchor, text)))
}

/// From a run of the same hardware near the cell, or from one on other hardware.
fn anchored(setup: &Setup<'_>, sources: &Sources<'_>, context: u64, level: u32) -> Option<Told> {
    let near = sources.own.iter().zip(&sources.own_surfaces);
    let best =
        near.filter_map(|(anchor, surface)| Some((*anchor, surface.total(setup, context, level)?))).min_by_key(|(_, (_, kind))| *kind);
    if let Some((anchor, (range, kind))) = best {
        let text = match kind {
            Kind::Interpolated => {
                let share = (range.high / range.value - 1.0) * 100.0;
                format!("Interpolated between measured cells of run {}, ±{share:.0} %.", anchor.run_id)
            }
            _ => format!("Extrapolated from the measured cells of run {}, at most twice as far, ±25 %.", anchor.run_id),
        };
        return Some((Ok(range), kind, Basis::of_run(anchor, text)));
    }
    let mut far = sources.foreign.iter().zip(&sources.foreign_surfaces);
    let (anchor, range) = far.find_map(|(anchor, surface)| Some((*anchor, surface.scaled(&anchor.setup, setup, context, level)?)))?;
    let text = format!(
        "Scaled by bandwidth from run {} on {}× {}; not tested on this hardware.",
        anchor.run_id, anchor.setup.gpu_count, anchor.setup.hardware.name
    );
    Some((Ok(capped(range, decode::ceiling(setup, level, real(context)))), Kind::Scaled, Basis::of_run(anchor, text)))
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
    let near = sources.own.iter().filter_map(|anchor| Some((*anchor, prefill::anchored(anchor.matrix, context)?)));
    if let Some((anchor, (range, kind))) = near.min_by_key(|(_, (_, kind))| *kind) {
        let text = match kind {
            Kind::Measured => format!("Measured by run {}.", anchor.run_id),
            Kind::Interpolated => format!("Interpolated in time per token between rows of run {}, ±10 %.", anchor.run_id),
            _ => format!("Extrapolated in time per token from rows of run {}, ±25 %.", anchor.run_id),
        };
        return (Ok(range), kind, Basis::of_run(anchor, text));
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
