//! A run in the words and figures of its page: digits as measured, the condition beside each figure.

use std::borrow::Cow;

use super::{
    super::{
        checks::{Finding, Severity},
        matrix::{Cell, CellStatus, PrefillRow},
        model::RunView,
        verdict::Verdict,
    },
    matrix::status_key,
    methods::check_path,
};
use crate::web::html::{Key, Messages, address};

/// A check's result.
pub(super) struct CheckRow {
    pub code: String,
    /// Of its explanation.
    pub path: String,
    pub message: String,
    pub severity: Cow<'static, str>,
}

impl CheckRow {
    pub fn of(t: Messages, finding: &Finding, benchmarks_path: &str) -> Self {
        let severity = match finding.severity {
            Severity::Note => Key("severity-note"),
            Severity::Suspicious => Key("severity-suspicious"),
            Severity::Error => Key("severity-error"),
        };
        Self {
            code: finding.code.to_string(),
            path: check_path(benchmarks_path, &finding.code),
            message: finding.message.clone(),
            severity: t.text(severity),
        }
    }
}

/// A block of names and values.
pub(super) struct Spec {
    pub name: Cow<'static, str>,
    pub rows: Vec<SpecRow>,
}

pub(super) struct SpecRow {
    pub name: Cow<'static, str>,
    pub value: String,
    /// Leads to the runs that share the value.
    pub path: Option<String>,
    pub is_code: bool,
}

pub(super) struct PrefillLine {
    pub context: String,
    pub speed: String,
    /// Length of its bar, in percent of the fastest.
    pub share: String,
    pub ttft: String,
}

