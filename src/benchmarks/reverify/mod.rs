//! Recomputing verdicts when the rules change (evidence.md 0): what a run is afterwards. The pass over all runs is `service::reverify`.
//!
//! Invariants: the stored original is judged in the circumstances of its upload, and only runs before it can make it a copy; what a person
//! decided stands until the rules find something that the person did not see; what a re-measurement sent to review stays there.

pub mod model;
pub mod queries;

use std::collections::HashSet;

use super::{
    checks::{Finding, Severity},
    model::EvidenceLevel,
    verdict::Verdict,
};

/// A run as it is before.
#[derive(Debug, Clone, Copy)]
pub struct Before<'a> {
    pub verdict: Verdict,
    pub evidence_level: EvidenceLevel,
    /// Whether an operator has decided.
    pub is_reviewed: bool,
    /// Whether a re-measurement disagrees with it.
    pub is_disputed: bool,
    pub answers_challenge: bool,
    pub findings: &'a [Finding],
}

/// The verdict of a run whose findings are now `findings`.
pub fn verdict_after(before: &Before<'_>, findings: &[Finding]) -> Verdict {
    let computed = Verdict::of(findings);
    match before.verdict {
        Verdict::Rejected if before.is_reviewed => Verdict::Rejected,
        // Accepted by a person, who saw what was found then.
        Verdict::Verified if before.is_reviewed => {
            let seen = counting(before.findings);
            let has_new = counting(findings).iter().any(|code| !seen.contains(code));
            if has_new { Verdict::NeedsReview } else { Verdict::Verified }
        }
        Verdict::NeedsReview if before.is_reviewed || (before.is_disputed && computed == Verdict::Verified) => Verdict::NeedsReview,
        _ => computed,
    }
}

/// The evidence level that goes with the verdict.
pub fn level_after(before: &Before<'_>, verdict: Verdict) -> EvidenceLevel {
    match (verdict, before.evidence_level) {
        (Verdict::Verified, EvidenceLevel::Remeasured) => EvidenceLevel::Remeasured,
        (Verdict::Verified, _) if before.answers_challenge => EvidenceLevel::Challenged,
        _ => EvidenceLevel::Document,
    }
}

/// Codes of the findings that count.
fn counting(findings: &[Finding]) -> HashSet<&str> {
    findings.iter().filter(|finding| finding.severity > Severity::Note).map(|finding| finding.code.as_ref()).collect()
}
