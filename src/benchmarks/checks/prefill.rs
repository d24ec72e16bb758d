//! I12, I13 and the set of prefill rows.

use super::{CellRef, Finding, Input, Phase, Severity};
use crate::benchmarks::document::RawPrefill;
use crate::benchmarks::log;
use crate::benchmarks::matrix::{Cell, CellStatus};

/// Rates are rounded to whole tokens per second, times to a millisecond: half a unit each.
const RATE_ROUNDING: f64 = 0.5;
const TIME_ROUNDING: f64 = 0.000_5;
/// Prompts longer than this get no prefill row of their own.
const CONTEXT_MAX: u64 = 131_072;
const CONTEXT_RESERVE: u64 = 64;
const RESIDUAL_TOKENS: f64 = 15.0;
const RESIDUAL_SHARE: f64 = 0.002;
/// Beyond this no tokenizer bends the line; contexts were renamed or prompts changed.
const RESIDUAL_SHARE_POSSIBLE: f64 = 0.02;
/// The prompts of one context differ by a few tokens.
const PROMPT_SPREAD_TOKENS: f64 = 64.0;
const PROMPT_SPREAD_SHARE: f64 = 0.02;
/// From here on a fixed cost per prompt no longer hides how the rate falls with its length.
const LONG_PROMPT_TOKENS: f64 = 8_000.0;
const RATE_GROWTH_MAX: f64 = 2.0;
/// A prompt is this share of its context at most and at least (evidence.md 4 I13, with room).
const PROMPT_SHARE: std::ops::RangeInclusive<f64> = 0.8..=1.3;
const PROMPT_SHARE_FROM_TOKENS: u64 = 4_096;

pub(super) fn check(input: &Input<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let rows = || input.document.prefill.iter().filter(|row| row.samples != Some(0.0));
    for row in rows() {
        findings.extend(rate(input, row));
        findings.extend(copies(row));
        findings.extend(prompt_share(row));
        findings.extend(cached(row));
    }
    findings.extend(linear(&rows().collect::<Vec<_>>()));
    findings.extend(faster_when_longer(&rows().collect::<Vec<_>>()));
    findings.extend(decode_prompts(input));
    findings.extend(missing_rows(input));
    findings
}

fn at(row: &RawPrefill) -> CellRef {
    CellRef { phase: Phase::Prefill, context_tokens: row.context_tokens, concurrency: 1 }
}

/// Rate × TTFT = prompt tokens, within what rounding leaves open.
fn rate(input: &Input<'_>, row: &RawPrefill) -> Option<Finding> {
    let (rate, ttft) = (row.tok_per_sec?, row.ttft_seconds?);
    let Some(prompt) = row.prompt_tokens else {
        let message = "A prefill row does not say how many tokens the prompt had.";
        let missing = input.era.must_have_window() && !input.document.cells.is_empty();
        return missing.then(|| Finding::new("prefill_incomplete", input.exact, message).at(at(row)));
    };
    // What both roundings leave open together, also for a prompt of few milliseconds; a hundredth on top.
    let rounded = if rate > 0.0 && ttft > 0.0 { rate * TIME_ROUNDING + RATE_ROUNDING * (ttft + TIME_ROUNDING) } else { 0.0 };
    if prompt > 0.0 && (rate * ttft - prompt).abs() <= rounded * 1.01 + 1.0 {
        return None;
    }
    // A mean over several samples is not the quotient of the means.
    let averaged = row.samples.is_some_and(|samples| samples > 1.0);
    let close = averaged && (rate * ttft - prompt).abs() <= 0.1 * prompt;
    let severity = if close { Severity::Note } else { input.exact };
    let message = "Prefill rate times TTFT does not give the prompt's tokens.";
    Some(Finding::new("prefill_rate_mismatch", severity, message).at(at(row)).values(prompt, rate * ttft))
}

