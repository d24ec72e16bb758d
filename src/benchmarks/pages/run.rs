//! One run as a page shows it, in the order and words of the published page. Its page stands in `market`, which has the machines that are for
//! rent with the run; what is here is all of it that a run alone says.

use std::borrow::Cow;

use askama::Template;

use super::{
    super::{
        checks::{CHECKS, Severity},
        matrix::CellStatus,
        model::RunView,
    },
    curves::{self, Chart},
    marks::{Ladder, Readings, StatusMark},
    matrix::{self, MatrixTable},
    remeasured::Remeasured,
    view::{self, CheckRow, CommandLine, MeasurementRow, PrefillLine, Spec},
};
use crate::web::html::{Messages, Reader, address};

/// From the title to the notes.
#[derive(Template)]
#[template(path = "parts/run.html")]
pub struct RunBody<'a> {
    t: Messages,
    runs_path: String,
    by_path: String,
    tool: String,
    status: StatusMark,
    ladder: Ladder,
    verdict: Cow<'static, str>,
    /// What the checks found.
    findings: Vec<CheckRow>,
    has_only_notes: bool,
    remeasured: Remeasured,
    check_count: usize,
    readings: Readings,
    specs: Vec<Spec>,
    command: Vec<CommandLine<'a>>,
    prefill: Vec<PrefillLine>,
    matrix: Option<MatrixTable>,
    charts: Vec<Chart>,
    all: Vec<Vec<MeasurementRow>>,
    has_queued: bool,
    has_over_capacity: bool,
    run: &'a RunView,
}

impl<'a> RunBody<'a> {
    pub fn of(reader: &Reader, run: &'a RunView) -> Self {
        let t = reader.t;
        let runs_path = reader.path_of("runs");
        let benchmarks_path = reader.path_of("benchmarks");
        Self {
            t,
            by_path: address(&runs_path, [("by", &run.by)]),
            tool: match &run.tool.version {
                Some(version) => t.with("tool", &[("name", (&run.tool.name).into()), ("version", version.into())]),
                None => run.tool.name.clone(),
            },
            status: StatusMark::of(t, run.status, run.stale_at.is_some()),
            ladder: Ladder::of(t, &run.evidence_level),
            verdict: t.text(view::verdict_key(run.status)),
            findings: run.checks.iter().map(|finding| CheckRow::of(t, finding, &benchmarks_path)).collect(),
            has_only_notes: run.checks.iter().all(|finding| finding.severity == Severity::Note),
            check_count: CHECKS.len(),
            remeasured: Remeasured::of(t, run),
            readings: Readings::of(t, run),
            specs: view::specs(t, run, &runs_path),
            command: view::command(run.launch_command.as_deref().unwrap_or_default()),
            prefill: view::prefill(t, run),
            matrix: MatrixTable::of(t, run),
            charts: curves::charts(t, run),
            all: view::measurements(t, run),
            has_queued: matrix::has(run, CellStatus::Queued),
            has_over_capacity: matrix::has(run, CellStatus::OverCapacity),
            runs_path,
            run,
        }
    }

    fn short_hash(&self) -> &str {
        self.run.document_sha256.get(..12).unwrap_or(&self.run.document_sha256)
    }
}
