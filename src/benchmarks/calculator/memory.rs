//! What a model takes of the memory: weights by quantization, KV cache by attention kind, and the engine's own needs.
//!
//! "4-bit" is never applied to every weight: embeddings and, by format, the layers outside the experts stay wider. Where the size of the
//! published repository is known, it decides.

use serde::Serialize;
use utoipa::ToSchema;

use super::{Setup, real};
use crate::base::units::GIB_BYTES;
use crate::benchmarks::quantization::Quantization;
use crate::catalog::{AttentionKind, Catalog, HardwareKind, Model, ModelKind};

const BITS_PER_BYTE: f64 = 8.0;
const PARAMS_PER_B: f64 = 1e9;
const HALF_BITS: f64 = 16.0;
/// A weight takes at least this much in any format that people serve: the bound where the quantization is unknown.
pub const LEAST_BITS: f64 = 2.0;
/// Scales of KV formats that keep one per token and head, for K and for V.
const KV_SCALE_BYTES: f64 = 4.0;

/// (slug, bits of the quantized weights with their scales, bits of the layers outside the experts, bits of embedding and output head).
/// GGUF and EXL2: the mean over the file, which holds for every part. Sources: the formats' group sizes; llama.cpp's quantize table.
const WEIGHT_BITS: &[(&str, f64, f64, f64)] = &[
    ("fp32", 32.0, 32.0, 32.0),
    ("fp16", 16.0, 16.0, 16.0),
    ("bf16", 16.0, 16.0, 16.0),
    ("fp8", 8.0, 8.0, 16.0),
    ("mxfp8", 8.25, 8.25, 16.0),
    ("int8", 8.0, 8.0, 16.0),
    ("awq-8bit", 8.25, 8.25, 16.0),
    ("gptq-8bit", 8.25, 8.25, 16.0),
    ("bnb-8bit", 8.0, 8.0, 16.0),
    ("mlx-8bit", 8.5, 8.5, 8.5),
    ("int4", 4.25, 4.25, 16.0),
    ("awq-4bit", 4.25, 4.25, 16.0),
    ("gptq-4bit", 4.25, 4.25, 16.0),
    ("nvfp4", 4.5, 4.5, 16.0),
    ("mxfp4", 4.25, 16.0, 16.0),
    ("bnb-4bit", 4.5, 4.5, 16.0),
    ("mlx-4bit", 4.5, 4.5, 4.5),
    ("exl2-4bpw", 4.0, 4.0, 6.0),
    ("q2_k", 3.16, 3.16, 3.16),
    ("q3_k_s", 3.64, 3.64, 3.64),
    ("q3_k_m", 4.0, 4.0, 4.0),
    ("q3_k_l", 4.3, 4.3, 4.3),
    ("q4_0", 4.66, 4.66, 4.66),
    ("q4_1", 5.13, 5.13, 5.13),
    ("q4_k_s", 4.67, 4.67, 4.67),
    ("q4_k_m", 4.85, 4.85, 4.85),
    ("q5_0", 5.59, 5.59, 5.59),
    ("q5_1", 6.06, 6.06, 6.06),
    ("q5_k_s", 5.57, 5.57, 5.57),
    ("q5_k_m", 5.7, 5.7, 5.7),
    ("q6_k", 6.56, 6.56, 6.56),
    ("q8_0", 8.5, 8.5, 8.5),
    ("iq2_xs", 2.59, 2.59, 2.59),
    ("iq3_xs", 3.5, 3.5, 3.5),
    ("iq4_xs", 4.46, 4.46, 4.46),
    ("iq4_nl", 4.68, 4.68, 4.68),
];

/// Formats of linear layers that, in a mixture of experts, leave recurrent layers and their neighbours at 16 bits.
const LINEAR_4_BIT: &[&str] = &["int4", "awq-4bit", "gptq-4bit", "nvfp4"];

/// Bits a weight takes, by the part of the network.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct WeightBits {
    pub experts: f64,
    /// Layers outside the routed experts.
    pub layers: f64,
    /// Input embedding and output head.
    pub embedding: f64,
}

impl WeightBits {
    pub const fn uniform(bits: f64) -> Self {
        Self { experts: bits, layers: bits, embedding: bits }
    }

