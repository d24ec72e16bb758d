//! A row of the export.

use chrono::{DateTime, Utc};
use diesel::prelude::*;

use crate::base::id::RunId;

/// A decode cell with what it is of.
#[derive(Debug, Clone, Queryable)]
pub(super) struct ExportRow {
    pub run_id: RunId,
    pub by: String,
    pub evidence_level: String,
    pub model: Option<String>,
    pub model_name: String,
    pub publisher: Option<String>,
    pub quantization: Option<String>,
    pub kv_cache_dtype: Option<String>,
    pub hardware: Option<String>,
    pub gpu_count: Option<i32>,
    pub engine: Option<String>,
    pub created_at: DateTime<Utc>,
    pub context_tokens: i32,
    pub concurrency: i32,
    pub total_tokens_per_second: Option<f64>,
    pub per_request_tokens_per_second: Option<f64>,
    pub ttft_ms: Option<f64>,
    pub itl_ms: Option<f64>,
    pub cold_ttft_ms: Option<f64>,
}

/// Where a batch goes on from.
pub(super) type Position = (RunId, i32, i32);

impl ExportRow {
    pub const fn position(&self) -> Position {
        (self.run_id, self.context_tokens, self.concurrency)
    }
}

/// Names of the columns, in order.
pub(super) const COLUMNS: [&str; 19] = [
    "run_id",
    "by",
    "evidence_level",
    "model",
    "model_name",
    "publisher",
    "quantization",
    "kv_cache_dtype",
    "hardware",
    "gpu_count",
    "engine",
    "created_at",
    "context_tokens",
    "concurrency",
    "total_tokens_per_second",
    "per_request_tokens_per_second",
    "ttft_ms",
    "itl_ms",
    "cold_ttft_ms",
];
