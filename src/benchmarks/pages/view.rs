//! A run in the words and figures of its page (look.md): digits as measured, the condition beside each figure, shades by speed.

use std::collections::BTreeSet;

use super::super::{
    checks::{Finding, Severity},
    matrix::{Cell, CellStatus, PrefillRow},
    model::{RunSummaryView, RunView},
    verdict::Verdict,
};
use crate::web::html::{context, count, figure};

/// A run in the list.
pub(super) struct RunLine {
    pub id: String,
    pub title: String,
    pub summary: String,
    pub status_class: &'static str,
    pub status_word: &'static str,
    pub evidence_level: String,
    pub single: String,
    pub peak: String,
    pub prefill: String,
    pub by: String,
}

impl RunLine {
    pub fn of(run: &RunSummaryView) -> Self {
        let (status_class, status_word) = status_words(run.status);
        Self {
            id: run.id.to_string(),
            title: run.title.clone(),
            summary: run.summary.clone(),
            status_class,
            status_word,
            evidence_level: run.evidence_level.clone(),
            single: figure(run.decode_single_tokens_per_second, 1),
            peak: figure(run.decode_peak_tokens_per_second, 1),
            prefill: figure(run.prefill_peak_tokens_per_second, 0),
            by: run.by.clone(),
        }
    }
}

/// A check's result.
pub(super) struct CheckRow {
    pub code: String,
    pub message: String,
    pub severity: &'static str,
}

impl CheckRow {
    pub fn of(finding: &Finding) -> Self {
        let severity = match finding.severity {
            Severity::Note => "Note",
            Severity::Suspicious => "Suspicious",
            Severity::Error => "Error",
        };
        Self { code: finding.code.to_string(), message: finding.message.clone(), severity }
    }
}

/// One of at most five figures at the top.
pub(super) struct Reading {
    pub name: String,
    pub value: String,
    pub unit: &'static str,
    pub condition: String,
}

/// A block of names and values.
pub(super) struct Spec {
    pub name: &'static str,
    pub rows: Vec<(&'static str, String)>,
}

pub(super) struct PrefillLine {
    pub context: String,
    pub speed: String,
    pub ttft: String,
}

impl PrefillLine {
    pub fn of(row: &PrefillRow) -> Self {
        Self { context: context(row.context_tokens), speed: figure(row.tokens_per_second, 0), ttft: figure(row.ttft_ms, 0) }
    }
}

pub(super) struct MatrixRow {
    pub context: String,
    pub cells: Vec<MatrixCell>,
}

pub(super) struct MatrixCell {
    pub class: String,
    pub is_measured: bool,
    pub total: String,
    pub ttft: String,
    pub word: &'static str,
}

/// A line of "All measurements".
pub(super) struct MeasurementRow {
    pub class: &'static str,
    pub phase: &'static str,
    pub context: String,
    pub requests: u32,
    pub status: &'static str,
    pub values: [String; 8],
}

/// Class and word of a verdict's badge. Only a verified run is Measured.
pub(super) const fn status_words(status: Verdict) -> (&'static str, &'static str) {
    match status {
        Verdict::Verified => ("ok", "Measured"),
        Verdict::NeedsReview => ("warn", "Needs review"),
        Verdict::Rejected => ("bad", "Rejected"),
    }
}

pub(super) const fn verdict_word(status: Verdict) -> &'static str {
    match status {
        Verdict::Verified => "verified",
        Verdict::NeedsReview => "needs review",
        Verdict::Rejected => "rejected",
    }
}

const fn status_text(status: CellStatus) -> &'static str {
    match status {
        CellStatus::Valid => "Valid",
        CellStatus::Queued => "Requests queued",
        CellStatus::OverCapacity => "Over capacity",
        CellStatus::Error => "Error",
        CellStatus::Loop => "Loop",
        CellStatus::Skipped => "Skipped",
        CellStatus::NotRun => "Not run",
    }
}

