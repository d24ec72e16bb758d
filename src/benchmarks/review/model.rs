//! What operators see of runs that wait for them.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::super::{
    checks::{CellRef, Severity},
    history::model::RunEventView,
    model::{EvidenceLevel, RunSummaryView, RunView, Visibility},
    verdict::Verdict,
};
use crate::{base::id::RunId, web::Limit};

/// Why a run waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReviewCause {
    /// A check was suspicious.
    Findings,
    /// The server's own measurement disagreed twice.
    Dispute,
    /// An operator took a decision back.
    Reopened,
}

impl ReviewCause {
    pub const ALL: [Self; 3] = [Self::Findings, Self::Dispute, Self::Reopened];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Findings => "findings",
            Self::Dispute => "dispute",
            Self::Reopened => "reopened",
        }
    }
}

/// Filters of the review queue.
#[derive(Debug, Clone, Default, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ReviewQueueQuery {
    /// Runs with this finding, more than a note.
    pub finding: Option<String>,
    /// Why it waits.
    pub cause: Option<ReviewCause>,
    /// Whether its uploader has answered.
    pub answered: Option<bool>,
    /// Runs that have waited for at least so many hours.
    #[param(minimum = 0, maximum = 87_600)]
    pub waiting_hours: Option<u32>,
    #[serde(default)]
    #[param(inline)]
    pub limit: Limit,
    pub cursor: Option<String>,
}

/// The place after which a page of the queue begins.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct ReviewPlace {
    pub since: DateTime<Utc>,
    pub id: RunId,
}

/// A run in the review queue.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ReviewQueueItem {
    pub run: RunSummaryView,
    #[schema(value_type = Visibility)]
    pub visibility: String,
    pub cause: ReviewCause,
    pub waiting_since: DateTime<Utc>,
    /// Codes of the findings that are more than notes.
    pub findings: Vec<String>,
    pub answered_at: Option<DateTime<Utc>>,
}

/// A finding with what its check means.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ExplainedFinding {
    #[schema(pattern = "^[a-z0-9_]+$")]
    pub code: String,
    pub severity: Severity,
    pub message: String,
    pub cells: Vec<CellRef>,
    pub expected: Option<String>,
    pub observed: Option<String>,
    /// What the check calls it; null for a code that is no longer checked.
    pub title: Option<&'static str>,
    /// Two sentences on what the check compares.
    pub explanation: Option<&'static str>,
}

/// All that an operator decides by, but the runs beside it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ReviewView {
    pub run: RunView,
    /// Null when it does not wait.
    pub waiting: Option<Waiting>,
    /// Most severe first.
    pub findings: Vec<ExplainedFinding>,
    /// The uploader's answer.
    pub answer: Option<RunEventView>,
    /// Oldest first; the last hundred events.
    pub history: Vec<RunEventView>,
    /// Whether it is a run of the operator's own account, on which somebody else decides.
    pub is_own: bool,
    /// Whether a person's decision stands, which can be taken back.
    pub is_decided: bool,
}

/// Since when a run waits, and why.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct Waiting {
    pub since: DateTime<Utc>,
    pub cause: ReviewCause,
}

/// A run beside the one under review.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SimilarRun {
    pub id: RunId,
    pub title: String,
    /// Handle of the uploader.
    pub by: String,
    /// Whether it is of the same account.
    pub is_same_account: bool,
    pub is_same_machine: bool,
    pub status: Verdict,
    #[schema(value_type = EvidenceLevel)]
    pub evidence_level: String,
    #[schema(value_type = Visibility)]
    pub visibility: String,
    pub created_at: DateTime<Utc>,
    /// Whether model, quantization, hardware and number of GPUs are the same.
    pub is_same_setup: bool,
    /// Measured cells whose tokens and seconds are the very same: a copy has many.
    pub shared_cells: i64,
    /// Measured cells whose speed is the same within some hundredths of a percent: a copy with other last digits has many.
    pub close_cells: i64,
    /// Measured cells of the run under review.
    pub own_cells: i64,
    /// Whether the tool's own run identifier is the same.
    pub shares_run_identifier: bool,
    /// Whether a device is the same.
    pub shares_device: bool,
    /// Decode cells that both have measured.
    pub cells: Vec<ComparedCell>,
    /// Median of the cells' ratios; null without a common cell.
    pub median_ratio: Option<f64>,
}

/// A cell that two runs have measured.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct ComparedCell {
    pub context_tokens: u64,
    pub concurrency: u32,
    /// Total tokens per second of the run under review.
    pub own_tokens_per_second: f64,
    pub other_tokens_per_second: f64,
    /// The run under review over the other one.
    pub ratio: f64,
}

/// The runs beside one.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SimilarRuns {
    /// Those that share most cells first, then the newest of the same setup; at most twenty.
    pub data: Vec<SimilarRun>,
}
