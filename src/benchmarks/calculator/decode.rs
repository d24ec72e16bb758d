//! Decode by formula: the time of one step, the bounds that no engine passes, and the range to be expected where nothing was measured.
//!
//! One step of `B` sequences at context `c` takes
//! `layers · launch + exchange + max(bytes / (η · bandwidth), flops / (η · peak)) + attention`, and gives `B` tokens. Invariants: more
//! bandwidth is never slower, more sequences never give a lower total, `low ≤ value ≤ high ≤ ceiling`.

use super::memory::{KvFormat, Weights, kv_bytes, kv_copies, state_bytes};
use super::{GENERATED_TOKENS, Range, Setup};
use crate::catalog::{AttentionKind, HardwareModel, Model};

const GB: f64 = 1e9;
const TERA: f64 = 1e12;
/// Two all-reduces in every layer under tensor parallelism.
const EXCHANGES_PER_LAYER: f64 = 2.0;
/// Routing is not independent: a batch of B hits the experts of an independent one of B^this (calc.md, section 2).
const OVERLAP_EXPONENT: f64 = 0.6;
/// Share of the peak that the matrix units reach in decode, where compute and not memory limits.
const COMPUTE_EFFICIENCY: f64 = 0.5;
/// Names of links between GPUs that need no host bridge.
const FAST_LINKS: &[&str] = &["nvlink", "xgmi", "xe-link", "c2c", "ici", "neuronlink"];

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

/// Tokens per second that reading `bytes` once per step allows for a batch.
pub fn read_ceiling(bandwidth: f64, bytes: f64, concurrency: f64) -> f64 {
    concurrency * bandwidth / bytes
}

/// Floating-point operations of one token in the layers.
pub fn flops_per_token(model: &Model) -> f64 {
    2.0 * model.active_params_no_embedding_b * GB
}

/// The total that no engine passes at this batch without speculation: bandwidth over the least bytes of a step, and the compute peak. Cache
/// bytes count only where every token of the context is read (not for MLA, which sparse attention may sit on).
pub fn ceiling(setup: &Setup<'_>, concurrency: u32, context: f64) -> Option<f64> {
    let batch = f64::from(concurrency);
    let cache = match setup.model.attention_kind {
        AttentionKind::Gqa | AttentionKind::Mha => batch * kv_bytes(setup.model, setup.kv, context),
        AttentionKind::Mla | AttentionKind::Compressed => 0.0,
    };
    let weights = setup.weights.read_bytes(experts_hit(setup.model, batch.powf(OVERLAP_EXPONENT)));
    let by_memory = read_ceiling(bandwidth(setup.hardware, setup.gpu_count)?, weights + cache, batch);
    let by_compute = best_peak(setup.hardware).map(|peak| peak * f64::from(setup.gpu_count) / flops_per_token(setup.model));
    Some(by_compute.map_or(by_memory, |by_compute| by_memory.min(by_compute)))
}

/// The setup with the fewest bytes that fit what is known: for bounds on a run whose formats were not all stated.
pub fn least<'a>(
    hardware: &'a HardwareModel,
    gpu_count: u32,
    model: &'a Model,
    quantization: Option<&crate::benchmarks::quantization::Quantization>,
    kv: Option<KvFormat>,
) -> Setup<'a> {
    let weights = Weights::least(model, quantization);
    Setup { hardware, gpu_count, memory_gib: None, model, weights, kv: kv.unwrap_or(KvFormat::LEAST) }
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
    let effective = bandwidth(setup.hardware, setup.gpu_count)? * priors.efficiency;
    let tokens = context + GENERATED_TOKENS;
    let bytes = setup.weights.read_bytes(experts_hit(model, concurrency)) + concurrency * 2.0 * state_bytes(model);
    let reading = bytes / effective;
    let computing = usual_peak(setup.hardware).map_or(0.0, |peak| {
        concurrency * flops_per_token(model) / (peak * f64::from(setup.gpu_count) * COMPUTE_EFFICIENCY)
    });
    let cache = concurrency * kv_bytes(model, setup.kv, tokens) * kv_copies(model, setup.gpu_count) / effective;
    let launches = f64::from(model.layers) * priors.layer_seconds;
    Some(launches + exchange_seconds(setup, priors) + reading.max(computing) + cache + attention_seconds(setup, priors, tokens))
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

fn exchange_seconds(setup: &Setup<'_>, priors: &Priors) -> f64 {
    let fast = setup.hardware.interconnect.as_deref().is_some_and(|links| FAST_LINKS.iter().any(|link| links.contains(link)));
    let hop = if fast { priors.hop_seconds / 4.0 } else { priors.hop_seconds };
    let hops = 2.0 * (f64::from(setup.gpu_count) - 1.0);
    f64::from(setup.model.layers) * EXCHANGES_PER_LAYER * hops * hop
}

/// Total tokens per second to be expected without any measurement: a range, whose middle is the formula.
pub fn estimate(setup: &Setup<'_>, priors: &Priors, concurrency: u32, context: f64) -> Option<Range> {
    let batch = f64::from(concurrency);
    let value = batch / step_seconds(setup, priors, batch, context)?;
    let ceiling = ceiling(setup, concurrency, context)?;
    Some(Range { low: value / priors.spread, value, high: (value * priors.spread).min(ceiling).max(value) })
}