/// The figures at the top; a queued cell is never a reading.
pub(super) fn readings(run: &RunView) -> Vec<Reading> {
    let valid: Vec<&Cell> = run.decode.iter().filter(|c| c.status == CellStatus::Valid).collect();
    let mut readings = Vec::new();
    if let Some(cell) = valid.iter().find(|c| c.context_tokens == 0 && c.concurrency == 1) {
        let condition = format!("TTFT {} ms", figure(cell.ttft_ms, 0));
        readings.push(reading("One request, no context", figure(cell.total_tokens_per_second, 1), "tok/s", condition));
    }
    let speed = |c: &&&Cell| c.total_tokens_per_second.unwrap_or(0.0);
    if let Some(cell) = valid.iter().max_by(|a, b| speed(a).total_cmp(&speed(b))) {
        let condition = format!("{} requests, context {}", cell.concurrency, context(cell.context_tokens));
        readings.push(reading("Best total without a queue", figure(cell.total_tokens_per_second, 1), "tok/s", condition));
    }
    if let Some(row) = run.prefill.iter().find(|p| p.tokens_per_second.is_some()) {
        let name = format!("Prefill at {}", context(row.context_tokens));
        readings.push(reading(&name, figure(row.tokens_per_second, 0), "tok/s", format!("TTFT {} ms", figure(row.ttft_ms, 0))));
    }
    if let Some(cell) = valid.iter().filter(|c| c.concurrency == 1 && c.context_tokens > 0).max_by_key(|c| c.context_tokens) {
        let name = format!("One request at {}", context(cell.context_tokens));
        readings.push(reading(&name, figure(cell.total_tokens_per_second, 1), "tok/s", format!("TTFT {} ms", figure(cell.ttft_ms, 0))));
    }
    if let Some(at_least) = run.kv_capacity.at_least_tokens {
        let condition = run.kv_capacity.below_tokens.map_or_else(String::new, |b| format!("and fewer than {}", count(Some(b))));
        readings.push(reading("KV cache holds", format!("≥ {}", count(Some(at_least))), "tokens", condition));
    }
    readings
}

fn reading(name: &str, value: String, unit: &'static str, condition: String) -> Reading {
    Reading { name: name.to_owned(), value, unit, condition }
}

/// Hardware, Engine and Run, each with what is known.
pub(super) fn specs(run: &RunView) -> Vec<Spec> {
    let known = |name, rows: Vec<(&'static str, Option<String>)>| Spec {
        name,
        rows: rows.into_iter().filter_map(|(label, value)| value.map(|v| (label, v))).collect(),
    };
    vec![known("Hardware", hardware_rows(run)), known("Engine", engine_rows(run)), known("Run", run_rows(run))]
}

fn hardware_rows(run: &RunView) -> Vec<(&'static str, Option<String>)> {
    let hardware = &run.hardware;
    let gpu = hardware.gpu.clone().map(|name| match hardware.gpu_count {
        Some(n) if n > 1 => format!("{n} × {name}"),
        _ => name,
    });
    let gib = |value: Option<f64>| value.map(|v| format!("{} GB", figure(Some(v), 0)));
    vec![
        ("Type", hardware.kind.clone()),
        ("GPU", gpu),
        ("VRAM", gib(hardware.vram_gib)),
        ("CPU", hardware.cpu.clone()),
        ("RAM", gib(hardware.ram_gib)),
        ("OS", hardware.os.clone()),
    ]
}

fn engine_rows(run: &RunView) -> Vec<(&'static str, Option<String>)> {
    let engine = &run.engine;
    vec![
        ("Engine", engine.name.clone()),
        ("Version", engine.version.clone()),
        ("Quantization", engine.quantization.clone()),
        ("Backend", engine.backend.clone()),
        ("Build", engine.build.clone()),
    ]
}

fn run_rows(run: &RunView) -> Vec<(&'static str, Option<String>)> {
    let settings = &run.run;
    vec![
        ("Served model", settings.served_model.clone()),
        ("Revision", settings.revision.clone()),
        ("Decode test", settings.decode_test.clone()),
        ("Prefill mode", settings.prefill_mode.clone()),
        ("Time per measurement", settings.duration_seconds.map(|s| format!("{} s", figure(Some(s), 0)))),
        ("Max output", settings.max_output_tokens.map(|t| format!("{} tokens", count(Some(t))))),
    ]
}

