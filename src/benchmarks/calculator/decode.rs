//! Decode by formula: the time of one step, and the range to be expected where nothing was measured. What no engine passes: [`super::ceiling`].
//!
//! One step of `B` sequences at context `c` takes
//! `layers · launch + exchange + max(bytes / (η · bandwidth), flops / (η · peak)) + attention`, and gives `B` tokens. Several GPUs are one
//! tensor-parallel group; splitting by layers gives one request one GPU's speed and is not told apart. Invariants: more bandwidth is never slower, more sequences never give a lower total, `low ≤ value ≤ high ≤ ceiling`.

use super::ceiling::ceiling;
use super::memory::{kv_bytes, kv_copies, state_bytes};
use super::{GENERATED_TOKENS, Range, Setup};
use crate::catalog::{AttentionKind, HardwareModel, Model};

const GB: f64 = 1e9;
const TERA: f64 = 1e12;
/// Two all-reduces in every layer under tensor parallelism.
const EXCHANGES_PER_LAYER: f64 = 2.0;
/// Routing is not independent: a batch of B hits the experts of an independent one of B^this (calc.md, section 2).
pub(super) const OVERLAP_EXPONENT: f64 = 0.6;
/// Share of the peak that the matrix units reach in decode, where compute and not memory limits.
const COMPUTE_EFFICIENCY: f64 = 0.5;
/// Bytes per second that an all-reduce moves, by the beginning of the interconnect's name: about two thirds of the link. A bridge beside PCIe
/// is optional, so PCIe counts there.
const LINKS: &[(&str, f64)] = &[("pcie3", 10e9), ("pcie4", 20e9), ("pcie5", 40e9), ("nvlink", 250e9), ("xgmi", 150e9), ("ici", 100e9)];
const LINK_UNKNOWN: f64 = 20e9;
const ACTIVATION_BYTES: f64 = 2.0;
/// Share of the bandwidth's efficiency that is left on shared memory when weights are narrower than 16 bits: its GPUs have few units to
/// unpack them with.
const SHARED_NARROW: f64 = 0.7;
const HALF_BITS: f64 = 16.0;

/// What the formula assumes of engine and hardware. The values are round textbook ones, not fitted to any stored run; [`super::evaluate`]
/// fits them to some matrices and tries them on others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Priors {
    /// Share of the peak bandwidth that reading weights reaches.
    pub efficiency: f64,
    /// Seconds that a layer takes whatever it reads: kernel launches and their gaps.
    pub layer_seconds: f64,
    /// Seconds of one hop of a ring all-reduce over PCIe.
    pub hop_seconds: f64,
    /// Seconds per context token and attention layer, whatever the batch: kernels that read one sequence with few units.
    pub attention_seconds: f64,
    /// The range is the value divided and multiplied by this.
    pub spread: f64,
}

impl Default for Priors {
    fn default() -> Self {
        Self { efficiency: 0.75, layer_seconds: 30e-6, hop_seconds: 4e-6, attention_seconds: 2e-9, spread: 1.55 }
    }
}

/// Bytes per second of all GPUs together; `None` where the catalog has no bandwidth.
pub fn bandwidth(hardware: &HardwareModel, gpu_count: u32) -> Option<f64> {
    hardware.bandwidth_gb_s.map(|gb_s| gb_s * GB * f64::from(gpu_count))
}

/// Share of the routed experts that a batch hits, k of N each, routed independently; 0 for a dense model, whose weights are all fixed.
pub fn experts_hit(model: &Model, tokens: f64) -> f64 {
    match (model.experts, model.experts_per_token) {
        (Some(experts), Some(per_token)) if experts > 0 => {
            let share = (f64::from(per_token) / f64::from(experts)).clamp(0.0, 1.0);
            1.0 - (1.0 - share).powf(tokens.max(1.0))
        }
        _ if model.routed_params_b.is_some() => 1.0,
        _ => 0.0,
    }
}

/// Floating-point operations of one token in the layers.
pub fn flops_per_token(model: &Model) -> f64 {
    2.0 * model.active_params_no_embedding_b * GB
}

/// Operations per second of the best dense precision the part has.
pub fn best_peak(hardware: &HardwareModel) -> Option<f64> {
    let rates = [
        hardware.fp16_dense_tflops,
        hardware.bf16_dense_tflops,
        hardware.fp8_dense_tflops,
        hardware.fp4_dense_tflops,
        hardware.int8_dense_tops,
        hardware.fp32_tflops,
    ];
    rates.into_iter().flatten().fold(None, |best: Option<f64>, rate| Some(best.map_or(rate, |best| best.max(rate)))).map(|best| best * TERA)
}

