//! I7: numbers have the digits that the tool writes. A total as round as a printed one was typed.

use super::{CellRef, Finding, Input, Phase};

/// A quotient of tokens and seconds has more than three decimals but once in a thousand.
const DECIMALS: f64 = 1_000.0;

pub(super) fn check(input: &Input<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !input.era.must_have_window() {
        return findings;
    }
    for row in input.measured() {
        if row.raw.aggregate_tps.is_some_and(|tps| is_rounded_to(tps, DECIMALS)) {
            let message = "The total is a round number: it was typed or rounded, not computed.";
            findings.push(Finding::suspicious("total_rounded", message).at(row.at));
        }
        if row.raw.measurement_seconds.is_some_and(|seconds| !is_rounded_to(seconds, 1e6)) {
            let message = "The measured seconds have more decimals than the tool writes.";
            findings.push(Finding::suspicious("unexpected_digits", message).at(row.at));
        }
    }
    for row in &input.document.prefill {
        let rate = row.tok_per_sec.is_some_and(|rate| rate.fract() != 0.0);
        let seconds = row.ttft_seconds.is_some_and(|seconds| !is_rounded_to(seconds, 1e3));
        if rate || seconds {
            let at = CellRef { phase: Phase::Prefill, context_tokens: row.context_tokens, concurrency: 1 };
            let message = "A prefill rate or time has more decimals than the tool writes.";
            findings.push(Finding::suspicious("unexpected_digits", message).at(at));
        }
    }
    findings
}

/// Whether a number is a whole multiple of one over `scale`. Reading the decimals and scaling them are off by half a unit in the last place
/// each; any wider tolerance would call an honest total of 100,000 tok/s round.
fn is_rounded_to(value: f64, scale: f64) -> bool {
    let scaled = value * scale;
    (scaled - scaled.round()).abs() <= 2.0 * f64::EPSILON * scaled.abs()
}