    /// What a quantization makes of a model. A verbatim one is read by its number: `4.85 bits`, `3.5bpw`.
    pub fn of(quantization: &Quantization, model: &Model) -> Option<Self> {
        let slug = quantization.as_str();
        let Some((_, experts, layers, embedding)) = WEIGHT_BITS.iter().find(|(known, ..)| *known == slug) else {
            return stated_bits(slug).map(Self::uniform);
        };
        // Without routed experts the layers are what is quantized.
        let layers = match model.routed_params_b {
            None => *experts,
            Some(_) if model.kind == ModelKind::Hybrid && LINEAR_4_BIT.contains(&slug) => HALF_BITS,
            Some(_) => *layers,
        };
        Some(Self { experts: *experts, layers, embedding: *embedding })
    }
}

/// `4.85`, `4.85 bits`, `4.85-bit`, `3.5 bpw`: a number of bits, within what weights have.
fn stated_bits(text: &str) -> Option<f64> {
    let lower = text.to_lowercase();
    let number = ["bits", "bit", "bpw"].iter().find_map(|unit| lower.strip_suffix(unit)).unwrap_or(&lower);
    let bits: f64 = number.trim_end_matches([' ', '-', '_']).trim().parse().ok()?;
    (1.0..=32.0).contains(&bits).then_some(bits)
}

/// Bytes of the weights by how a decode step reads them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    pub bits: WeightBits,
    /// All that lies in memory.
    pub total_bytes: f64,
    /// Read in every step: all but routed experts and input embedding.
    pub fixed_bytes: f64,
    /// All routed experts.
    pub routed_bytes: f64,
    /// The input embedding at the format's narrowest width: in memory, of which a step looks up rows; 0 where it is the output head too.
    pub looked_up_bytes: f64,
    /// The size of the published repository was used.
    pub from_repository: bool,
}

impl Weights {
    pub fn new(model: &Model, bits: WeightBits) -> Self {
        let routed = model.routed_params_b.unwrap_or_default();
        let input_embedding = (model.total_params_b - routed - model.fixed_read_params_b).max(0.0);
        let head = (real(u64::from(model.vocab_size)) * real(u64::from(model.hidden_size)) / PARAMS_PER_B).min(model.fixed_read_params_b);
        let bytes = |params_b: f64, bits: f64| params_b * PARAMS_PER_B * bits / BITS_PER_BYTE;
        let fixed_bytes = bytes(model.fixed_read_params_b - head, bits.layers) + bytes(head, bits.embedding);
        let routed_bytes = bytes(routed, bits.experts);
        let total_bytes = fixed_bytes + routed_bytes + bytes(input_embedding, bits.embedding);
        let looked_up_bytes = bytes(input_embedding, bits.experts.min(bits.layers).min(bits.embedding));
        Self { bits, total_bytes, fixed_bytes, routed_bytes, looked_up_bytes, from_repository: false }
    }

    /// By quantization, or by the size of the repository where one of this model and quantization is known. `None` for a quantization
    /// that says nothing of its bits.
    pub fn of(model: &Model, quantization: &Quantization) -> Option<Self> {
        let weights = Self::new(model, WeightBits::of(quantization, model)?);
        Some(repository_bytes(model, quantization).map_or(weights, |total| weights.fitted_to(model, total)))
    }

    /// The least that any quantization makes of the model: a bound where the quantization is unknown.
    pub fn least(model: &Model, quantization: Option<&Quantization>) -> Self {
        let known = quantization.and_then(|quantization| WeightBits::of(quantization, model));
        let least = known.map_or(LEAST_BITS, |bits| bits.experts.min(bits.layers));
        Self::new(model, WeightBits::uniform(least))
    }

    /// What the repository's size leaves for the experts; a dense model is scaled as a whole.
    fn fitted_to(self, model: &Model, total_bytes: f64) -> Self {
        let rest = self.total_bytes - self.routed_bytes;
        let routed_bytes = total_bytes - rest;
        let routed_params = model.routed_params_b.unwrap_or_default() * PARAMS_PER_B;
        let experts = routed_bytes * BITS_PER_BYTE / routed_params;
        if routed_params > 0.0 && (LEAST_BITS..=HALF_BITS).contains(&experts) {
            let bits = WeightBits { experts, ..self.bits };
            return Self { bits, total_bytes, routed_bytes, from_repository: true, ..self };
        }
        let scale = total_bytes / self.total_bytes;
        let [fixed_bytes, routed_bytes, looked_up_bytes] =
            [self.fixed_bytes, self.routed_bytes, self.looked_up_bytes].map(|bytes| bytes * scale);
        Self { total_bytes, fixed_bytes, routed_bytes, looked_up_bytes, from_repository: true, ..self }
    }

