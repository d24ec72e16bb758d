//! Whether a document answers a challenge. A document that does not is rejected as an answer, however sound it is by itself.

use chrono::TimeDelta;

use super::{AnswerFacts, ChallengeSpec};
use crate::benchmarks::checks::{CellRef, Era, Finding, Phase, Shape, ZONE_HOURS_MAX};
use crate::benchmarks::document::Document;
use crate::benchmarks::matrix::{Cell, CellStatus, DecodeMode, Matrix, NotRunReason};
use crate::benchmarks::redact;

/// Clocks of client and server tick apart, and an upload takes a moment.
const SLACK_SECONDS: f64 = 5.0;
/// The tool's budget may be a little below or above what the engine said: blocks are whole.
const KV_SHARE: f64 = 0.9;

/// Findings on the answer; all errors but what honest limits explain.
pub(crate) fn check(document: &Document, matrix: &Matrix, spec: &ChallengeSpec, facts: &AnswerFacts) -> Vec<Finding> {
    let mut findings = fresh(spec, facts);
    findings.extend(settings(document, matrix, spec));
    findings.extend(cells(document, matrix, spec, facts));
    findings.extend(prefill(document, matrix, spec));
    findings.extend(times(document, spec, facts));
    findings
}

/// Seconds that the cells took together.
pub(crate) fn wall_seconds(document: &Document) -> f64 {
    let cells = document.cells.iter().chain(&document.burst_cells);
    cells.filter_map(|cell| cell.wall_time).filter(|wall| *wall > 0.0).sum()
}

fn fresh(spec: &ChallengeSpec, facts: &AnswerFacts) -> Vec<Finding> {
    let mut findings = Vec::new();
    if facts.bytes_seen {
        findings.push(Finding::error("challenge_document_reused", "These bytes were uploaded before."));
    }
    if facts.nonce_seen == Some(true) {
        findings.push(Finding::error("challenge_run_reused", "The run's own random word was seen in another upload."));
    }
    if facts.uploaded_at > spec.expires_at {
        let finding = Finding::error("challenge_expired", "The challenge had expired when the answer came.");
        findings.push(finding.values(spec.expires_at, facts.uploaded_at));
    }
    findings
}

fn settings(document: &Document, matrix: &Matrix, spec: &ChallengeSpec) -> Vec<Finding> {
    let metadata = &document.metadata;
    let mut findings = Vec::new();
    let mut differs = |what: &str, expected: String, observed: String| {
        let finding = Finding::error("challenge_settings_differ", format!("The run's {what} is not the one asked for."));
        findings.push(finding.values(expected, observed));
    };
    let shown = |value: Option<String>| value.unwrap_or_else(|| "not stated".to_owned());
    if metadata.duration_per_test != Some(spec.duration_seconds) {
        differs("time per measurement", spec.duration_seconds.to_string(), shown(metadata.duration_per_test.map(|d| d.to_string())));
    }
    if metadata.max_tokens != Some(spec.max_tokens) {
        differs("maximum output", spec.max_tokens.to_string(), shown(metadata.max_tokens.map(|n| n.to_string())));
    }
    if matrix.mode != DecodeMode::Duration {
        differs("decode test", "fixed duration".to_owned(), "another".to_owned());
    }
    if Era::of(document).shape == Shape::Uncheckable && !document.cells.is_empty() {
        let message = "The tool is too old: its documents hold nothing that proves a speed.";
        findings.push(Finding::error("challenge_uncheckable", message));
    }
    if let Some(model) = spec.model.as_deref().map(redact::model)
        && metadata.model.as_deref() != Some(model.as_str())
    {
        let finding = Finding::error("challenge_model_differs", "The run measured another model than the one asked for.");
        findings.push(finding.values(model, shown(metadata.model.clone())));
    }
    findings
}