/// The client's own numbers are repeated where no server validated them.
fn copies(row: &RawPrefill) -> Option<Finding> {
    let client = matches!(row.method.as_deref(), Some("integrated_scout" | "scout_only" | "client"));
    let differ = |a: Option<f64>, b: Option<f64>| a.is_some() && b.is_some() && a != b;
    let scout = matches!(row.method.as_deref(), Some("integrated_scout" | "scout_only"));
    let wrong = scout && row.samples.is_some_and(|samples| samples != 1.0)
        || differ(row.ttft_seconds, row.client_ttft_seconds)
        || differ(row.tok_per_sec, row.client_tok_per_sec)
        || differ(row.ttft_seconds, row.prefill_seconds);
    (client && wrong).then(|| {
        let message = "A prefill row has two values for the same time or rate.";
        Finding::suspicious("prefill_copies_differ", message).at(at(row))
    })
}

fn prompt_share(row: &RawPrefill) -> Option<Finding> {
    let prompt = row.prompt_tokens.filter(|_| row.context_tokens >= PROMPT_SHARE_FROM_TOKENS)?;
    #[expect(clippy::cast_precision_loss, reason = "contexts are far below 2^52")]
    let share = prompt / row.context_tokens as f64;
    (!PROMPT_SHARE.contains(&share)).then(|| {
        let message = "The prompt was much shorter or longer than the context it stands for.";
        Finding::suspicious("prompt_length", message).at(at(row)).values(row.context_tokens, prompt)
    })
}

fn cached(row: &RawPrefill) -> Option<Finding> {
    let (cached, prompt) = (row.cached_tokens?, row.prompt_tokens?);
    (cached > 0.1 * prompt).then(|| {
        let message = "A part of the prompt came from the engine's cache; the rate is not that of a cold prompt.";
        Finding::suspicious("prefill_cached", message).at(at(row)).values("0", cached)
    })
}

/// One ratio of characters to tokens and a constant template make prompt tokens linear in the context.
fn linear(rows: &[&RawPrefill]) -> Option<Finding> {
    #[expect(clippy::cast_precision_loss, reason = "contexts are far below 2^52")]
    let points: Vec<(f64, f64)> =
        rows.iter().filter_map(|row| row.prompt_tokens.filter(|p| *p > 0.0).map(|p| (row.context_tokens as f64, p))).collect();
    if points.len() < 4 {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "a few rows")]
    let n = points.len() as f64;
    let (mean_x, mean_y) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let variance: f64 = points.iter().map(|p| (p.0 - mean_x).powi(2)).sum();
    let slope = points.iter().map(|p| (p.0 - mean_x) * (p.1 - mean_y)).sum::<f64>() / variance;
    let off = |p: &(f64, f64)| (p.1 - mean_y - slope * (p.0 - mean_x)).abs();
    let worst = points.iter().max_by(|a, b| off(a).total_cmp(&off(b)))?;
    let severity = if off(worst) > RESIDUAL_SHARE_POSSIBLE * worst.1 { Severity::Suspicious } else { Severity::Note };
    (off(worst) > RESIDUAL_TOKENS.max(RESIDUAL_SHARE * worst.1)).then(|| {
        let message = "The prompts' lengths are not linear in the contexts, as one tokenizer would make them.";
        Finding::new("prompt_not_linear", severity, message).values(worst.1 - off(worst), worst.1)
    })
}

/// I14: attention makes long prompts slower per token, never twice as fast. The first row may hold the engine's own warm-up.
fn faster_when_longer(rows: &[&RawPrefill]) -> Option<Finding> {
    let long = |row: &&&RawPrefill| row.prompt_tokens.is_some_and(|prompt| prompt >= LONG_PROMPT_TOKENS);
    let mut slowest = f64::INFINITY;
    for row in rows.iter().skip(1).filter(long) {
        let rate = row.tok_per_sec.filter(|rate| *rate > 0.0)?;
        if rate > slowest * RATE_GROWTH_MAX {
            let message = "A long prompt was prefilled at more than twice the rate of a shorter one, as only a cache does.";
            let finding = Finding::suspicious("prefill_faster_when_longer", message).at(at(row));
            return Some(finding.values(format!("at most {:.0}", slowest * RATE_GROWTH_MAX), rate));
        }
        slowest = slowest.min(rate);
    }
    None
}

