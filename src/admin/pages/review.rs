//! One run as an operator sees it: what the checks found, what its uploader says, similar runs side by side, the form to decide with.

use std::collections::{BTreeSet, HashMap};

use askama::Template;

use super::queue::cause_key;
use crate::{
    base::FieldError,
    benchmarks::{
        CellRef, HistorySection, LevelMark, Phase, Severity, StatusMark, Verdict, cell_name,
        service::{ReviewView, SimilarRun},
    },
    ctx::Ctx,
    web::html::{
        Key, Layout, Messages, Reader,
        form::{Choices, Controls, FaultSummary, Form, TextArea, Words},
    },
};

const WORDS: Words = Words { label, fault };
const REASON_CHARS_MAX: usize = 1_000;
/// Runs whose cells stand beside each other; the others are in the list above.
const SIDE_BY_SIDE_MAX: usize = 6;
/// Cells that a finding names; there may be hundreds.
const CELLS_SHOWN_MAX: usize = 12;

fn label(name: &str) -> Option<Key> {
    Some(match name {
        "decision" => Key("review-decision"),
        "reason" => Key("review-reason"),
        _ => return None,
    })
}

fn fault(t: Messages, _name: &str, fault: &FieldError) -> Option<String> {
    let key = match fault.code.as_ref() {
        "wrong_length" => Key("fault-reason-length"),
        "missing_field" => Key("fault-choose"),
        _ => return None,
    };
    Some(t.text(key).into_owned())
}

struct FindingRow {
    code: String,
    title: String,
    explanation: String,
    message: String,
    severity: String,
    expected: String,
    observed: String,
    cells: String,
}

struct SimilarRow {
    path: String,
    title: String,
    by: String,
    relation: String,
    status: StatusMark,
    level: LevelMark,
    shared: String,
    close: String,
    is_copy: bool,
    ratio: String,
    on: String,
}

struct SideHead {
    path: String,
    by: String,
    on: String,
}

struct SideRow {
    cell: String,
    own: String,
    others: Vec<(String, String)>,
}

#[derive(Template)]
#[template(path = "review.html")]
pub(super) struct ReviewPage<'a> {
    layout: Layout,
    t: Messages,
    path: String,
    queue_path: String,
    run_path: String,
    review: &'a ReviewView,
    status: StatusMark,
    level: LevelMark,
    waiting: Option<String>,
    findings: Vec<FindingRow>,
    answer: Vec<String>,
    similar: Vec<SimilarRow>,
    side_heads: Vec<SideHead>,
    side_rows: Vec<SideRow>,
    decide: Option<(Choices, TextArea)>,
    faults: Option<FaultSummary>,
    history: HistorySection,
}

impl<'a> ReviewPage<'a> {
    pub fn new(ctx: &Ctx, reader: &Reader, form: &Form, review: &'a ReviewView, similar: &[SimilarRun]) -> Self {
        let t = reader.t;
        let run = &review.run;
        let controls = Controls { t, form, id: "decide", words: WORDS };
        let choices = if review.is_own { Vec::new() } else { choices(t, review) };
        let queue_path = reader.path_of(super::PART);
        let side: Vec<&SimilarRun> = similar.iter().filter(|other| !other.cells.is_empty()).take(SIDE_BY_SIDE_MAX).collect();
        let waiting = review.waiting.map(|waiting| {
            t.with(
                "review-waits",
                &[("cause", t.text(cause_key(waiting.cause)).as_ref().into()), ("since", t.instant(&waiting.since).into())],
            )
        });
        Self {
            layout: Layout::new(ctx, reader, "review", run.title.clone(), t.text("review-lede")).hidden_from_search_engines(true),
            t,
            path: format!("{queue_path}/{}", run.id),
            run_path: reader.path_of(&format!("runs/{}", run.id)),
            status: StatusMark::of(t, run.status, run.stale_at.is_some()),
            level: LevelMark::of(t, &run.evidence_level),
            waiting,
            findings: findings(t, review),
            answer: review.answer.iter().filter_map(|event| event.text.as_deref()).flat_map(str::lines).map(str::to_owned).collect(),
            similar: similar.iter().map(|other| similar_row(t, other, &queue_path)).collect(),
            side_heads: side.iter().map(|other| side_head(t, other, &queue_path)).collect(),
            side_rows: side_rows(t, &side),
            decide: (!choices.is_empty()).then(|| (controls.choices("decision", choices), controls.text_area("reason", REASON_CHARS_MAX))),
            faults: controls.faults(),
            history: HistorySection::of(reader, run, &review.history),
            queue_path,
            review,
        }
    }
}

