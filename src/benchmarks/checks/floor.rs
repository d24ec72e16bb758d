//! The lower bound: what hardware of the claimed name should reach at the least (evidence.md 4 D, *faster GPU than listed*).
//!
//! A slow engine breaks no law, so this never rejects, and it is a note wherever something honest makes an engine slow: weights kept elsewhere,
//! a debug mode, shared memory, no prefill to compare. Margins are wide: small models on fast parts are held up by launches, not by memory,
//! which the calculator's estimate counts and a ceiling of bandwidth does not; so a cell has to be far below both.

use super::{CellRef, Finding, Input, Phase, Severity};
use crate::benchmarks::calculator::{KvFormat, Priors, Setup, WeightBits, Weights, decode, real};
use crate::benchmarks::matrix::{Cell, CellStatus};
use crate::benchmarks::quantization::Quantization;
use crate::catalog::{HardwareModel, Model};

/// Share of the estimate that every valid cell stays below; the estimate's own range goes down to 65 %.
const ESTIMATE_SHARE: f64 = 0.4;
/// Share of the bandwidth's ceiling that one request stays below; honest runs have 10 to 85 %.
const CEILING_SHARE: f64 = 0.1;
/// Share of the usual peak that every prefill row stays below for a person to look; honest runs have some tens of percents.
const PREFILL_SHARE: f64 = 0.04;
/// Shorter prompts do not fill a GPU.
const PREFILL_TOKENS_MIN: u64 = 4_096;
const HALF_BITS: f64 = 16.0;

pub(super) struct Floor<'a> {
    pub hardware: &'a HardwareModel,
    pub gpu_count: u32,
    pub model: &'a Model,
    /// Of one request without context.
    pub ceiling: Option<f64>,
    pub quantization: Option<Quantization>,
    /// An engine that keeps all on the GPU, with no option that slows it.
    pub is_plain: bool,
}

pub(super) fn far_below(input: &Input<'_>, floor: &Floor<'_>) -> Option<Finding> {
    let valid: Vec<_> = input.matrix.decode.iter().filter(|cell| cell.status == CellStatus::Valid).collect();
    let single = valid.iter().filter(|cell| cell.concurrency == 1).min_by_key(|cell| cell.context_tokens)?;
    let rate = single.total_tokens_per_second?;
    let ceiling = floor.ceiling.filter(|ceiling| rate < ceiling * CEILING_SHARE)?;
    // Where the format is not known, the one with most to read: it expects least.
    let stated = floor.quantization.as_ref().and_then(|quantization| Weights::of(floor.model, quantization));
    let weights = stated.unwrap_or_else(|| Weights::new(floor.model, WeightBits::uniform(HALF_BITS)));
    let setup =
        Setup { hardware: floor.hardware, gpu_count: floor.gpu_count, memory_gib: None, model: floor.model, weights, kv: KvFormat::FP16 };
    let is_low = |cell: &&Cell| {
        let expected = decode::estimate(&setup, &Priors::default(), cell.concurrency, real(cell.context_tokens));
        expected.zip(cell.total_tokens_per_second).is_some_and(|(expected, total)| total < expected.value * ESTIMATE_SHARE)
    };
    if !valid.iter().all(is_low) {
        return None;
    }
    let severity =
        if floor.is_plain && !floor.hardware.unified && prefill_is_low(input, floor) { Severity::Suspicious } else { Severity::Note };
    let message = "Every cell is far below what the hardware of this name is expected to do with this model.";
    let at = CellRef { phase: Phase::Decode, context_tokens: single.context_tokens, concurrency: 1 };
    let text = |rate: f64| format!("{rate:.1} tok/s");
    Some(
        Finding::new("far_below_hardware", severity, message)
            .at(at)
            .values(format!("at least {}", text(ceiling * CEILING_SHARE)), text(rate)),
    )
}

/// Whether there are long cold prompts and all of them were slow.
fn prefill_is_low(input: &Input<'_>, floor: &Floor<'_>) -> bool {
    let Some(peak) = decode::usual_peak(floor.hardware) else { return false };
    let most = peak * f64::from(floor.gpu_count) / decode::flops_per_token(floor.model);
    let long = input.document.prefill.iter().filter(|row| row.samples != Some(0.0) && row.context_tokens >= PREFILL_TOKENS_MIN);
    let rates: Vec<f64> = long.filter_map(|row| row.tok_per_sec).filter(|rate| *rate > 0.0).collect();
    !rates.is_empty() && rates.iter().all(|rate| *rate < most * PREFILL_SHARE)
}