pub(super) fn prefill(t: Messages, run: &RunView) -> Vec<PrefillLine> {
    let fastest = run.prefill.iter().filter_map(|row| row.tokens_per_second).fold(0.0_f64, f64::max);
    let line = |row: &PrefillRow| PrefillLine {
        context: t.context(row.context_tokens),
        speed: t.figure(row.tokens_per_second, 0),
        share: share(row.tokens_per_second.unwrap_or(0.0), fastest),
        ttft: t.figure(row.ttft_ms, 0),
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

/// A line of "All measurements".
pub(super) struct MeasurementRow {
    pub class: &'static str,
    pub phase: Cow<'static, str>,
    /// For a narrow page.
    pub phase_in_short: Cow<'static, str>,
    pub context: String,
    pub requests: String,
    pub status: Cow<'static, str>,
    pub values: [String; 8],
}

pub(super) const fn verdict_key(status: Verdict) -> Key {
    match status {
        Verdict::Verified => Key("verdict-verified"),
        Verdict::NeedsReview => Key("verdict-needs-review"),
        Verdict::Rejected => Key("verdict-rejected"),
    }
}

/// Hardware, Engine and Run, each with what is known.
pub(super) fn specs(t: Messages, run: &RunView, runs_path: &str) -> Vec<Spec> {
    let spec = |name: Key, rows: Vec<Option<SpecRow>>| Spec { name: t.text(name), rows: rows.into_iter().flatten().collect() };
    vec![
        spec(Key("spec-hardware"), hardware_rows(t, run, runs_path)),
        spec(Key("spec-engine"), engine_rows(t, run)),
        spec(Key("spec-run"), run_rows(t, run)),
    ]
}

fn known(t: Messages, name: Key, value: Option<String>) -> Option<SpecRow> {
    value.map(|value| SpecRow { name: t.text(name), value, path: None, is_code: false })
}

fn hardware_rows(t: Messages, run: &RunView, runs_path: &str) -> Vec<Option<SpecRow>> {
    let hardware = &run.hardware;
    let gpu = hardware.gpu.clone().map(|name| match hardware.gpu_count {
        Some(n) if n > 1 => format!("{n} × {name}"),
        _ => name,
    });
    let gib = |value: Option<f64>| value.map(|v| t.with("memory-gb", &[("amount", t.figure(Some(v), 0).into())]));
    let runs = hardware.slug.as_deref().map(|slug| address(runs_path, [("hardware", slug)]));
    vec![
        known(t, Key("spec-type"), hardware.kind.clone()),
        known(t, Key("spec-gpu"), gpu).map(|row| SpecRow { path: runs, ..row }),
        known(t, Key("spec-vram"), gib(hardware.vram_gib)),
        known(t, Key("spec-cpu"), hardware.cpu.clone()),
        known(t, Key("spec-ram"), gib(hardware.ram_gib)),
        known(t, Key("spec-os"), hardware.os.clone()),
    ]
}

fn engine_rows(t: Messages, run: &RunView) -> Vec<Option<SpecRow>> {
    let engine = &run.engine;
    vec![
        known(t, Key("spec-engine"), engine.name.clone()),
        known(t, Key("spec-version"), engine.version.clone()),
        known(t, Key("quantization"), engine.quantization.clone()),
        known(t, Key("spec-backend"), engine.backend.clone()),
        known(t, Key("spec-build"), engine.build.clone()).map(|row| SpecRow { is_code: true, ..row }),
    ]
}

fn run_rows(t: Messages, run: &RunView) -> Vec<Option<SpecRow>> {
    let settings = &run.run;
    let seconds = settings.duration_seconds.map(|s| t.with("seconds", &[("seconds", t.figure(Some(s), 0).into())]));
    let output = settings.max_output_tokens.map(|tokens| t.with("tokens", &[("tokens", t.count(Some(tokens)).into())]));
    vec![
        known(t, Key("spec-served-model"), settings.served_model.clone()),
        known(t, Key("spec-revision"), settings.revision.clone()),
        known(t, Key("spec-decode-test"), settings.decode_test.clone()),
        known(t, Key("spec-prefill-mode"), settings.prefill_mode.clone()),
        known(t, Key("spec-duration"), seconds),
        known(t, Key("spec-max-output"), output),
    ]
}

/// Every row of the table of all measurements: a group for prefill, then one for each context.
pub(super) fn measurements(t: Messages, run: &RunView) -> Vec<Vec<MeasurementRow>> {
    let decode = run.decode.chunk_by(|a, b| a.context_tokens == b.context_tokens);
    let decode = decode.map(|cells| cells.iter().map(|cell| decode_row(t, cell)).collect());
    let groups = std::iter::once(run.prefill.iter().map(|row| prefill_row(t, row)).collect()).chain(decode);
    groups.filter(|group: &Vec<_>| !group.is_empty()).collect()
}

fn prefill_row(t: Messages, row: &PrefillRow) -> MeasurementRow {
    let none = || t.count(None);
    MeasurementRow {
        class: "",
        phase: t.text("prefill"),
        phase_in_short: t.text("prefill"),
        context: t.context(row.context_tokens),
        requests: t.count(Some(1)),
        status: t.text("cell-valid"),
        values: [t.figure(row.tokens_per_second, 1), none(), t.figure(row.ttft_ms, 0), none(), none(), t.count(Some(1)), none(), none()],
    }
}

fn decode_row(t: Messages, cell: &Cell) -> MeasurementRow {
    MeasurementRow {
        class: match cell.status {
            CellStatus::Queued => "wait",
            CellStatus::OverCapacity => "over",
            _ => "",
        },
        phase: t.text("decode"),
        phase_in_short: t.text("decode-in-short"),
        context: t.context(cell.context_tokens),
        requests: t.count(Some(cell.concurrency.into())),
        status: t.text(status_key(cell.status)),
        values: [
            t.figure(cell.total_tokens_per_second, 1),
            t.figure(cell.per_request_tokens_per_second, 1),
            t.figure(cell.ttft_ms, 0),
            t.figure(cell.itl_ms, 1),
            t.figure(cell.average_active_requests, 1),
            t.count(cell.completed_requests),
            t.count(cell.output_tokens),
            t.figure(cell.measured_seconds, 1),
        ],
    }
}
