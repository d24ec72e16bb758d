//! I10, I11, I16–I19: relations with a tolerance. Honest engines break each of them (evidence.md 4 E), so most are notes; a cell far outside
//! what any honest document has shown is suspicious.

use super::{CellRef, Finding, Input, Phase, Row, Severity};
use crate::benchmarks::matrix::{Cell, CellStatus};

/// Honest documents have shown 0.44 to 1.54 (evidence.md 0); an echo or a scaled total lies far outside.
const STREAM_SHARE_USUAL: std::ops::RangeInclusive<f64> = 0.70..=1.40;
const STREAM_SHARE_POSSIBLE: std::ops::RangeInclusive<f64> = 0.25..=4.0;
const RECIPROCAL_USUAL: std::ops::RangeInclusive<f64> = 0.75..=1.5;
const SERVER_SHARE_USUAL: std::ops::RangeInclusive<f64> = 0.97..=1.03;
/// Between what a counter is read for and its reading, at most, on a busy computer.
const COUNTER_DELAY_SECONDS: f64 = 0.15;
const TREND_TOLERANCE: f64 = 0.05;
/// Honest documents have shown 1.14 over contexts (with speculation) and 0.97 over levels; windows too short to average a stall out say nothing.
const RISE_WITH_CONTEXT_POSSIBLE: f64 = 1.3;
const RISE_WITH_CONCURRENCY_POSSIBLE: f64 = 1.25;
const STEADY_WINDOW_SECONDS: f64 = 8.0;
/// No engine makes a step of 16 long requests in the time of one short one.
const FLAT_RATIO: f64 = 1.03;
const FLAT_FROM_CONCURRENCY: u32 = 16;
const FLAT_FROM_CONTEXT: u64 = 32_768;
/// Shortest time between tokens that any engine reaches, in seconds.
const ITL_MIN_SECONDS: f64 = 0.000_2;

pub(super) fn check(input: &Input<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for row in input.measured() {
        findings.extend(streams_and_total(input, row));
        findings.extend(reciprocal(row));
        findings.extend(server_tokens(row));
        findings.extend(overreported(input, row));
        findings.extend(fastest(row));
    }
    findings.extend(lockstep(input));
    findings.extend(monotone(input));
    findings.extend(scaling(input));
    findings.extend(flat(input));
    findings
}

/// I10: per-request median × active requests ÷ total.
fn streams_and_total(input: &Input<'_>, row: Row<'_>) -> Option<Finding> {
    let (median, total) = (row.raw.output_tps_per_user.p50?, row.raw.aggregate_tps?);
    let gauged = row.raw.effective_concurrency.filter(|active| *active > 0.0 && input.has_metrics());
    let active = gauged.unwrap_or(f64::from(row.at.concurrency));
    let share = median * active / total;
    // The streams' lives hold the warm-up; the longer the first token takes, the more (evidence.md 4, note on I10).
    let window = row.raw.measurement_seconds.filter(|s| *s > 0.0).unwrap_or(f64::MAX);
    let allowed = 0.03 + 0.75 * row.raw.ttft.p50.unwrap_or_default() / window;
    if STREAM_SHARE_USUAL.contains(&share) || (1.0 / share - 1.0).abs() <= allowed {
        return None;
    }
    let severity = if STREAM_SHARE_POSSIBLE.contains(&share) { Severity::Note } else { Severity::Suspicious };
    let message = "The streams' own speeds and the total do not fit together well.";
    Some(Finding::new("streams_and_total", severity, message).at(row.at).values("about 1", format!("{share:.3}")))
}

/// I11: the median time between tokens and the median speed are near each other's reciprocals.
fn reciprocal(row: Row<'_>) -> Option<Finding> {
    let (itl, speed) = (row.raw.inter_token_latency.p50?, row.raw.output_tps_per_user.p50?);
    let product = itl * speed;
    (!RECIPROCAL_USUAL.contains(&product)).then(|| {
        let message = "The median speed is far from one over the median time between tokens.";
        Finding::note("median_reciprocal", message).at(row.at).values("about 1", format!("{product:.3}"))
    })
}

