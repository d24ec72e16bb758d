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
    let hardware = &run.hardware;
    let gpu = hardware.gpu.clone().map(|name| match hardware.gpu_count {
        Some(n) if n > 1 => format!("{n} × {name}"),
        _ => name,
    });
    let gib = |value: Option<f64>| value.map(|v| format!("{} GB", figure(Some(v), 0)));
    let seconds = run.run.duration_seconds.map(|s| format!("{} s", figure(Some(s), 0)));
    let tokens = run.run.max_output_tokens.map(|t| format!("{} tokens", count(Some(t))));
    let engine = &run.engine;
    let blocks = [
        (
            "Hardware",
            vec![
                ("Type", hardware.kind.clone()),
                ("GPU", gpu),
                ("VRAM", gib(hardware.vram_gib)),
                ("CPU", hardware.cpu.clone()),
                ("RAM", gib(hardware.ram_gib)),
                ("OS", hardware.os.clone()),
            ],
        ),
        (
            "Engine",
            vec![
                ("Engine", engine.name.clone()),
                ("Version", engine.version.clone()),
                ("Quantization", engine.quantization.clone()),
                ("Backend", engine.backend.clone()),
                ("Build", engine.build.clone()),
            ],
        ),
        (
            "Run",
            vec![
                ("Served model", run.run.served_model.clone()),
                ("Revision", run.run.revision.clone()),
                ("Decode test", run.run.decode_test.clone()),
                ("Prefill mode", run.run.prefill_mode.clone()),
                ("Time per measurement", seconds),
                ("Max output", tokens),
            ],
        ),
    ];
    blocks
        .into_iter()
        .map(|(name, rows)| Spec { name, rows: rows.into_iter().filter_map(|(label, value)| value.map(|v| (label, v))).collect() })
        .collect()
}

/// The matrix's columns.
pub(super) fn levels(run: &RunView) -> Vec<u32> {
    run.decode.iter().map(|c| c.concurrency).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The matrix, shaded on a logarithmic scale over its measured cells: step = 1 + floor(8 · ln(v/min) ÷ ln(max/min)), at most 8 (look.md).
pub(super) fn matrix(run: &RunView) -> Vec<MatrixRow> {
    let levels = levels(run);
    let contexts: BTreeSet<u64> = run.decode.iter().map(|c| c.context_tokens).collect();
    let totals = run.decode.iter().filter_map(|c| c.total_tokens_per_second).filter(|t| *t > 0.0);
    let (low, high) = totals.fold((f64::INFINITY, 0.0_f64), |(low, high), t| (low.min(t), high.max(t)));
    let find = |ctx: u64, level: u32| run.decode.iter().find(|c| c.context_tokens == ctx && c.concurrency == level);
    let over = |cell: Option<&Cell>| cell.is_some_and(|c| c.status == CellStatus::OverCapacity);
    let contexts: Vec<u64> = contexts.into_iter().collect();
    let cell = |row: usize, column: usize| -> MatrixCell {
        let at = |r: usize, c: usize| contexts.get(r).zip(levels.get(c)).and_then(|(ctx, level)| find(*ctx, *level));
        let Some(cell) = at(row, column) else {
            return MatrixCell { class: String::new(), is_measured: false, total: String::new(), ttft: String::new(), word: "" };
        };
        let is_measured = cell.status.is_measured();
        let mut class = Vec::new();
        if is_measured {
            class.push(format!("h{}", step(cell.total_tokens_per_second.unwrap_or(low), low, high)));
            class.extend(over(at(row, column + 1)).then(|| "cut-r".to_owned()));
            class.extend(over(at(row + 1, column)).then(|| "cut-b".to_owned()));
        }
        let word = match cell.status {
            CellStatus::Valid => "",
            CellStatus::Queued => {
                class.push("queued".to_owned());
                "Requests queued"
            }
            CellStatus::OverCapacity => {
                class.push("over".to_owned());
                "Over capacity"
            }
            CellStatus::Error | CellStatus::Loop => {
                class.push("bad".to_owned());
                status_text(cell.status)
            }
            CellStatus::Skipped | CellStatus::NotRun => status_text(cell.status),
        };
        MatrixCell {
            class: class.join(" "),
            is_measured,
            total: figure(cell.total_tokens_per_second, 1),
            ttft: figure(cell.ttft_ms, 0),
            word,
        }
    };
    (0..contexts.len())
        .map(|row| MatrixRow {
            context: contexts.get(row).map(|c| context(*c)).unwrap_or_default(),
            cells: (0..levels.len()).map(|column| cell(row, column)).collect(),
        })
        .collect()
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
