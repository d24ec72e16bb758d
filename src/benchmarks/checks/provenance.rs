//! What the document is: its version, what was measured at all, and modes that make a speed something else than natural throughput.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use super::era::{Shape, is_plausible};
use super::{Finding, Input, Severity};
use crate::benchmarks::document::Document;
use crate::benchmarks::matrix::CellStatus;

/// Versions without a measured window were replaced well before this day: an honest document of theirs is older.
const UNCHECKABLE_UNTIL: Option<NaiveDate> = NaiveDate::from_ymd_opt(2026, 6, 30);

/// The tool's clock has no zone: it can be this far from UTC (evidence.md 0).
pub(crate) const ZONE_HOURS_MAX: i64 = 14;
/// Older than this a run says little of a machine today.
const AGE_DAYS_MAX: i64 = 90;

/// The run's time against the upload's: no run ends in the future.
pub(crate) fn freshness(document: &Document, uploaded_at: Option<DateTime<Utc>>) -> Option<Finding> {
    let (saved, uploaded) = (document.metadata.timestamp?, uploaded_at?.naive_utc());
    let ahead = saved.signed_duration_since(uploaded);
    if ahead > TimeDelta::hours(ZONE_HOURS_MAX) {
        let message = "The run was saved after it was uploaded, by more than any time zone explains.";
        return Some(Finding::suspicious("timestamp_future", message).values(uploaded, saved));
    }
    let old = ahead < TimeDelta::days(-AGE_DAYS_MAX);
    old.then(|| Finding::note("run_old", format!("The run was saved more than {AGE_DAYS_MAX} days before its upload.")))
}

pub(super) fn check(input: &Input<'_>) -> Vec<Finding> {
    let mut findings = version(input);
    findings.extend(measured(input));
    findings.extend(modes(input));
    findings.extend(wrapper(input));
    findings
}

fn version(input: &Input<'_>) -> Vec<Finding> {
    let document = input.document;
    let mut findings = Vec::new();
    match &document.version {
        Some(version) if !is_plausible(version) => {
            let finding = Finding::suspicious("version_implausible", "The version is none that this tool has had.");
            findings.push(finding.values("such as 0.8.0", &version.text));
        }
        Some(version) if input.era.is_unknown() => {
            let finding = Finding::note("version_unknown", "The tool is newer than the documents these checks were made for.");
            findings.push(finding.values("up to 0.8", &version.text));
        }
        None if input.era.shape != Shape::Uncheckable => {
            findings.push(Finding::suspicious(
                "version_missing",
                "The document names no version, though the tool that writes such cells does.",
            ));
        }
        _ => {}
    }
    if input.era.contradicts_shape() {
        let message = "The document has fields that the version it names could not write.";
        findings.push(Finding::suspicious("version_implausible", message));
    }
    if let (Some(version), Some(startup)) = (&document.version, &document.startup_version)
        && version.text != *startup
    {
        findings.push(Finding::note("version_differs", "The document names two versions.").values(startup, &version.text));
    }
    if input.era.shape == Shape::Uncheckable && !document.cells.is_empty() {
        let dated = document.metadata.timestamp.is_some_and(|t| UNCHECKABLE_UNTIL.is_some_and(|until| t.date() <= until));
        let severity = if dated && !input.era.must_have_window() { Severity::Note } else { Severity::Suspicious };
        let message = "A document of this age holds nothing to recompute its speeds from; only its summary can be compared.";
        findings.push(Finding::new("version_uncheckable", severity, message));
    }
    if document.metadata.timestamp_malformed {
        findings.push(Finding::suspicious("timestamp_malformed", "The time of the run cannot be read."));
    }
    findings
}

/// A run without one valid cell has nothing to stand for: an honest one (a dead server, prefill only) is no forgery, so a person looks.
fn measured(input: &Input<'_>) -> Option<Finding> {
    let matrix = input.matrix;
    if matrix.decode.iter().chain(&matrix.burst).any(|cell| cell.status == CellStatus::Valid) {
        return None;
    }
    let message = if input.document.metadata.prefill_only {
        "The run measured prefill only; it has no decode speed."
    } else {
        "Not a single cell is valid."
    };
    Some(Finding::suspicious("no_valid_cell", message))
}

fn modes(input: &Input<'_>) -> Vec<Finding> {
    let document = input.document;
    let mut findings = Vec::new();
    if document.metadata.forced_tokens {
        let message = "The engine was made to give fixed tokens; that is no natural throughput.";
        findings.push(Finding::suspicious("forced_tokens", message));
    }
    if !input.has_metrics() && !document.cells.is_empty() {
        let message = "The engine gave no metrics: queueing and active requests are unknown, and a queued cell looks valid.";
        findings.push(Finding::note("no_metrics", message));
    }
    let speculation = |rate: Option<f64>| rate.is_some_and(|rate| rate > 0.0);
    let spec = document.cells.iter().any(|cell| speculation(cell.server_spec_accept_rate) || speculation(cell.server_spec_accept_length));
    if spec || document.wrapper.as_ref().is_some_and(|wrapper| wrapper.speculation) {
        findings.push(Finding::note("speculation", "The engine used speculation: speeds depend on how well it guessed."));
    }
    findings
}

fn wrapper(input: &Input<'_>) -> Vec<Finding> {
    let Some(wrapper) = &input.document.wrapper else { return Vec::new() };
    let mut findings = Vec::new();
    if !wrapper.known_schema {
        findings.push(Finding::note("version_unknown", "The wrapper is newer than the documents these checks were made for."));
    }
    match wrapper.status.as_deref() {
        Some("complete") | None => {}
        Some(_) => findings.push(Finding::suspicious("wrapper_not_complete", "The wrapper says that the run failed or was interrupted.")),
    }
    if wrapper.profile.as_deref() == Some("quick") {
        findings.push(Finding::note("profile_quick", "The run used the wrapper's quick profile, which is kept out of statistics."));
    }
    if wrapper.integrity_status.as_deref() == Some("modified") {
        findings.push(Finding::suspicious("integrity_modified", "The wrapper found files of its image changed."));
    }
    findings
}