    /// Bytes that one step reads when a batch hits this share of the routed experts.
    pub fn read_bytes(&self, experts_hit: f64) -> f64 {
        self.fixed_bytes + self.routed_bytes * experts_hit
    }
}

fn repository_bytes(model: &Model, quantization: &Quantization) -> Option<f64> {
    let family = quantization.as_str().split('-').next().unwrap_or_default();
    let same = |format: &str| format.starts_with(family);
    let mut repos = Catalog::builtin().model_repos().iter().filter(|repo| repo.model_slug == model.slug);
    repos.find(|repo| repo.weight_format.as_deref().is_some_and(same) && repo.total_bytes.is_some())?.total_bytes.map(real)
}

/// Whether this names a repository of the model whose size is known.
pub fn is_repository(model: &Model, name: &str) -> bool {
    let mut repos = Catalog::builtin().model_repos().iter();
    repos.any(|repo| repo.model_slug == model.slug && repo.total_bytes.is_some() && repo.repo.eq_ignore_ascii_case(name.trim()))
}

/// How the KV cache is kept.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct KvFormat {
    pub bits: f64,
    /// One scale for every token and head.
    pub scale_per_head: bool,
}

impl KvFormat {
    pub const FP16: Self = Self { bits: HALF_BITS, scale_per_head: false };
    /// The least that an engine keeps: the bound where the format is unknown.
    pub const LEAST: Self = Self { bits: 4.0, scale_per_head: false };

    /// Reads what engines take for `--kv-cache-dtype`; `None` for a name of no known width.
    pub fn parse(text: &str) -> Option<Self> {
        let lower = text.trim().to_lowercase();
        let scale_per_head = lower.ends_with("_per_token_head");
        let bits = match lower.trim_end_matches("_per_token_head") {
            "auto" | "fp16" | "float16" | "f16" | "half" | "bf16" | "bfloat16" => HALF_BITS,
            "fp32" | "float32" | "f32" => 32.0,
            "fp8" | "fp8_e4m3" | "fp8_e5m2" | "fp8_inc" | "fp8_ds_mla" | "int8" => 8.0,
            "q8_0" => 8.5,
            "q5_1" => 6.0,
            "q5_0" => 5.5,
            "q4_1" => 5.0,
            "q4_0" | "iq4_nl" | "nvfp4" | "fp4" => 4.5,
            "int4" => 4.0,
            _ => return None,
        };
        Some(Self { bits, scale_per_head })
    }

    /// The same for a name that tells keys and values apart (`q8_0/q4_0`), whose mean counts.
    pub fn of_name(name: &str) -> Option<Self> {
        let Some((keys, values)) = name.split_once('/') else { return Self::parse(name) };
        let (keys, values) = (Self::parse(keys)?, Self::parse(values)?);
        Some(Self { bits: f64::midpoint(keys.bits, values.bits), scale_per_head: keys.scale_per_head })
    }

    /// The format a launch command asks for, where it names a known one.
    pub fn of_launch_command(command: &str) -> Option<Self> {
        let mut words = command.split([' ', '=', '\n', '\t']).skip_while(|word| *word != "--kv-cache-dtype").skip(1);
        words.find(|word| !word.is_empty()).and_then(Self::parse)
    }
}

/// KV bytes that every further token of a long sequence takes (window layers are full by then).
pub fn kv_bytes_per_token(model: &Model, kv: KvFormat) -> f64 {
    let scales = if kv.scale_per_head { 2.0 * f64::from(model.kv_heads) * f64::from(model.attention_layers) * KV_SCALE_BYTES } else { 0.0 };
    real(model.kv_bytes_per_token_fp16) * kv.bits / HALF_BITS + scales
}

/// KV bytes of one sequence of `tokens`: growing layers, windows up to their length. Recurrent state is apart.
pub fn kv_bytes(model: &Model, kv: KvFormat, tokens: f64) -> f64 {
    let window = model.sliding_window.map_or(f64::INFINITY, f64::from);
    let sliding = real(model.sliding_kv_bytes_per_token_fp16.unwrap_or_default()) * kv.bits / HALF_BITS;
    kv_bytes_per_token(model, kv) * tokens + sliding * tokens.min(window)
}

/// Recurrent state of one sequence; 0 without recurrent layers.
pub fn state_bytes(model: &Model) -> f64 {
    real(model.recurrent_state_bytes.unwrap_or_default())
}

