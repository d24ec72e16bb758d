//! What the API shows of rankings, and of the catalog's rows with what was measured of them.

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use super::{Metric, Unit};
use crate::{
    base::{
        Money,
        id::{ListingId, RunId},
    },
    benchmarks::model::EvidenceLevel,
    catalog::{HardwareModel, Model, service::ModelDetail},
};

/// A row of a ranking.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LeaderboardRow {
    /// Place in the list as asked for. Shared by rows of the same figure, quantization and KV cache type only.
    pub rank: i64,
    /// The median over people, each with the median of the accepted runs they uploaded; the weaker one of two in the middle. With `offer`: of
    /// that listing.
    pub figure: f64,
    pub unit: Unit,
    /// Slug of the catalog, or the name that runs were uploaded under.
    pub model: String,
    pub publisher: Option<String>,
    pub quantization: String,
    /// `auto` where the launch commands name none.
    pub kv_cache_dtype: String,
    pub context_tokens: i32,
    /// Requests at once; of a peak the level at which the named run had it. Null for prefill.
    pub concurrency: Option<i32>,
    /// Slug of the hardware model.
    pub hardware: String,
    pub gpu_count: i32,
    /// Of all accepted runs.
    pub lowest: f64,
    pub highest: f64,
    pub run_count: i32,
    /// People who uploaded them: one with several organizations counts once.
    pub account_count: i32,
    /// Accepted runs whose machine has changed since.
    pub stale_run_count: i32,
    pub run: LeaderboardRun,
    /// For `tokens_per_dollar`: the listing and its price.
    pub offer: Option<LeaderboardOffer>,
}

/// The run that has a row's figure.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LeaderboardRun {
    pub id: RunId,
    pub title: String,
    /// Handle of the uploader.
    pub by: String,
    pub evidence_level: EvidenceLevel,
    pub engine: Option<String>,
    pub created_at: DateTime<Utc>,
    /// When what it was measured on was seen to have changed.
    pub stale_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LeaderboardOffer {
    pub listing_id: ListingId,
    pub price_per_hour: Money,
}

/// What was measured of a catalog's row.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct Measured {
    /// Verified public runs in no dispute that say what they are of.
    pub accepted_run_count: i64,
    /// The best row of each ranking without context.
    pub best: Vec<BestFigure>,
}

/// The best row of a ranking, with its run.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct BestFigure {
    pub metric: Metric,
    pub figure: f64,
    pub unit: Unit,
    pub model: String,
    pub quantization: String,
    pub kv_cache_dtype: String,
    pub context_tokens: i32,
    pub concurrency: i32,
    pub hardware: String,
    pub gpu_count: i32,
    pub run_count: i32,
    pub run_id: RunId,
    pub evidence_level: EvidenceLevel,
}

/// What people typed in, apart from what was measured.
#[derive(Debug, Clone, Copy, Default, Serialize, ToSchema)]
pub struct ReportCount {
    pub count: i64,
}

/// A model with what was measured of it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ModelWithRuns {
    #[serde(flatten)]
    pub model: Model,
    pub measured: Measured,
    pub reports: ReportCount,
}

/// A model by itself, with the repositories that hold its weights.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelPage {
    #[serde(flatten)]
    pub model: ModelDetail,
    pub measured: Measured,
    pub reports: ReportCount,
}

/// A hardware model with what was measured on it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct HardwareWithRuns {
    #[serde(flatten)]
    pub hardware: HardwareModel,
    pub measured: Measured,
    pub reports: ReportCount,
}

/// An organization that publishes models, with how many of them the catalog has and what was measured of them.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PublisherView {
    pub slug: String,
    pub model_count: usize,
    pub accepted_run_count: i64,
    pub reports: ReportCount,
}

/// A publisher with its models.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PublisherPage {
    #[serde(flatten)]
    pub publisher: PublisherView,
    pub models: Vec<ModelWithRuns>,
}