/// I17: the engine's own counter of generated tokens agrees with what the client counted.
fn server_tokens(row: Row<'_>) -> Option<Finding> {
    let (server, client) = (row.raw.server_output_tokens.filter(|n| *n > 0.0)?, row.raw.client_output_tokens.filter(|n| *n > 0.0)?);
    let share = server / client;
    // A few tokens lie between the two clocks' edges, more when the client's computer is busy; in a short window they are several per cent.
    let rate = row.raw.aggregate_tps.unwrap_or(0.0).max(0.0);
    let few = (8.0 + 2.0 * f64::from(row.at.concurrency)).max(COUNTER_DELAY_SECONDS * rate);
    if SERVER_SHARE_USUAL.contains(&share) || (server - client).abs() <= few {
        return None;
    }
    // More at the server than at the client: chunks were counted, or other clients were served. The cell is slower than the engine.
    let severity = if share > 1.0 && !row.counted_by_usage() { Severity::Note } else { Severity::Suspicious };
    let message = "The engine counted another number of tokens than the client.";
    Some(Finding::new("server_tokens_differ", severity, message).at(row.at).values(client, server))
}

/// A proxy that sends usage only at the end of a request: whole answers fall into the window though they began before it (evidence.md 0).
fn overreported(input: &Input<'_>, row: Row<'_>) -> Option<Finding> {
    let (tokens, max_tokens) = (row.raw.client_output_tokens?, input.document.metadata.max_tokens.filter(|n| *n > 0)?);
    let completed = row.raw.completed_request_count.unwrap_or_default() > 0.0;
    let continuous = row.raw.aggregate_source.as_deref() == Some("openai_continuous_usage");
    #[expect(clippy::cast_precision_loss, reason = "an output limit is far below 2^52")]
    let whole_answers = tokens > 0.0 && tokens % max_tokens as f64 == 0.0;
    let short = row.raw.measurement_wall_seconds.unwrap_or_default() - row.raw.measurement_seconds.unwrap_or_default() > 0.03;
    let proxy = input.document.metadata.engine.as_deref() == Some("openai_proxy");
    (row.is_window() && continuous && completed && whole_answers && (proxy || short)).then(|| {
        let message =
            "Only whole answers were counted: the engine reports usage at the end of a request, and the tool over-reports such a cell.";
        Finding::suspicious("usage_overreported", message).at(row.at)
    })
}

fn fastest(row: Row<'_>) -> Option<Finding> {
    let itl = row.raw.inter_token_latency.p50.filter(|itl| *itl > 0.0)?;
    (itl < ITL_MIN_SECONDS).then(|| {
        let message = "Tokens follow each other faster than any engine makes them.";
        Finding::suspicious("too_fast", message).at(row.at).values(format!("at least {ITL_MIN_SECONDS}"), itl)
    })
}

/// Chunks of several tokens, or the engine's own counters of guesses.
fn speculation(row: &Row<'_>) -> bool {
    let chunked = row.raw.chunk_inter_token_latency.p50.zip(row.raw.inter_token_latency.p50).is_some_and(|(c, i)| c > 1.05 * i);
    chunked || row.raw.server_spec_accept_rate.is_some_and(|rate| rate > 0.0)
}

/// I16: without speculation every step gives each active request one token, so the count is a multiple of the active requests.
fn lockstep(input: &Input<'_>) -> Option<Finding> {
    let residues: Vec<bool> = input
        .measured()
        .filter(|row| row.is_window() && !speculation(row) && row.raw.completed_request_count == Some(0.0))
        .filter_map(|row| {
            let (tokens, active) = (row.raw.client_output_tokens?, row.raw.effective_concurrency?);
            let steady = active >= 4.0 && active.fract() == 0.0;
            let residue = tokens % active;
            steady.then_some(residue.min(active - residue) <= 1.0)
        })
        .collect();
    let hits = residues.iter().filter(|hit| **hit).count();
    (residues.len() >= 6 && hits * 2 < residues.len()).then(|| {
        let message = "Output tokens are seldom a multiple of the active requests, as a steady batch would make them.";
        Finding::note("lockstep", message).values(format!("most of {}", residues.len()), hits)
    })
}