/// How many times tensor parallelism keeps the cache over all GPUs: heads are shared out, and doubled where there are fewer than GPUs. MLA
/// has one latent for all heads, so every GPU has the whole.
pub fn kv_copies(model: &Model, gpu_count: u32) -> f64 {
    let heads = match model.attention_kind {
        AttentionKind::Gqa | AttentionKind::Mha => model.kv_heads.max(1),
        AttentionKind::Mla | AttentionKind::Compressed => 1,
    };
    (f64::from(gpu_count) / f64::from(heads)).max(1.0)
}

/// What is assumed of an engine's use of memory: `low` leaves the least room for the cache.
struct Use {
    usable: f64,
    overhead_gib: f64,
    overhead_share: f64,
}

/// Engines take 90 to 97 % of a card (vLLM's default is 90 %) and need a GiB and more for activations, graphs and the driver's context.
const OWN: [Use; 3] = [
    Use { usable: 0.90, overhead_gib: 1.2, overhead_share: 0.03 },
    Use { usable: 0.94, overhead_gib: 1.0, overhead_share: 0.02 },
    Use { usable: 0.98, overhead_gib: 0.3, overhead_share: 0.0 },
];
/// Shared memory serves the system too: Apple gives the GPU three quarters unless told otherwise.
const SHARED: [Use; 3] = [
    Use { usable: 0.67, overhead_gib: 1.0, overhead_share: 0.0 },
    Use { usable: 0.75, overhead_gib: 0.7, overhead_share: 0.0 },
    Use { usable: 0.95, overhead_gib: 0.3, overhead_share: 0.0 },
];

/// Room and need, in bytes, over all GPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryFit {
    pub weights_bytes: f64,
    pub memory_bytes: Option<f64>,
    pub overhead_bytes: Option<f64>,
    /// Room for KV cache and state: low, expected, high; negative where the weights do not fit.
    pub cache_room_bytes: Option<[f64; 3]>,
    pub copies: f64,
}

impl MemoryFit {
    pub fn of(setup: &Setup<'_>) -> Self {
        let gpus = f64::from(setup.gpu_count);
        let each = setup.memory_gib.or(setup.hardware.memory_gib);
        let shared = setup.hardware.unified || setup.hardware.kind == HardwareKind::Cpu;
        let uses = if shared { &SHARED } else { &OWN };
        let gib = real(GIB_BYTES);
        let overhead = |each: f64, of: &Use| (of.overhead_gib + of.overhead_share * each) * gpus * gib;
        let room = |each: f64| uses.each_ref().map(|of| each * gpus * gib * of.usable - overhead(each, of) - setup.weights.total_bytes);
        Self {
            weights_bytes: setup.weights.total_bytes,
            memory_bytes: each.map(|each| each * gpus * gib),
            overhead_bytes: each.map(|each| overhead(each, &uses[1])),
            cache_room_bytes: each.map(room),
            copies: kv_copies(setup.model, setup.gpu_count),
        }
    }

    /// Whether the weights and one short sequence fit at all, by the expectation; `None` without a known memory size.
    pub fn weights_fit(&self) -> Option<bool> {
        self.cache_room_bytes.map(|[_, expected, _]| expected > 0.0)
    }

    /// Bytes that a batch takes, without copies.
    pub fn batch_bytes(setup: &Setup<'_>, concurrency: u32, tokens: f64) -> f64 {
        f64::from(concurrency) * (kv_bytes(setup.model, setup.kv, tokens) + state_bytes(setup.model))
    }

    /// Whether a batch cannot fit even with the most room and no copies.
    pub fn excludes(&self, setup: &Setup<'_>, concurrency: u32, tokens: f64) -> bool {
        self.cache_room_bytes.is_some_and(|[.., most]| Self::batch_bytes(setup, concurrency, tokens) > most)
    }

    /// Tokens of one long sequence that the room holds: low, expected, high.
    pub fn capacity_tokens(&self, setup: &Setup<'_>) -> Option<[f64; 3]> {
        let per_token = kv_bytes_per_token(setup.model, setup.kv);
        let copies = [self.copies, self.copies, 1.0];
        let fixed = kv_bytes(setup.model, setup.kv, 0.0) + state_bytes(setup.model);
        let rooms = self.cache_room_bytes.filter(|_| per_token > 0.0)?;
        let mut tokens = [0.0; 3];
        for ((out, room), copies) in tokens.iter_mut().zip(rooms).zip(copies) {
            *out = ((room / copies - fixed) / per_token).floor().max(0.0);
        }
        Some(tokens)
    }
}
