//! What happened to a run, as its pages show it.

use askama::Template;

use super::{
    super::{
        history::model::{RunEventKind, RunEventView},
        model::RunView,
        service::ReviewDecision,
        verdict::Verdict,
    },
    view,
};
use crate::web::html::{Key, Messages, Reader};

/// The section "History".
#[derive(Template)]
#[template(path = "parts/history.html")]
pub struct HistorySection {
    t: Messages,
    /// All of it, for programs.
    api_path: String,
    /// Where its uploader answers, when somebody waits for that.
    answer_path: Option<String>,
    rows: Vec<EventRow>,
}

struct EventRow {
    at: String,
    what: String,
    by: String,
    /// Codes of findings.
    findings: String,
    /// A reason or an answer, line by line.
    lines: Vec<String>,
    other_run: Option<String>,
}

impl HistorySection {
    pub fn of(reader: &Reader, run: &RunView, events: &[RunEventView]) -> Self {
        let runs_path = reader.path_of("runs");
        Self {
            t: reader.t,
            api_path: format!("/api/v1/matrix-runs/{}/history", run.id),
            answer_path: awaits_answer(run, events).then(|| format!("{runs_path}/{}/answer", run.id)),
            rows: events.iter().map(|event| row(reader.t, event, &runs_path)).collect(),
        }
    }
}

/// As `service::review` has it: nobody has answered, and the run waits or a person has rejected it.
fn awaits_answer(run: &RunView, events: &[RunEventView]) -> bool {
    let is_answered = events.iter().any(|event| event.kind == RunEventKind::Answered);
    let waits = run.status == Verdict::NeedsReview || (run.status == Verdict::Rejected && run.reviewed_at.is_some());
    waits && !is_answered
}

fn row(t: Messages, event: &RunEventView, runs_path: &str) -> EventRow {
    let said = event.reason.as_deref().or(event.text.as_deref()).unwrap_or_default();
    EventRow {
        at: t.instant(&event.at),
        what: what(t, event),
        by: event.by.clone().unwrap_or_else(|| t.text("site-name").into_owned()),
        findings: event.findings.as_ref().map(|codes| codes.join(", ")).unwrap_or_default(),
        lines: said.lines().map(str::to_owned).collect(),
        other_run: event.other_run.map(|id| format!("{runs_path}/{id}")),
    }
}

fn what(t: Messages, event: &RunEventView) -> String {
    let verdict = |verdict: Option<Verdict>| verdict.map(|verdict| t.text(view::verdict_key(verdict)).into_owned()).unwrap_or_default();
    let version = event.rules_version.as_deref().unwrap_or_default();
    let key = match event.kind {
        RunEventKind::Uploaded => Key("event-uploaded"),
        RunEventKind::Verdict => {
            return t.with("event-verdict", &[("verdict", verdict(event.verdict).into()), ("version", version.into())]);
        }
        RunEventKind::VerdictRecomputed => {
            let (verdict, was) = (verdict(event.verdict), verdict(event.was));
            return t.with("event-verdict-recomputed", &[("verdict", verdict.into()), ("was", was.into()), ("version", version.into())]);
        }
        RunEventKind::Reviewed if event.decision == Some(ReviewDecision::Accept) => Key("event-accepted"),
        RunEventKind::Reviewed => Key("event-rejected"),
        RunEventKind::Reopened => Key("event-reopened"),
        RunEventKind::Answered => Key("event-answered"),
        RunEventKind::Remeasured => Key("event-remeasured"),
        RunEventKind::Disputed => Key("event-disputed"),
        RunEventKind::DisputeEnded => Key("event-dispute-ended"),
        RunEventKind::BaseLine => Key("event-base-line"),
        RunEventKind::SentToReview => Key("event-sent-to-review"),
        RunEventKind::Stale => match &event.until {
            Some(until) => return t.with("event-stale-until", &[("until", t.instant(until).into())]),
            None => Key("status-stale"),
        },
    };
    t.text(key).into_owned()
}