/// I18: the total does not fall with concurrency nor rise with context.
fn monotone(input: &Input<'_>) -> Vec<Finding> {
    let valid: Vec<&Cell> = input.matrix.decode.iter().filter(|cell| cell.status == CellStatus::Valid).collect();
    let total = |cell: &Cell| cell.total_tokens_per_second.unwrap_or_default();
    let at = |cell: &Cell| CellRef { phase: Phase::Decode, context_tokens: cell.context_tokens, concurrency: cell.concurrency };
    let mut findings = Vec::new();
    for pair in valid.windows(2) {
        let [before, after] = pair else { continue };
        if before.context_tokens == after.context_tokens && total(after) < total(before) * (1.0 - TREND_TOLERANCE) {
            let message = "The total falls with more requests.";
            findings.push(Finding::note("total_falls_with_concurrency", message).at(at(after)));
        }
    }
    for cell in &valid {
        let shorter = valid.iter().filter(|other| other.concurrency == cell.concurrency && other.context_tokens < cell.context_tokens);
        let slowest = shorter.map(|other| total(other)).fold(f64::INFINITY, f64::min);
        if total(cell) > slowest * (1.0 + TREND_TOLERANCE) {
            let possible = total(cell) <= slowest * RISE_WITH_CONTEXT_POSSIBLE || !is_steady(input);
            let severity = if possible { Severity::Note } else { Severity::Suspicious };
            findings.push(Finding::new("total_rises_with_context", severity, "The total rises with a longer context.").at(at(cell)));
        }
    }
    findings
}

/// Whether every cell is long enough and free of speculation, whose luck depends on the text.
fn is_steady(input: &Input<'_>) -> bool {
    let mut rows = input.measured().filter(|row| row.at.phase == Phase::Decode);
    rows.all(|row| row.is_window() && !speculation(&row) && row.raw.measurement_seconds.is_some_and(|s| s >= STEADY_WINDOW_SECONDS))
}

/// I19: requests share the engine, so each is at most as fast as with fewer beside it.
fn scaling(input: &Input<'_>) -> Vec<Finding> {
    let valid: Vec<&Cell> = input.matrix.decode.iter().filter(|cell| cell.status == CellStatus::Valid).collect();
    let each = |cell: &Cell| cell.total_tokens_per_second.unwrap_or_default() / f64::from(cell.concurrency);
    let mut findings = Vec::new();
    for cell in valid.iter().filter(|_| is_steady(input)) {
        let fewer = valid.iter().filter(|other| other.context_tokens == cell.context_tokens && other.concurrency < cell.concurrency);
        let slowest = fewer.map(|other| each(other)).fold(f64::INFINITY, f64::min);
        if each(cell) > slowest * RISE_WITH_CONCURRENCY_POSSIBLE {
            let at = CellRef { phase: Phase::Decode, context_tokens: cell.context_tokens, concurrency: cell.concurrency };
            let message = "With more requests each of them is faster than with fewer.";
            let finding = Finding::suspicious("speed_rises_with_concurrency", message).at(at);
            findings.push(finding.values(format!("at most {slowest:.1}"), format!("{:.1}", each(cell))));
        }
    }
    findings
}

/// I15, I19: an echo takes no time for contexts or for company.
fn flat(input: &Input<'_>) -> Option<Finding> {
    let valid = || input.matrix.decode.iter().filter(|cell| cell.status == CellStatus::Valid);
    let loaded =
        valid().any(|cell| cell.concurrency >= FLAT_FROM_CONCURRENCY) && valid().any(|cell| cell.context_tokens >= FLAT_FROM_CONTEXT);
    let light = valid().any(|cell| cell.concurrency == 1) && valid().any(|cell| cell.context_tokens == 0);
    let each = valid().filter_map(|cell| Some(cell.total_tokens_per_second? / f64::from(cell.concurrency)));
    let (least, most) = each.fold((f64::INFINITY, 0.0_f64), |(least, most), speed| (least.min(speed), most.max(speed)));
    (loaded && light && most <= least * FLAT_RATIO && is_steady(input)).then(|| {
        let message = "Every request has the same speed whatever the context and however many run: nothing was computed.";
        Finding::suspicious("speed_flat", message).values("slower under load", format!("{least:.1} to {most:.1}"))
    })
}
