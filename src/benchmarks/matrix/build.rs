//! Rows and cells from a document. Cells that the tool dropped are rebuilt from levels × contexts and what explains their absence.

use std::collections::BTreeMap;

use super::capacity::{bounds, needed_tokens};
use super::{Cell, CellStatus, DecodeMode, Matrix, NotRunReason, PrefillRow};
use crate::benchmarks::document::{Document, RawCell, RawPrefill, whole_of};
use crate::benchmarks::log;

/// Sentinels of `aggregate_tps`.
const OVER_CAPACITY: f64 = -1.0;
const SKIPPED: f64 = -2.0;
const LOOP: f64 = -3.0;

pub(super) fn matrix(document: &Document) -> Matrix {
    let decode = grid(document, &document.cells);
    let burst = document.burst_cells.iter().map(|raw| measured(raw, document)).collect();
    let kv_capacity = bounds(&decode, document.metadata.max_tokens);
    Matrix { mode: mode(document), prefill: document.prefill.iter().filter_map(prefill).collect(), decode, burst, kv_capacity }
}

fn mode(document: &Document) -> DecodeMode {
    match document.metadata.decode_mode.as_deref() {
        Some("request-count") => DecodeMode::RequestCount,
        _ => DecodeMode::Duration,
    }
}

/// A row with zero samples was skipped: all its numbers are zeros.
fn prefill(raw: &RawPrefill) -> Option<PrefillRow> {
    let tokens_per_second = positive(raw.tok_per_sec);
    if raw.samples == Some(0.0) || tokens_per_second.is_none() {
        return None;
    }
    Some(PrefillRow {
        context_tokens: raw.context_tokens,
        prompt_tokens: positive(raw.prompt_tokens).and_then(whole_of),
        tokens_per_second,
        ttft_ms: positive(raw.ttft_seconds).map(milliseconds),
    })
}

fn grid(document: &Document, raw_cells: &[RawCell]) -> Vec<Cell> {
    let mut cells: BTreeMap<(u64, u32), Cell> = BTreeMap::new();
    for raw in raw_cells {
        let cell = measured(raw, document);
        // A doubled cell is an error of its own; the first stands.
        cells.entry((cell.context_tokens, cell.concurrency)).or_insert(cell);
    }
    if document.metadata.prefill_only {
        return cells.into_values().collect();
    }
    let order = execution_order(document);
    let last_present = order.iter().rposition(|place| cells.contains_key(place));
    let limits = Limits::of(document);
    for (turn, &(context, concurrency)) in order.iter().enumerate() {
        let interrupted = last_present.is_none_or(|last| turn > last);
        cells.entry((context, concurrency)).or_insert_with(|| absent(context, concurrency, &limits, interrupted));
    }
    cells.into_values().collect()
}

/// The order in which the tool runs cells: the first level at every context, then the first context at every other level, then the rest row
/// by row (evidence.md 4 E). A run that was broken off lacks a tail of it.
pub(in crate::benchmarks) fn execution_order(document: &Document) -> Vec<(u64, u32)> {
    let metadata = &document.metadata;
    let levels: Vec<u32> = metadata.concurrency_levels.iter().filter_map(|level| u32::try_from(*level).ok()).collect();
    let Some((first, rest)) = levels.split_first() else { return Vec::new() };
    let column = metadata.context_lengths.iter().map(|context| (*context, *first));
    let rows = metadata.context_lengths.iter().flat_map(|context| rest.iter().map(move |level| (*context, *level)));
    column.chain(rows).collect()
}

/// What the document says of the engine's limits.
struct Limits {
    budget: Option<u64>,
    max_tokens: u64,
    max_model_len: Option<u64>,
    max_running: Option<u64>,
    planned_out: Vec<(u64, u64)>,
    skipped: Vec<(u64, u32)>,
}

impl Limits {
    fn of(document: &Document) -> Self {
        let wrapper = document.wrapper.as_ref();
        Self {
            budget: document.metadata.max_total_tokens.filter(|budget| *budget > 0),
            max_tokens: document.metadata.max_tokens.unwrap_or_default(),
            max_model_len: log::max_model_len(document),
            max_running: log::max_running(document),
            planned_out: wrapper.map(|w| w.plan_skipped.clone()).unwrap_or_default(),
            skipped: log::skipped(document),
        }
    }
}

