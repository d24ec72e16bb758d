//! One matrix for every version and mode of the document: prefill rows and decode cells with a status each.
//!
//! Invariants: every cell of levels × contexts is there once, measured or not; what was not measured is `None`, never a sentinel; nothing
//! is taken from a document's own summaries; a prefill-only run has no cells. The status order and the KV rule are evidence.md 1.5 and 1.6.

pub(super) mod build;
mod capacity;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::document::Document;

pub use capacity::needed_tokens;

/// What became of one cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CellStatus {
    Valid,
    /// Measured, but the server could not run all requests at once.
    Queued,
    /// Not run: it would exceed the server's KV cache.
    OverCapacity,
    Error,
    /// The model repeated itself; the number means nothing.
    Loop,
    /// Left out by the person at the keyboard.
    Skipped,
    NotRun,
}

impl CellStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Queued => "queued",
            Self::OverCapacity => "over_capacity",
            Self::Error => "error",
            Self::Loop => "loop",
            Self::Skipped => "skipped",
            Self::NotRun => "not_run",
        }
    }

    /// Whether the cell has a speed.
    pub const fn is_measured(self) -> bool {
        matches!(self, Self::Valid | Self::Queued)
    }
}

/// Why a cell was not run, where the document says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotRunReason {
    /// Context and output together exceed the engine's longest context.
    MaxModelLen,
    /// More requests than the engine runs at once: the tool drops such levels.
    MaxRunning,
    /// The run ended before its turn came.
    Interrupted,
    /// The wrapper's plan left it out, for a reason of its own.
    Planned,
    /// Nothing in the document explains it.
    Unexplained,
}

/// How decode was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DecodeMode {
    /// A window of fixed length in a steady state.
    #[default]
    Duration,
    /// A fixed number of whole requests.
    RequestCount,
    /// A burst of whole requests, measured end to end.
    Burst,
}

/// Prefill at one context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PrefillRow {
    pub context_tokens: u64,
    pub prompt_tokens: Option<u64>,
    pub tokens_per_second: Option<f64>,
    pub ttft_ms: Option<f64>,
}

/// Decode at one context and concurrency. Numbers are at full precision; pages round them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Cell {
    pub context_tokens: u64,
    pub concurrency: u32,
    pub status: CellStatus,
    pub total_tokens_per_second: Option<f64>,
    /// Median of the streams' own speeds, not the total divided.
    pub per_request_tokens_per_second: Option<f64>,
    pub ttft_ms: Option<f64>,
    pub itl_ms: Option<f64>,
    pub average_active_requests: Option<f64>,
    pub completed_requests: Option<u64>,
    pub output_tokens: Option<u64>,
    pub measured_seconds: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<NotRunReason>,
    /// The tool's words for an error, cleaned of control characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl Cell {
    /// Speed of one user: the total divided by the concurrency (design.md, Decisions).
    pub fn tokens_per_second_per_user(&self) -> Option<f64> {
        self.total_tokens_per_second.map(|total| total / f64::from(self.concurrency.max(1)))
    }
}

/// The bounds of the one KV capacity that explains which cells ran: at least what the largest run took, below what the smallest refused
/// would have taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct KvCapacity {
    pub at_least_tokens: Option<u64>,
    pub below_tokens: Option<u64>,
}

/// All that was measured, and all that was not.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Matrix {
    pub mode: DecodeMode,
    pub prefill: Vec<PrefillRow>,
    /// Ordered by context, then concurrency.
    pub decode: Vec<Cell>,
    /// The burst layer, where it was run besides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub burst: Vec<Cell>,
    pub kv_capacity: KvCapacity,
}

/// What a workload gets from this matrix.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WorkloadMatch<'a> {
    pub cell: &'a Cell,
    pub tokens_per_second_per_user: f64,
    /// TTFT of the cell: the prompt is in the engine's cache.
    pub warm_ttft_ms: Option<f64>,
    /// TTFT of a prompt never seen: prefill at that context.
    pub cold_ttft_ms: Option<f64>,
}

impl Matrix {
    /// Builds the matrix of a document.
    pub fn of(document: &Document) -> Self {
        build::matrix(document)
    }

