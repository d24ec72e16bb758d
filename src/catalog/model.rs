//! The rows of the catalog: hardware models, models and model repositories, as the CSV files give them.
//!
//! The structs are answers of the API too, so they do not refuse unknown members; a test holds them to the columns of the files instead.
//!
//! `None` is "unknown or not applicable", never zero. Memory is GiB (2^30), bandwidth GB/s (10^9), rates are dense peaks.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::base::units::MIB_PER_GIB;

/// How far a reported size may lie from a known one and still be the same part: tools round, drivers keep some memory back.
const MEMORY_TOLERANCE: f64 = 0.05;
/// Share that remains of GDDR memory when error correction is on: it takes one sixteenth.
const GDDR_SHARE_WITH_ECC: f64 = 15.0 / 16.0;

/// What a hardware model is to a scheduler: where its memory comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HardwareKind {
    DiscreteGpu,
    IntegratedGpu,
    UnifiedMemory,
    Cpu,
    Accelerator,
}

impl HardwareKind {
    pub const ALL: &'static [Self] = &[Self::DiscreteGpu, Self::IntegratedGpu, Self::UnifiedMemory, Self::Cpu, Self::Accelerator];

    /// The kind as it stands in the API, the CSV and the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DiscreteGpu => "discrete_gpu",
            Self::IntegratedGpu => "integrated_gpu",
            Self::UnifiedMemory => "unified_memory",
            Self::Cpu => "cpu",
            Self::Accelerator => "accelerator",
        }
    }
}

/// A GPU, SoC, accelerator or CPU memory class.
// One row of `data/gpus.csv`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HardwareModel {
    pub slug: String,
    pub name: String,
    pub vendor: String,
    pub kind: HardwareKind,
    pub architecture: String,
    pub release_year: u16,
    /// Nominal size; for parts that share the system's memory the largest size sold. Null where it is whatever is fitted.
    pub memory_gib: Option<f64>,
    pub memory_kind: String,
    pub bandwidth_gb_s: Option<f64>,
    pub fp16_dense_tflops: Option<f64>,
    pub bf16_dense_tflops: Option<f64>,
    pub fp8_dense_tflops: Option<f64>,
    pub fp4_dense_tflops: Option<f64>,
    pub int8_dense_tops: Option<f64>,
    pub fp32_tflops: Option<f64>,
    /// Which unit and accumulator the compute figures are for, and how they were obtained.
    pub compute_basis: Option<String>,
    pub tdp_w: Option<u32>,
    pub interconnect: Option<String>,
    /// Memory as the vendor's tool prints it, where known.
    pub reported_mib: Option<u32>,
    #[serde(deserialize_with = "semicolon_list")]
    pub aliases: Vec<String>,
    pub source: String,
    /// The processor's memory pool is the accelerator's too, so that "VRAM" is the pool.
    #[serde(skip_deserializing)]
    pub unified: bool,
    /// An unofficial memory swap found on rental hosts; never the meaning of a plain name.
    #[serde(skip_deserializing)]
    pub unofficial: bool,
}

impl HardwareModel {
    /// Whether `reported_mib` can be this part's memory; `None` where nothing can be said: no nominal size, or nothing reported
    /// (tools print 0 for unified memory).
    ///
    /// Own memory fits within ±5 % of the nominal size, of the size the vendor's tool is known to print, or of GDDR's size with error
    /// correction on. Shared memory fits up to its largest size +5 %: smaller ones are sold, and firmware keeps a part.
    pub fn memory_fits_mib(&self, reported_mib: f64) -> Option<bool> {
        let reported_gib = reported_mib / MIB_PER_GIB;
        let nominal_gib = self.memory_gib?;
        if !(reported_gib.is_finite() && reported_gib > 0.0) {
            return None;
        }
        if self.unified {
            return Some(reported_gib <= nominal_gib * (1.0 + MEMORY_TOLERANCE));
        }
        Some(self.own_sizes_gib().any(|size| within_tolerance(reported_gib, size)))
    }

    /// Sizes this part shows as its own: nominal, as reported, with error correction on.
    pub(super) fn own_sizes_gib(&self) -> impl Iterator<Item = f64> {
        let reported = self.reported_mib.map(|mib| f64::from(mib) / MIB_PER_GIB);
        let corrected = self.memory_gib.filter(|_| self.memory_kind.starts_with("GDDR")).map(|gib| gib * GDDR_SHARE_WITH_ECC);
        [self.memory_gib, reported, corrected].into_iter().flatten()
    }
}

pub(super) fn within_tolerance(value: f64, size: f64) -> bool {
    (value - size).abs() <= size * MEMORY_TOLERANCE
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelKind {
    Dense,
    Moe,
    /// Has recurrent layers; may also be a mixture of experts.
    Hybrid,
}

impl ModelKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dense => "dense",
            Self::Moe => "moe",
            Self::Hybrid => "hybrid",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttentionKind {
    Gqa,
    Mha,
    Mla,
    /// DeepSeek V4.
    Compressed,
}

/// A language model.
// One row of `data/models.csv`; columns are explained in `data/README.md`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Model {
    pub slug: String,
    /// Repository id of the published weights, as Hugging Face spells it.
    pub hf_id: String,
    pub name: String,
    /// Handle of the publishing organization.
    pub publisher: String,
    pub family: String,
    pub kind: ModelKind,
    /// 10^9, counted from the config: embeddings included, vision and audio towers not.
    pub total_params_b: f64,
    pub active_params_b: f64,
    /// Without input embedding and output head; what prefill computes.
    pub active_params_no_embedding_b: f64,
    pub layers: u32,
    /// Layers whose KV cache grows with the context.
    pub attention_layers: u32,
    pub hidden_size: u32,
    pub kv_heads: u32,
    pub head_dim: u32,
    /// Of the growing layers only.
    pub kv_bytes_per_token_fp16: u64,
    /// Tokens, from the config.
    pub max_context: u32,
    pub native_dtype: String,
    pub vocab_size: u32,
    pub license: Option<String>,
    /// `YYYY-MM-DD` or `YYYY-MM`.
    pub release_date: Option<String>,
    /// Tokens.
    pub sliding_window: Option<u32>,
    pub sliding_layers: Option<u32>,
    /// To be multiplied by min(context, window).
    pub sliding_kv_bytes_per_token_fp16: Option<u64>,
    pub attention_kind: AttentionKind,
    pub experts: Option<u32>,
    pub experts_per_token: Option<u32>,
    pub moe_layers: Option<u32>,
    pub routed_params_b: Option<f64>,
    /// Read in every decode step whatever the batch.
    pub fixed_read_params_b: f64,
    /// Per sequence.
    pub recurrent_state_bytes: Option<u64>,
    pub name_total_b: Option<f64>,
    pub name_active_b: Option<f64>,
    pub total_diff_pct: Option<f64>,
    pub active_diff_pct: Option<f64>,
    #[serde(deserialize_with = "semicolon_list")]
    pub aliases: Vec<String>,
    pub source: String,
    pub notes: Option<String>,
}

/// A repository that holds weights of a model.
// One row of `data/model_repos.csv`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ModelRepo {
    pub repo: String,
    pub model_slug: String,
    pub weight_format: Option<String>,
    pub kv_cache_format: Option<String>,
    pub total_bytes: Option<u64>,
    pub source: String,
}

/// An organization that publishes models, with how many of them the catalog has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Publisher {
    pub slug: String,
    pub model_count: usize,
}

fn semicolon_list<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    Ok(text.split(';').map(str::trim).filter(|alias| !alias.is_empty()).map(str::to_owned).collect())
}
