//! Rows of `reports` and what the API shows of them.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    base::{
        Error, Result,
        id::{AccountId, ReportId},
    },
    benchmarks::model::EvidenceLevel,
    db::schema::reports,
};

/// What a reported speed is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ReportRate)]
pub enum Rate {
    /// All requests together.
    Total,
    /// Each request.
    PerRequest,
}

impl Rate {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::PerRequest => "per_request",
        }
    }

    pub(super) fn parse(text: &str) -> Result<Self> {
        let known = [Self::Total, Self::PerRequest].into_iter().find(|rate| rate.as_str() == text);
        known.ok_or_else(|| Error::internal(format!("rate {text}")))
    }
}

/// One row of `reports`.
#[derive(Debug, Clone, Queryable, Selectable, Insertable)]
#[diesel(table_name = reports, check_for_backend(diesel::pg::Pg))]
pub struct Report {
    pub id: ReportId,
    pub account_id: AccountId,
    pub model_slug: Option<String>,
    pub model_name: String,
    pub publisher: Option<String>,
    pub hardware_slug: Option<String>,
    pub hardware_name: String,
    pub gpu_count: i32,
    pub engine_name: String,
    pub engine_version: Option<String>,
    pub quantization: String,
    pub kv_cache_dtype: Option<String>,
    pub context_tokens: i32,
    pub concurrency: i32,
    pub rate: String,
    pub tokens_per_second: f64,
    pub ttft_ms: Option<f64>,
    pub total_ceiling_tokens_per_second: Option<f64>,
    pub is_above_ceiling: bool,
    pub source_url: Option<String>,
    pub notes: Option<String>,
    pub created_at: DateTime<Utc>,
}

/// A report as the API shows it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ReportView {
    pub id: ReportId,
    /// Always `reported`.
    pub evidence_level: EvidenceLevel,
    /// Handle of whoever reported it.
    pub by: String,
    /// Slug of the catalog, where it knows the model.
    pub model: Option<String>,
    pub model_name: String,
    pub publisher: Option<String>,
    /// Slug of the catalog, where it knows the hardware.
    pub hardware: Option<String>,
    pub hardware_name: String,
    pub gpu_count: i32,
    pub engine: String,
    pub engine_version: Option<String>,
    pub quantization: String,
    pub kv_cache_dtype: Option<String>,
    pub context_tokens: i32,
    pub concurrency: i32,
    /// What `tokens_per_second` is of.
    pub rate: Rate,
    pub tokens_per_second: f64,
    pub ttft_ms: Option<f64>,
    /// What the hardware can do at most without speculation, all requests together: the calculator's ceiling times at most 2.9 for what a report
    /// leaves open, as for the checks of runs. Null where the catalog does not know.
    pub total_ceiling_tokens_per_second: Option<f64>,
    /// Above that: speculation, or an error.
    pub is_above_ceiling: bool,
    pub source_url: Option<String>,
    pub notes: Option<String>,
    pub created_at: DateTime<Utc>,
}

impl ReportView {
    /// # Errors
    /// `internal` for a rate that this program does not know.
    pub fn of(report: Report, handle: &str) -> Result<Self> {
        Ok(Self {
            rate: Rate::parse(&report.rate)?,
            id: report.id,
            evidence_level: EvidenceLevel::Reported,
            by: format!("@{handle}"),
            model: report.model_slug,
            model_name: report.model_name,
            publisher: report.publisher,
            hardware: report.hardware_slug,
            hardware_name: report.hardware_name,
            gpu_count: report.gpu_count,
            engine: report.engine_name,
            engine_version: report.engine_version,
            quantization: report.quantization,
            kv_cache_dtype: report.kv_cache_dtype,
            context_tokens: report.context_tokens,
            concurrency: report.concurrency,
            tokens_per_second: report.tokens_per_second,
            ttft_ms: report.ttft_ms,
            total_ceiling_tokens_per_second: report.total_ceiling_tokens_per_second,
            is_above_ceiling: report.is_above_ceiling,
            source_url: report.source_url,
            notes: report.notes,
            created_at: report.created_at,
        })
    }
}