/// What can be decided now, as `benchmarks::service::review` has it.
fn choices(t: Messages, review: &ReviewView) -> Vec<(String, String)> {
    let choice = |value: &str, key: Key| (value.to_owned(), t.text(key).into_owned());
    match review.run.status {
        Verdict::NeedsReview => vec![choice("accept", Key("review-accept")), choice("reject", Key("review-reject"))],
        _ if review.is_decided => vec![choice("reopen", Key("review-reopen"))],
        Verdict::Verified => vec![choice("reject", Key("review-reject"))],
        Verdict::Rejected => Vec::new(),
    }
}

fn findings(t: Messages, review: &ReviewView) -> Vec<FindingRow> {
    let severity = |severity: Severity| match severity {
        Severity::Note => Key("severity-note"),
        Severity::Suspicious => Key("severity-suspicious"),
        Severity::Error => Key("severity-error"),
    };
    let row = |finding: &crate::benchmarks::service::ExplainedFinding| FindingRow {
        code: finding.code.clone(),
        title: finding.title.unwrap_or(&finding.code).to_owned(),
        explanation: finding.explanation.unwrap_or_default().to_owned(),
        message: finding.message.clone(),
        severity: t.text(severity(finding.severity)).into_owned(),
        expected: finding.expected.clone().unwrap_or_else(|| t.count(None)),
        observed: finding.observed.clone().unwrap_or_else(|| t.count(None)),
        cells: cells(t, &finding.cells),
    };
    review.findings.iter().map(row).collect()
}

fn cells(t: Messages, cells: &[CellRef]) -> String {
    let name = |cell: &CellRef| match cell.phase {
        Phase::Prefill => t.with("cell-of-prefill", &[("context", t.context(cell.context_tokens).into())]),
        Phase::Burst => t.with("cell-of-burst", &[("cell", cell_name(t, cell.context_tokens, cell.concurrency).into())]),
        Phase::Decode => cell_name(t, cell.context_tokens, cell.concurrency),
    };
    let shown: Vec<String> = cells.iter().take(CELLS_SHOWN_MAX).map(name).collect();
    let text = shown.join(", ");
    match cells.len().checked_sub(CELLS_SHOWN_MAX).filter(|more| *more > 0) {
        Some(more) => t.with("cells-and-more", &[("cells", text.into()), ("more", more.into())]),
        None => text,
    }
}

fn similar_row(t: Messages, other: &SimilarRun, queue_path: &str) -> SimilarRow {
    let relations = [
        (other.is_same_setup, Key("similar-setup")),
        (other.is_same_account, Key("similar-account")),
        (other.is_same_machine, Key("similar-machine")),
        (other.shares_run_identifier, Key("similar-identifier")),
        (other.shares_device, Key("similar-device")),
    ];
    let relation: Vec<String> = relations.iter().filter(|(holds, _)| *holds).map(|(_, key)| t.text(key).into_owned()).collect();
    SimilarRow {
        path: format!("{queue_path}/{}", other.id),
        title: other.title.clone(),
        by: other.by.clone(),
        relation: relation.join(", "),
        status: StatusMark::of(t, other.status, false),
        level: LevelMark::of(t, &other.evidence_level),
        shared: t
            .with("similar-shared-of", &[("shared", counted(t, other.shared_cells).into()), ("own", counted(t, other.own_cells).into())]),
        close: t.with("similar-close", &[("close", counted(t, other.close_cells).into())]),
        is_copy: other.shared_cells > 0,
        ratio: t.figure(other.median_ratio, 3),
        on: t.date(&other.created_at),
    }
}

fn counted(t: Messages, count: i64) -> String {
    t.count(u64::try_from(count).ok())
}

fn side_head(t: Messages, other: &SimilarRun, queue_path: &str) -> SideHead {
    SideHead { path: format!("{queue_path}/{}", other.id), by: other.by.clone(), on: t.date(&other.created_at) }
}

/// A row for each cell that any of them shares with the run.
fn side_rows(t: Messages, side: &[&SimilarRun]) -> Vec<SideRow> {
    let key = |cell: &crate::benchmarks::service::ComparedCell| (cell.context_tokens, cell.concurrency);
    let places: BTreeSet<(u64, u32)> = side.iter().flat_map(|other| other.cells.iter().map(key)).collect();
    let by_place: Vec<HashMap<(u64, u32), _>> =
        side.iter().map(|other| other.cells.iter().map(|cell| (key(cell), cell)).collect()).collect();
    let row = |place: (u64, u32)| {
        let found: Vec<Option<_>> = by_place.iter().map(|cells| cells.get(&place)).collect();
        let figures = |cell: Option<&&crate::benchmarks::service::ComparedCell>| {
            (t.figure(cell.map(|cell| cell.other_tokens_per_second), 1), cell.map(|cell| t.figure(Some(cell.ratio), 3)).unwrap_or_default())
        };
        SideRow {
            cell: cell_name(t, place.0, place.1),
            own: t.figure(found.iter().flatten().next().map(|cell| cell.own_tokens_per_second), 1),
            others: found.into_iter().map(figures).collect(),
        }
    };
    places.into_iter().map(row).collect()
}
