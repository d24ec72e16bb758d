//! The checks: each is a small function over the document and its matrix that reports findings under a stable code.
//!
//! Invariants: a check reads only the redacted document, so anyone can repeat it; a finding's message holds no text of the document beyond
//! numbers and cleaned names; a check whose assumption does not hold reports a note or nothing, never an error (evidence.md 0).

mod arithmetic;
mod claimed;
mod era;
mod event_log;
mod floor;
mod hardware;
mod physical;
mod prefill;
mod provenance;
mod rounding;
mod samples;
mod scheduler;
mod structure;
mod table;
mod timing;
mod trends;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::document::{Document, RawCell};
use super::matrix::build::status;
use super::matrix::{CellStatus, Matrix};

pub(crate) use claimed::check as claimed;
pub(crate) use era::{EXACT_SINCE, Era, KNOWN_MINOR_MAX, Shape};
pub(crate) use hardware::check as hardware;
pub(crate) use physical::check as physical;
pub(crate) use provenance::{ZONE_HOURS_MAX, freshness};
pub use table::{CHECKS, CheckInfo, Group, Weight, info};

/// What a finding does to the verdict: an error rejects, a suspicion asks a person, a note is only said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Note,
    Suspicious,
    Error,
}

/// The part of the matrix a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Prefill,
    Decode,
    Burst,
}

/// A cell by its coordinates; a prefill row has concurrency 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
pub struct CellRef {
    pub phase: Phase,
    pub context_tokens: u64,
    pub concurrency: u32,
}

/// One thing a check found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Finding {
    /// Stable, snake_case.
    #[schema(value_type = String, pattern = "^[a-z0-9_]+$")]
    pub code: Cow<'static, str>,
    pub severity: Severity,
    pub message: String,
    #[serde(default)]
    pub cells: Vec<CellRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<String>,
}

impl Finding {
    pub fn new(code: &'static str, severity: Severity, message: impl Into<String>) -> Self {
        Self { code: Cow::Borrowed(code), severity, message: message.into(), cells: Vec::new(), expected: None, observed: None }
    }

    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Error, message)
    }

    pub fn suspicious(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Suspicious, message)
    }

    pub fn note(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Note, message)
    }

    pub fn at(mut self, cell: CellRef) -> Self {
        self.cells.push(cell);
        self
    }

    pub fn values(mut self, expected: impl ToString, observed: impl ToString) -> Self {
        self.expected = Some(expected.to_string());
        self.observed = Some(observed.to_string());
        self
    }
}

/// What every check gets.
pub(crate) struct Input<'a> {
    pub document: &'a Document,
    pub matrix: &'a Matrix,
    /// How much a broken exact relation counts: an error for the versions known to keep it, a suspicion otherwise (evidence.md 0).
    pub exact: Severity,
    pub era: Era,
}

/// A row of the document with what the matrix made of it.
#[derive(Clone, Copy)]
pub(crate) struct Row<'a> {
    pub at: CellRef,
    pub raw: &'a RawCell,
    pub status: CellStatus,
}

impl<'a> Input<'a> {
    pub fn new(document: &'a Document, matrix: &'a Matrix) -> Self {
        let era = Era::of(document);
        Self { document, matrix, exact: era.exact_severity(), era }
    }

    /// Decode rows, then burst rows, in the document's order.
    pub fn rows(&self) -> impl Iterator<Item = Row<'a>> + use<'a> {
        let row = |phase| {
            move |raw: &'a RawCell| {
                let concurrency = u32::try_from(raw.concurrency).unwrap_or(u32::MAX);
                Row { at: CellRef { phase, context_tokens: raw.context_tokens, concurrency }, raw, status: status(raw) }
            }
        };
        let document = self.document;
        document.cells.iter().map(row(Phase::Decode)).chain(document.burst_cells.iter().map(row(Phase::Burst)))
    }

    /// Rows that have a speed.
    pub fn measured(&self) -> impl Iterator<Item = Row<'a>> + use<'a> {
        self.rows().filter(|row| row.status.is_measured())
    }

    /// Whether the scheduler's gauges were read.
    pub fn has_metrics(&self) -> bool {
        self.document.metadata.metrics_available != Some(false)
    }
}

impl Row<'_> {
    /// Whether the cell is a window of fixed length; request-count and burst cells count whole requests.
    pub fn is_window(&self) -> bool {
        self.at.phase == Phase::Decode && !matches!(self.raw.benchmark_mode.as_deref(), Some("request-count" | "burst-e2e"))
    }

    /// Whether the tokens were counted by the client from the engine's usage reports.
    pub fn counted_by_usage(&self) -> bool {
        matches!(self.raw.aggregate_source.as_deref(), Some("openai_continuous_usage" | "openai_completed_usage"))
    }
}

/// Whether two numbers are equal within a share of the larger one; a product beyond all numbers equals none.
pub(crate) fn near(a: f64, b: f64, share: f64) -> bool {
    let off = (a - b).abs();
    off.is_finite() && off <= share * a.abs().max(b.abs()) + f64::MIN_POSITIVE
}

/// The findings on a document by itself: no claim, no challenge, no clock.
pub fn findings(document: &Document, matrix: &Matrix) -> Vec<Finding> {
    run(&Input::new(document, matrix))
}

/// All findings on a document, most severe first; equal ones in the order of the checks.
pub(crate) fn run(input: &Input<'_>) -> Vec<Finding> {
    let groups: [fn(&Input<'_>) -> Vec<Finding>; 10] = [
        arithmetic::check,
        samples::check,
        scheduler::check,
        timing::check,
        event_log::check,
        rounding::check,
        prefill::check,
        structure::check,
        trends::check,
        provenance::check,
    ];
    let mut findings = merge(groups.iter().flat_map(|group| group(input)).collect());
    if input.era.is_unknown() && input.era.must_have_everything() {
        convict_by_itself(&mut findings, input.measured().count());
    }
    merge(findings)
}

/// Relations of one cell's own numbers, which a tool keeps in every cell or in none.
const OF_EACH_CELL: [&str; 5] =
    ["total_mismatch", "per_request_average_mismatch", "summary_mismatch", "percentile_mismatch", "request_count_mismatch"];
/// Share of the cells that break a relation which the document's version keeps.
const BROKEN_SHARE_MAX: f64 = 0.5;

/// A version that nobody has seen may compute another total, but then in all cells. Where most cells of a document keep a relation, its version
/// does, and the cells that break it were changed: no version explains that (evidence.md 4 A: 0.4.16 and later).
fn convict_by_itself(findings: &mut [Finding], measured: usize) {
    for finding in findings {
        let broken = finding.cells.len() as f64;
        let is_of_few = broken > 0.0 && broken < measured as f64 * BROKEN_SHARE_MAX;
        if is_of_few && finding.severity == Severity::Suspicious && OF_EACH_CELL.contains(&finding.code.as_ref()) {
            finding.severity = Severity::Error;
        }
    }
}

/// Findings of one code and severity become one with all cells; the first keeps its message and values.
pub(crate) fn merge(findings: Vec<Finding>) -> Vec<Finding> {
    let mut merged: Vec<Finding> = Vec::new();
    for finding in findings {
        match merged.iter_mut().find(|known| known.code == finding.code && known.severity == finding.severity) {
            Some(known) => {
                known.cells.extend(finding.cells);
            }
            None => merged.push(finding),
        }
    }
    for finding in &mut merged {
        finding.cells.sort_unstable();
        finding.cells.dedup();
    }
    merged.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    merged
}