/// A cell's prompts are as long as its context and as the prompt that was prefilled for it.
fn decode_prompts(input: &Input<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for row in input.measured().filter(|row| row.at.context_tokens >= PROMPT_SHARE_FROM_TOKENS) {
        let Some(prompt) = row.raw.input_seq_len_avg.filter(|tokens| *tokens > 0.0) else { continue };
        #[expect(clippy::cast_precision_loss, reason = "contexts are far below 2^52")]
        let context = row.at.context_tokens as f64;
        let same = input.document.prefill.iter().find(|other| other.context_tokens == row.at.context_tokens);
        let prefilled = same.and_then(|other| other.prompt_tokens).filter(|tokens| *tokens > 0.0);
        let spread = |other: f64| (prompt - other).abs() > PROMPT_SPREAD_TOKENS + PROMPT_SPREAD_SHARE * other;
        if !PROMPT_SHARE.contains(&(prompt / context)) || prefilled.is_some_and(spread) {
            let message = "The prompts of a cell do not have the length of its context or of its prefill.";
            findings.push(Finding::suspicious("prompt_length", message).at(row.at).values(prefilled.unwrap_or(context), prompt));
        }
    }
    findings
}

/// Rows that the run's own arguments ask for, and rows nobody asked for.
fn missing_rows(input: &Input<'_>) -> Vec<Finding> {
    let document = input.document;
    let has = |context: u64| document.prefill.iter().any(|row| row.context_tokens == context);
    let skipped = document.metadata.skip_prefill || document.metadata.prefill_mode.as_deref() == Some("skipped");
    let limit = log::max_model_len(document).map_or(CONTEXT_MAX, |len| CONTEXT_MAX.min(len.saturating_sub(CONTEXT_RESERVE)));
    let mut findings = Vec::new();
    if skipped || !input.era.must_have_everything() {
        return findings;
    }
    // The engine's longest context may have left the log with its start: nothing longer than what ran is asked for.
    let ran = |cell: &&Cell| cell.status.is_measured();
    let longest = input.matrix.decode.iter().filter(ran).map(|cell| cell.context_tokens).max().unwrap_or_default();
    let limit = limit.min(longest);
    let failed: Vec<u64> = log::Log::of(document)
        .events()
        .filter_map(|event| if let log::Event::PrefillFailed { context } = event { Some(*context) } else { None })
        .collect();
    let has = |context: u64| has(context) || failed.contains(&log::printed(context));
    if document.metadata.prefill_mode.as_deref() == Some("integrated_decode_scout") {
        // The scout runs with the first cell of a context; where that cell was measured, so was its prefill.
        let scouted = |context: u64| {
            let mut row = input.matrix.decode.iter().filter(|cell| cell.context_tokens == context);
            row.any(|cell| matches!(cell.status, CellStatus::Valid | CellStatus::Queued))
        };
        let contexts = document.metadata.context_lengths.iter().copied();
        for context in contexts.filter(|c| *c > 0 && *c <= limit && scouted(*c) && !has(*c)) {
            let at = CellRef { phase: Phase::Prefill, context_tokens: context, concurrency: 1 };
            let message = "The prefill row of a measured context is missing.";
            findings.push(Finding::suspicious("prefill_row_missing", message).at(at));
        }
    }
    let Some(asked) = document.args.prefill_contexts.as_ref() else { return findings };
    for context in asked.iter().copied().filter(|c| *c > 0 && *c <= limit && !has(*c)) {
        let at = CellRef { phase: Phase::Prefill, context_tokens: context, concurrency: 1 };
        findings.push(Finding::suspicious("prefill_row_missing", "A prefill row that the run was asked for is missing.").at(at));
    }
    findings
}