fn absent(context: u64, concurrency: u32, limits: &Limits, interrupted: bool) -> Cell {
    let over = |limit: Option<u64>, value: u64| limit.is_some_and(|limit| value > limit);
    let need = needed_tokens(context, concurrency, limits.max_tokens);
    let (status, reason) = if over(limits.budget, need) {
        (CellStatus::OverCapacity, None)
    } else if over(limits.max_model_len, context.saturating_add(limits.max_tokens)) {
        (CellStatus::NotRun, Some(NotRunReason::MaxModelLen))
    } else if over(limits.max_running, u64::from(concurrency)) {
        (CellStatus::NotRun, Some(NotRunReason::MaxRunning))
    } else if limits.planned_out.contains(&(context, u64::from(concurrency))) {
        (CellStatus::Skipped, Some(NotRunReason::Planned))
    } else if limits.skipped.contains(&(log::printed(context), concurrency)) {
        (CellStatus::Skipped, None)
    } else if interrupted {
        (CellStatus::NotRun, Some(NotRunReason::Interrupted))
    } else {
        (CellStatus::NotRun, Some(NotRunReason::Unexplained))
    };
    Cell { reason, ..empty(context, concurrency, status) }
}

fn empty(context_tokens: u64, concurrency: u32, status: CellStatus) -> Cell {
    Cell {
        context_tokens,
        concurrency,
        status,
        total_tokens_per_second: None,
        per_request_tokens_per_second: None,
        ttft_ms: None,
        itl_ms: None,
        average_active_requests: None,
        completed_requests: None,
        output_tokens: None,
        measured_seconds: None,
        reason: None,
        failure: None,
    }
}

fn measured(raw: &RawCell, document: &Document) -> Cell {
    let concurrency = u32::try_from(raw.concurrency).unwrap_or(u32::MAX);
    let status = status(raw);
    let cell = empty(raw.context_tokens, concurrency, status);
    if !status.is_measured() {
        return Cell { failure: raw.failure_reason.clone(), ..cell };
    }
    let active = raw.effective_concurrency.or(raw.avg_running_reqs);
    Cell {
        total_tokens_per_second: positive(raw.aggregate_tps),
        per_request_tokens_per_second: positive(raw.output_tps_per_user.p50),
        ttft_ms: positive(raw.ttft.p50).map(milliseconds),
        itl_ms: positive(raw.inter_token_latency.p50).map(milliseconds),
        average_active_requests: positive(active).filter(|_| document.metadata.metrics_available != Some(false)),
        completed_requests: raw.completed_request_count.and_then(whole_of),
        output_tokens: positive(raw.client_output_tokens).and_then(whole_of),
        measured_seconds: positive(raw.measurement_seconds),
        ..cell
    }
}

/// Evidence.md 1.5: loop, error, over capacity, skipped, queued, valid, in this order.
pub(in crate::benchmarks) fn status(raw: &RawCell) -> CellStatus {
    let tps = raw.aggregate_tps.unwrap_or_default();
    let errors = raw.num_errors.unwrap_or_default();
    if tps == LOOP || raw.loop_detected {
        return CellStatus::Loop;
    }
    let sentinel = tps == OVER_CAPACITY || tps == SKIPPED;
    // Streams that failed beside others that gave a number: 0.4.x kept the number (evidence.md 1.5).
    if raw.failure_reason.is_some() || errors > 0.0 || (tps <= 0.0 && !sentinel) {
        return CellStatus::Error;
    }
    if tps == OVER_CAPACITY {
        return CellStatus::OverCapacity;
    }
    if tps == SKIPPED {
        return CellStatus::Skipped;
    }
    let queued = raw.capacity_limited.unwrap_or_else(|| raw.queue_fraction.is_some_and(|share| share > 0.0));
    if queued { CellStatus::Queued } else { CellStatus::Valid }
}

fn positive(value: Option<f64>) -> Option<f64> {
    value.filter(|v| *v > 0.0)
}

fn milliseconds(seconds: f64) -> f64 {
    seconds * 1_000.0
}
