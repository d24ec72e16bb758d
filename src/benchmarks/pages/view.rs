//! A run in the words and figures of its page (look.md): digits as measured, the condition beside each figure, shades by speed.

use std::collections::BTreeSet;

use super::{
    super::{
        checks::{Finding, Severity},
        matrix::{Cell, CellStatus, PrefillRow},
        model::{RunSummaryView, RunView},
        verdict::Verdict,
    },
    marks::{LevelMark, StatusMark},
};
use crate::web::html::{context, count, date, figure};

/// A run in the list.
pub(super) struct RunLine {
    pub id: String,
    pub title: String,
    pub summary: String,
    pub status: StatusMark,
    pub level: LevelMark,
    pub single: String,
    pub peak: String,
    pub prefill: String,
    pub by: String,
    pub on: String,
}

impl RunLine {
    pub fn of(run: &RunSummaryView) -> Self {
        Self {
            id: run.id.to_string(),
            title: run.title.clone(),
            summary: run.summary.clone(),
            status: StatusMark::of(run.status, false),
            level: LevelMark::of(&run.evidence_level),
            single: figure(run.decode_single_tokens_per_second, 1),
            peak: figure(run.decode_peak_tokens_per_second, 1),
            prefill: figure(run.prefill_peak_tokens_per_second, 0),
            by: run.by.clone(),
            on: date(&run.created_at),
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

/// A block of names and values.
pub(super) struct Spec {
    pub name: &'static str,
    pub rows: Vec<(&'static str, String)>,
}

pub(super) struct PrefillLine {
    pub context: String,
    pub speed: String,
    /// Length of its bar, in percent of the fastest.
    pub share: String,
    pub ttft: String,
}

pub(super) fn prefill(run: &RunView) -> Vec<PrefillLine> {
    let fastest = run.prefill.iter().filter_map(|row| row.tokens_per_second).fold(0.0_f64, f64::max);
    let line = |row: &PrefillRow| PrefillLine {
        context: context(row.context_tokens),
        speed: figure(row.tokens_per_second, 0),
        share: share(row.tokens_per_second.unwrap_or(0.0), fastest),
        ttft: figure(row.ttft_ms, 0),
    };
    run.prefill.iter().map(line).collect()
}

fn share(value: f64, most: f64) -> String {
    let percent = 100.0 * value / most;
    format!("{:.1}", if percent.is_finite() { percent } else { 0.0 })
}

/// A line of the launch command; those that the shell would skip stand back.
pub(super) struct CommandLine<'a> {
    pub text: &'a str,
    pub is_comment: bool,
}

pub(super) fn command(text: &str) -> Vec<CommandLine<'_>> {
    text.trim_end().lines().map(|text| CommandLine { text, is_comment: text.trim_start().starts_with('#') }).collect()
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
    /// In full, and for a narrow page.
    pub phase: (&'static str, &'static str),
    pub context: String,
    pub requests: u32,
    pub status: &'static str,
    pub values: [String; 8],
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
    let range = range(run);
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

/// Slowest and fastest total of the measured cells; `(∞, 0)` when there is none.
fn range(run: &RunView) -> (f64, f64) {
    let measured = run.decode.iter().filter(|c| c.status.is_measured());
    let totals = measured.filter_map(|c| c.total_tokens_per_second).filter(|t| *t > 0.0);
    totals.fold((f64::INFINITY, 0.0_f64), |(low, high), t| (low.min(t), high.max(t)))
}

/// The total from which each shade is used; empty when all cells have one shade.
pub(super) fn shades(run: &RunView) -> Vec<(u8, String)> {
    let (low, high) = range(run);
    let span = (high / low).ln();
    if !span.is_finite() || span <= 0.0 {
        return Vec::new();
    }
    (1..=8_u8).map(|shade| (shade, figure(Some(low * (span * f64::from(shade - 1) / 8.0).exp()), 0))).collect()
}

/// Where the KV cache ends, when both bounds are known.
pub(super) fn kv_limit(run: &RunView) -> Option<String> {
    let (at_least, below) = (run.kv_capacity.at_least_tokens?, run.kv_capacity.below_tokens?);
    Some(format!("KV cache limit, between {} and {} tokens", count(Some(at_least)), count(Some(below))))
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

/// Every row of the table of all measurements: a group for prefill, then one for each context.
pub(super) fn measurements(run: &RunView) -> Vec<Vec<MeasurementRow>> {
    let decode = run.decode.chunk_by(|a, b| a.context_tokens == b.context_tokens);
    let groups = std::iter::once(prefill_rows(run)).chain(decode.map(|cells| cells.iter().map(decode_row).collect()));
    groups.filter(|group: &Vec<_>| !group.is_empty()).collect()
}

fn prefill_rows(run: &RunView) -> Vec<MeasurementRow> {
    let dash = || "—".to_owned();
    let row = |row: &PrefillRow| MeasurementRow {
        class: "",
        phase: ("Prefill", "Prefill"),
        context: context(row.context_tokens),
        requests: 1,
        status: "Valid",
        values: [figure(row.tokens_per_second, 1), dash(), figure(row.ttft_ms, 0), dash(), dash(), "1".to_owned(), dash(), dash()],
    };
    run.prefill.iter().map(row).collect()
}

fn decode_row(cell: &Cell) -> MeasurementRow {
    MeasurementRow {
        class: match cell.status {
            CellStatus::Queued => "wait",
            CellStatus::OverCapacity => "over",
            _ => "",
        },
        phase: ("Sustained decode", "Decode"),
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
    }
}