/// Operations per second with 16-bit operands and wide sums: what engines compute in unless the format says otherwise.
pub fn usual_peak(hardware: &HardwareModel) -> Option<f64> {
    hardware.bf16_dense_tflops.or(hardware.fp16_dense_tflops).or(hardware.fp32_tflops).map(|tflops| tflops * TERA)
}

/// Seconds of one step; `None` where the catalog has no bandwidth.
pub fn step_seconds(setup: &Setup<'_>, priors: &Priors, concurrency: f64, context: f64) -> Option<f64> {
    let model = setup.model;
    let narrow = setup.hardware.unified && setup.weights.bits.layers < HALF_BITS;
    let efficiency = if narrow { priors.efficiency * SHARED_NARROW } else { priors.efficiency };
    let effective = bandwidth(setup.hardware, setup.gpu_count)? * efficiency;
    let tokens = context + GENERATED_TOKENS;
    let bytes = setup.weights.read_bytes(experts_hit(model, concurrency)) + concurrency * 2.0 * state_bytes(model);
    let reading = bytes / effective;
    let computing = usual_peak(setup.hardware)
        .map_or(0.0, |peak| concurrency * flops_per_token(model) / (peak * f64::from(setup.gpu_count) * COMPUTE_EFFICIENCY));
    let cache = concurrency * kv_bytes(model, setup.kv, tokens) * kv_copies(model, setup.gpu_count) / effective;
    let launches = f64::from(model.layers) * priors.layer_seconds;
    let exchange = hop_seconds(setup, priors) + concurrency * exchange_seconds_per_token(setup);
    Some(launches + exchange + reading.max(computing) + cache + attention_seconds(setup, priors, tokens))
}

/// Time that one sequence's context takes in the attention kernels beyond reading it: on parts with less bandwidth in proportion. MLA
/// kernels split a sequence over all units.
fn attention_seconds(setup: &Setup<'_>, priors: &Priors, tokens: f64) -> f64 {
    let per_token = match setup.model.attention_kind {
        AttentionKind::Gqa | AttentionKind::Mha => priors.attention_seconds,
        AttentionKind::Mla | AttentionKind::Compressed => priors.attention_seconds / 8.0,
    };
    tokens * f64::from(setup.model.attention_layers) * per_token
}

/// Time of the hops of all ring all-reduces of a step.
fn hop_seconds(setup: &Setup<'_>, priors: &Priors) -> f64 {
    let fast = link_bytes_per_second(setup.hardware) > 2.0 * LINK_UNKNOWN;
    let hop = if fast { priors.hop_seconds / 4.0 } else { priors.hop_seconds };
    let hops = 2.0 * (f64::from(setup.gpu_count) - 1.0);
    f64::from(setup.model.layers) * EXCHANGES_PER_LAYER * hops * hop
}

/// Time that one token's activations take between the GPUs of a tensor-parallel group; 0 for one GPU.
pub fn exchange_seconds_per_token(setup: &Setup<'_>) -> f64 {
    let gpus = f64::from(setup.gpu_count);
    let each = f64::from(setup.model.hidden_size) * ACTIVATION_BYTES * 2.0 * (gpus - 1.0) / gpus;
    f64::from(setup.model.layers) * EXCHANGES_PER_LAYER * each / link_bytes_per_second(setup.hardware)
}

fn link_bytes_per_second(hardware: &HardwareModel) -> f64 {
    let name = hardware.interconnect.as_deref().unwrap_or_default();
    LINKS.iter().find(|(link, _)| name.starts_with(link)).map_or(LINK_UNKNOWN, |(_, rate)| *rate)
}

/// Total tokens per second to be expected without any measurement: a range, whose middle is the formula.
pub fn estimate(setup: &Setup<'_>, priors: &Priors, concurrency: u32, context: f64) -> Option<Range> {
    let batch = f64::from(concurrency);
    let value = batch / step_seconds(setup, priors, batch, context)?;
    let ceiling = ceiling(setup, concurrency, context)?;
    Some(Range { low: value / priors.spread, value, high: (value * priors.spread).min(ceiling).max(value) })
}
