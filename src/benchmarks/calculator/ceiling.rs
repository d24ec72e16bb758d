//! What no engine passes: the bytes that a step moves, the ceilings that follow, and the margins over them.
//!
//! The one place that knows a physical bound of decode. The calculator publishes [`ceiling`]; the bound of a report and those of a run's
//! checks are the same functions of what was stated ([`Stated`]) times its [`Stated::margin`], whose parts are the constants here. Invariants:
//! a margin is between [`ROOM`] and [`MARGIN_MAX`], so that three times a ceiling is never believed of one token a step; with all formats
//! known and one width for every weight, it is [`ROOM`] times the share of the input embedding.

use super::decode::{OVERLAP_EXPONENT, bandwidth, best_peak, experts_hit, flops_per_token};
use super::memory::{KvFormat, Weights, is_repository, kv_bytes};
use super::{Setup, real};
use crate::benchmarks::quantization::Quantization;
use crate::catalog::{AttentionKind, HardwareModel, Model};

/// Memory is overclocked by a tenth at most, and some rows of the catalog are uncertain by as much (boost clocks, bins of one name). A last-level
/// cache saves less: of the gigabyte and more that a step reads it keeps some per cent.
pub const ROOM: f64 = 1.15;
/// The most that is allowed for what a run does not state: the width of layers beside the quantized ones, of the cache, and the input
/// embedding, which is counted and not read. With every part at the format's narrowest a step would move up to 3.3 times fewer bytes than
/// assumed (mixtures in 4 bits whose attention is wider); honest runs reach at most 85 % of the bandwidth (evidence.md 4 C), so 2.5 with
/// [`ROOM`] wrongs none.
pub const OPEN_MAX: f64 = 2.5;
/// No margin is larger.
pub const MARGIN_MAX: f64 = ROOM * OPEN_MAX;
/// Tokens that speculation may give each request in a step: a factor on a bound, where speculation is known of.
pub const TOKENS_PER_STEP_MAX: f64 = 16.0;

/// Bytes that one step of a batch moves: the active weights, and the cache where all of it is read.
///
/// Active weights are counted as publishers count them, with the input embedding (at the format's narrowest width): 3.3 B of Qwen3-30B-A3B at
/// 4.85 bits on 936 GB/s are 468 tokens/s. A step looks up only a row of the embedding for each request, so that this is 3 to 17 % more than
/// is read; no engine comes within that of a data sheet's bandwidth, and what is judged has a margin for it. The context counts once, since
/// requests may share a prefix that some kernels read once, and not for MLA, which sparse attention may sit on.
pub fn step_bytes(setup: &Setup<'_>, concurrency: u32, context: f64) -> f64 {
    read_bytes(setup, concurrency, context) + setup.weights.looked_up_bytes
}

/// The same without the input embedding.
fn read_bytes(setup: &Setup<'_>, concurrency: u32, context: f64) -> f64 {
    let cache = match setup.model.attention_kind {
        AttentionKind::Gqa | AttentionKind::Mha => kv_bytes(setup.model, setup.kv, context),
        AttentionKind::Mla | AttentionKind::Compressed => 0.0,
    };
    // Routing is not independent, and a bound takes the fewest experts.
    let hit = experts_hit(setup.model, f64::from(concurrency).powf(OVERLAP_EXPONENT));
    setup.weights.read_bytes(hit) + cache
}

/// The total that no engine passes at this batch without speculation; `None` where the catalog has no bandwidth.
pub fn ceiling(setup: &Setup<'_>, concurrency: u32, context: f64) -> Option<f64> {
    let by_memory = memory_ceiling(setup, concurrency, context)?;
    Some(compute_ceiling(setup).map_or(by_memory, |by_compute| by_memory.min(by_compute)))
}

/// Bandwidth over the bytes of a step, times the tokens that it gives.
pub fn memory_ceiling(setup: &Setup<'_>, concurrency: u32, context: f64) -> Option<f64> {
    let bandwidth = bandwidth(setup.hardware, setup.gpu_count)?;
    Some(f64::from(concurrency) * bandwidth / step_bytes(setup, concurrency, context))
}

/// The compute peak of the best precision over the operations of a token.
pub fn compute_ceiling(setup: &Setup<'_>) -> Option<f64> {
    best_peak(setup.hardware).map(|peak| peak * f64::from(setup.gpu_count) / flops_per_token(setup.model))
}

/// What was stated of a run: the setup that the calculator would take, and the fewest bytes that it may mean.
#[derive(Debug, Clone, Copy)]
pub struct Stated<'a> {
    /// An unknown quantization is the narrowest there is, an unknown cache one of 16 bits.
    pub setup: Setup<'a>,
    /// Every part at the narrowest width of its format, but for a repository whose size is known; an unknown cache at 4 bits.
    pub least: Setup<'a>,
}

impl<'a> Stated<'a> {
    /// `name` is what the model was called: a repository whose size is known leaves no width open.
    pub fn new(
        hardware: &'a HardwareModel,
        gpu_count: u32,
        model: &'a Model,
        name: &str,
        quantization: Option<&Quantization>,
        kv: Option<KvFormat>,
    ) -> Self {
        let least = Weights::least(model, quantization);
        let weights = quantization.and_then(|quantization| Weights::of(model, quantization)).unwrap_or(least);
        let is_sized = weights.from_repository && is_repository(model, name);
        let of = |weights, kv| Setup { hardware, gpu_count, memory_gib: None, model, weights, kv };
        Self {
            setup: of(weights, kv.unwrap_or(KvFormat::FP16)),
            least: of(if is_sized { weights } else { least }, kv.unwrap_or(KvFormat::LEAST)),
        }
    }

    /// What a figure may be over the ceiling and still be believed without speculation.
    pub fn margin(&self, concurrency: u32, context: f64) -> f64 {
        let open = step_bytes(&self.setup, concurrency, context) / read_bytes(&self.least, concurrency, context);
        ROOM * open.clamp(1.0, OPEN_MAX)
    }

    /// The highest total that memory allows and this leaves open.
    pub fn memory_bound(&self, concurrency: u32, context: f64) -> Option<f64> {
        memory_ceiling(&self.setup, concurrency, context).map(|ceiling| ceiling * self.margin(concurrency, context))
    }

    /// The highest total that computing allows: operations do not depend on formats.
    pub fn compute_bound(&self) -> Option<f64> {
        compute_ceiling(&self.setup).map(|ceiling| ceiling * ROOM)
    }

    /// Both.
    pub fn bound(&self, concurrency: u32, context: u64) -> Option<f64> {
        let by_memory = self.memory_bound(concurrency, real(context))?;
        Some(self.compute_bound().map_or(by_memory, |by_compute| by_memory.min(by_compute)))
    }
}