    pub fn cell(&self, context_tokens: u64, concurrency: u32) -> Option<&Cell> {
        self.decode.iter().find(|c| c.context_tokens == context_tokens && c.concurrency == concurrency)
    }

    /// How many decode cells have this status.
    pub fn count(&self, status: CellStatus) -> usize {
        self.decode.iter().filter(|c| c.status == status).count()
    }

    /// The lightest valid cell at least as heavy as asked: the smallest measured context ≥ `context`, and in it the smallest measured
    /// concurrency ≥ `concurrency` (design.md, Decisions). When that context has no valid cell that heavy, the next one is tried.
    pub fn lightest_cell(&self, context: u64, concurrency: u32) -> Option<&Cell> {
        self.decode
            .iter()
            .filter(|c| c.status == CellStatus::Valid && c.context_tokens >= context && c.concurrency >= concurrency)
            .min_by_key(|c| (c.context_tokens, c.concurrency))
    }

    /// TTFT in milliseconds of an uncached prompt of `context` tokens: the prefill row at the smallest measured context ≥ `context`;
    /// nothing is interpolated. Context 0 has no prefill row: its warm TTFT at concurrency 1 stands for it.
    pub fn cold_ttft_ms(&self, context: u64) -> Option<f64> {
        if context == 0 {
            return self.lightest_cell(0, 1).filter(|c| c.context_tokens == 0).and_then(|c| c.ttft_ms);
        }
        let rows = self.prefill.iter().filter(|row| row.context_tokens >= context && row.ttft_ms.is_some());
        rows.min_by_key(|row| row.context_tokens).and_then(|row| row.ttft_ms)
    }

    /// The cell, speed and TTFTs that a workload of `concurrency` users at `context` tokens gets; cold TTFT is that of the cell's context.
    pub fn workload(&self, context: u64, concurrency: u32) -> Option<WorkloadMatch<'_>> {
        let cell = self.lightest_cell(context, concurrency)?;
        let cold_ttft_ms = if cell.context_tokens == 0 { cell.ttft_ms } else { self.cold_ttft_ms(cell.context_tokens) };
        let tokens_per_second_per_user = cell.tokens_per_second_per_user()?;
        Some(WorkloadMatch { cell, tokens_per_second_per_user, warm_ttft_ms: cell.ttft_ms, cold_ttft_ms })
    }
}

/// Where runs are compared, if they were measured there.
const COMPARISON_CONTEXT: u32 = 16_384;
const COMPARISON_CONCURRENCY: u32 = 8;

/// [`comparison_cell`] of the run `r` in SQL, as `c`: what a page shows beside a run is looked up with the run itself, in one round trip.
pub fn comparison_cell_sql() -> String {
    format!(
        "SELECT context_tokens, concurrency FROM run_cells
         WHERE run_id = r.id AND status = 'valid' AND total_tokens_per_second IS NOT NULL
         ORDER BY abs(ln((1024 + context_tokens) / (1024.0 + {COMPARISON_CONTEXT}))) + abs(ln(concurrency / {COMPARISON_CONCURRENCY}.0)),
                  context_tokens, concurrency LIMIT 1"
    )
}

/// The valid cell to compare a run with others by: the one nearest to 16K × 8, counted in doublings.
pub fn comparison_cell(decode: &[Cell]) -> Option<&Cell> {
    let (place, level) = (f64::from(COMPARISON_CONTEXT), f64::from(COMPARISON_CONCURRENCY));
    // Context 0 is as far from 1K as 1K is from 2K.
    let context = |cell: &Cell| 1_024.0 + u32::try_from(cell.context_tokens).map_or(f64::from(u32::MAX), f64::from);
    let doublings = |cell: &Cell| (context(cell) / (1_024.0 + place)).log2().abs() + (f64::from(cell.concurrency) / level).log2().abs();
    let valid = decode.iter().filter(|cell| cell.status == CellStatus::Valid && cell.total_tokens_per_second.is_some());
    valid.min_by(|a, b| doublings(a).total_cmp(&doublings(b)))
}