/// The matrix's columns.
pub(super) fn levels(run: &RunView) -> Vec<u32> {
    run.decode.iter().map(|c| c.concurrency).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The matrix, shaded on a logarithmic scale over its measured cells: step = 1 + floor(8 · ln(v/min) ÷ ln(max/min)), at most 8 (look.md).
pub(super) fn matrix(run: &RunView) -> Vec<MatrixRow> {
    let levels = levels(run);
    let contexts: Vec<u64> = run.decode.iter().map(|c| c.context_tokens).collect::<BTreeSet<_>>().into_iter().collect();
    let totals = run.decode.iter().filter_map(|c| c.total_tokens_per_second).filter(|t| *t > 0.0);
    let range = totals.fold((f64::INFINITY, 0.0_f64), |(low, high), t| (low.min(t), high.max(t)));
    let at = |row: usize, column: usize| {
        let (context, level) = (contexts.get(row)?, levels.get(column)?);
        run.decode.iter().find(|c| c.context_tokens == *context && c.concurrency == *level)
    };
    let is_over = |cell: Option<&Cell>| cell.is_some_and(|c| c.status == CellStatus::OverCapacity);
    let cell = |row: usize, column: usize| match at(row, column) {
        Some(cell) => matrix_cell(cell, range, is_over(at(row, column + 1)), is_over(at(row + 1, column))),
        None => MatrixCell { class: String::new(), is_measured: false, total: String::new(), ttft: String::new(), word: "" },
    };
    let rows = contexts.iter().enumerate();
    rows.map(|(row, tokens)| MatrixRow { context: context(*tokens), cells: (0..levels.len()).map(|column| cell(row, column)).collect() })
        .collect()
}

/// One cell; a line is drawn where its neighbour no longer fits the KV cache.
fn matrix_cell(cell: &Cell, (low, high): (f64, f64), cut_right: bool, cut_below: bool) -> MatrixCell {
    let is_measured = cell.status.is_measured();
    let mut class = Vec::new();
    if is_measured {
        class.push(format!("h{}", step(cell.total_tokens_per_second.unwrap_or(low), low, high)));
        class.extend(cut_right.then(|| "cut-r".to_owned()));
        class.extend(cut_below.then(|| "cut-b".to_owned()));
    }
    let (mark, word) = match cell.status {
        CellStatus::Valid => ("", ""),
        CellStatus::Queued => ("queued", "Requests queued"),
        CellStatus::OverCapacity => ("over", "Over capacity"),
        CellStatus::Error | CellStatus::Loop => ("bad", status_text(cell.status)),
        CellStatus::Skipped | CellStatus::NotRun => ("", status_text(cell.status)),
    };
    if !mark.is_empty() {
        class.push(mark.to_owned());
    }
    MatrixCell { class: class.join(" "), is_measured, total: figure(cell.total_tokens_per_second, 1), ttft: figure(cell.ttft_ms, 0), word }
}

fn step(value: f64, low: f64, high: f64) -> u8 {
    let span = (high / low).ln();
    if !span.is_finite() || span <= 0.0 {
        return 8;
    }
    let step = 1.0 + (8.0 * (value / low).ln() / span).floor();
    (1..=8).rev().find(|s| step >= f64::from(*s)).unwrap_or(1)
}

/// Every row of the table of all measurements, prefill first.
pub(super) fn measurements(run: &RunView) -> Vec<MeasurementRow> {
    let dash = || "—".to_owned();
    let prefill = run.prefill.iter().map(|row| MeasurementRow {
        class: "",
        phase: "Prefill",
        context: context(row.context_tokens),
        requests: 1,
        status: "Valid",
        values: [figure(row.tokens_per_second, 1), dash(), figure(row.ttft_ms, 0), dash(), dash(), "1".to_owned(), dash(), dash()],
    });
    let decode = run.decode.iter().map(|cell| MeasurementRow {
        class: match cell.status {
            CellStatus::Queued => "wait",
            CellStatus::OverCapacity => "over",
            _ => "",
        },
        phase: "Sustained decode",
        context: context(cell.context_tokens),
        requests: cell.concurrency,
        status: status_text(cell.status),
        values: [
            figure(cell.total_tokens_per_second, 1),
            figure(cell.per_request_tokens_per_second, 1),
            figure(cell.ttft_ms, 0),
            figure(cell.itl_ms, 1),
            figure(cell.average_active_requests, 1),
            count(cell.completed_requests),
            count(cell.output_tokens),
            figure(cell.measured_seconds, 1),
        ],
    });
    prefill.chain(decode).collect()
}