/// Every asked cell is measured, over capacity by the one KV capacity, or dropped by a limit of the engine.
fn cells(document: &Document, matrix: &Matrix, spec: &ChallengeSpec, facts: &AnswerFacts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for context in &spec.contexts {
        for concurrency in &spec.concurrency_levels {
            let at = CellRef { phase: Phase::Decode, context_tokens: *context, concurrency: *concurrency };
            let lightest = (*context, *concurrency) == (0, 1);
            let answered = matrix.cell(*context, *concurrency).is_some_and(|cell| is_answered(cell, lightest, facts, spec));
            if !answered {
                let message = "Cells that the challenge asks for were not measured, and no limit of the engine explains it.";
                findings.push(Finding::error("challenge_cell_missing", message).at(at));
            }
        }
    }
    if let (Some(budget), Some(engine)) = (document.metadata.max_total_tokens.filter(|n| *n > 0), facts.kv_tokens) {
        #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
        let share = budget as f64 / engine.max(1) as f64;
        if share < KV_SHARE && matrix.count(CellStatus::OverCapacity) > 0 {
            let message = "Cells were skipped by a smaller KV cache than the engine has.";
            findings.push(Finding::suspicious("challenge_capacity_differs", message).values(engine, budget));
        }
    }
    findings
}

fn is_answered(cell: &Cell, lightest: bool, facts: &AnswerFacts, spec: &ChallengeSpec) -> bool {
    if cell.status.is_measured() {
        return true;
    }
    // A server that cannot hold one short question is no server.
    if lightest {
        return false;
    }
    match (cell.status, cell.reason) {
        (CellStatus::OverCapacity, _) => true,
        // The engine's own word stands above the document's.
        (CellStatus::NotRun, Some(NotRunReason::MaxModelLen)) => {
            facts.max_model_len.is_none_or(|len| cell.context_tokens + spec.max_tokens > len)
        }
        (CellStatus::NotRun, Some(NotRunReason::MaxRunning)) => facts.max_running_requests.is_none_or(|max| cell.concurrency > max),
        (CellStatus::NotRun, Some(_)) => {
            facts.max_running_requests.is_some_and(|max| cell.concurrency > max)
                || facts.max_model_len.is_some_and(|len| cell.context_tokens + spec.max_tokens > len)
        }
        _ => false,
    }
}

fn prefill(document: &Document, matrix: &Matrix, spec: &ChallengeSpec) -> Vec<Finding> {
    let measured = |context: u64| matrix.prefill.iter().any(|row| row.context_tokens == context);
    let longest = matrix.decode.iter().filter(|cell| cell.status.is_measured()).map(|cell| cell.context_tokens).max().unwrap_or_default();
    let asked = spec.prefill_contexts.iter().filter(|context| **context <= longest);
    let missing = asked.filter(|context| !measured(**context) && !document.cells.is_empty());
    let finding = |context: &u64| {
        let at = CellRef { phase: Phase::Prefill, context_tokens: *context, concurrency: 1 };
        Finding::suspicious("challenge_prefill_missing", "A prefill row that the challenge asks for is missing.").at(at)
    };
    missing.map(finding).collect()
}

/// The cells fit between issue and upload on the server's clock; the tool's own clock has no zone.
fn times(document: &Document, spec: &ChallengeSpec, facts: &AnswerFacts) -> Vec<Finding> {
    let mut findings = Vec::new();
    let available = facts.uploaded_at.signed_duration_since(spec.issued_at);
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of a few days")]
    let available_seconds = available.num_milliseconds() as f64 / 1_000.0;
    let taken = wall_seconds(document);
    if taken > available_seconds + SLACK_SECONDS {
        let message = "The cells took longer together than the time between the challenge and the upload.";
        findings.push(Finding::error("challenge_time", message).values(format!("at most {available_seconds}"), taken));
    }
    let Some(saved) = document.metadata.timestamp else {
        findings.push(Finding::suspicious("challenge_timestamp", "The document does not say when it was saved."));
        return findings;
    };
    let zone = TimeDelta::hours(ZONE_HOURS_MAX);
    let (from, to) = (spec.issued_at.naive_utc() - zone, facts.uploaded_at.naive_utc() + zone);
    if saved < from || saved > to {
        let message = "The document was not saved between the challenge and the upload, in any time zone.";
        findings.push(Finding::error("challenge_timestamp", message).values(format!("{from} to {to}"), saved));
    }
    findings
}
