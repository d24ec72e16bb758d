//! Comparing what was measured with what the matrix says.

use super::{Expected, Figure, Quantity, Sample, Status};
use crate::measure::spot::Answers;

/// A machine that decodes more than so many times faster than its matrix is not the one that was measured, or has another model.
pub const FASTER_FACTOR_MAX: f64 = 2.0;
/// Shares of the text per token that the engine counts for prompts: text that is counted twice has half of it.
const TEXT_SHARE_MIN: f64 = 0.45;
/// What a busy network adds to a single answer, beyond the share.
const TTFT_SLACK_SECONDS: f64 = 0.03;

/// Shares by which a machine may be slower than its matrix.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerances {
    pub time_between_tokens: f64,
    pub total: f64,
    pub cold_ttft: f64,
    /// Share of the streams that must answer right.
    pub right_answers: f64,
}

/// A cell as the server measured it.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    pub context_tokens: u64,
    pub concurrency: u32,
    pub total_tokens_per_second: f64,
    pub inter_token_latency_seconds: f64,
    /// Cold, with the way there and back.
    pub ttft_seconds: Option<f64>,
    /// The way there and back.
    pub latency_seconds: f64,
    pub answers: Answers,
    pub text_bytes_per_token: Option<f64>,
    /// Characters of plain text for each token of a prompt.
    pub chars_per_prompt_token: f64,
    /// Why the cell decides nothing.
    pub inconclusive: Option<String>,
}

pub fn compare(measured: &Measured, expected: &Expected, tolerances: &Tolerances) -> Sample {
    let mut figures = Vec::new();
    if measured.inconclusive.is_none() {
        if measured.concurrency == 1 {
            let (itl, wanted) = (measured.inter_token_latency_seconds, 1.0 / expected.total_tokens_per_second);
            let is_too_fast = itl * FASTER_FACTOR_MAX < wanted;
            let figure = time(Quantity::TimeBetweenTokens, itl, wanted, tolerances.time_between_tokens, 0.0);
            figures.push(Figure { within: figure.within && !is_too_fast, ..figure });
        } else {
            figures.push(rate(measured.total_tokens_per_second, expected.total_tokens_per_second, tolerances.total));
        }
        if let Some((ttft, wanted)) = measured.ttft_seconds.zip(expected.ttft_seconds) {
            let reading = (ttft - measured.latency_seconds).max(0.0);
            // Never too fast: an engine is often cold at the first prompt of a run, and nobody has seen ours.
            let figure = time(Quantity::ColdTtft, reading, wanted, tolerances.cold_ttft, TTFT_SLACK_SECONDS);
            figures.push(Figure { is_faster: figure.is_faster && !expected.ttft_is_bound, ..figure });
        }
    }
    let is_inflated = measured.text_bytes_per_token.is_some_and(|bytes| bytes < TEXT_SHARE_MIN * measured.chars_per_prompt_token);
    let within = measured.inconclusive.is_none() && !is_inflated && figures.iter().all(|figure| figure.within);
    Sample {
        context_tokens: measured.context_tokens,
        concurrency: measured.concurrency,
        tries: 1,
        figures,
        answers: measured.answers,
        is_inflated,
        within,
        inconclusive: measured.inconclusive.clone(),
    }
}

fn time(quantity: Quantity, measured: f64, expected: f64, tolerance: f64, slack: f64) -> Figure {
    Figure {
        quantity,
        measured: measured * 1_000.0,
        expected: expected * 1_000.0,
        tolerance,
        within: measured <= expected * (1.0 + tolerance) + slack,
        is_faster: measured + slack < expected * (1.0 - tolerance),
    }
}

fn rate(measured: f64, expected: f64, tolerance: f64) -> Figure {
    Figure {
        quantity: Quantity::TotalTokensPerSecond,
        measured,
        expected,
        tolerance,
        within: measured >= expected * (1.0 - tolerance) && measured <= expected * FASTER_FACTOR_MAX,
        is_faster: measured > expected * (1.0 + tolerance),
    }
}

/// What follows from all samples together.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    pub outcome: Status,
    pub answers: Answers,
    /// In words for the host; none when it agrees.
    pub detail: Option<String>,
}

/// Agreed, disagreed or failed. A single stream has to be among what was measured, and half of the cells.
pub fn judge(samples: &[Sample], tolerances: &Tolerances) -> Judgement {
    let mut answers = Answers::default();
    samples.iter().for_each(|sample| answers.add(sample.answers));
    let conclusive: Vec<&Sample> = samples.iter().filter(|sample| sample.inconclusive.is_none()).collect();
    let judgement = |outcome, detail: String| Judgement { outcome, answers, detail: (!detail.is_empty()).then_some(detail) };
    let faults: Vec<String> = conclusive.iter().filter(|sample| !sample.within).map(|sample| fault(sample)).collect();
    if !faults.is_empty() {
        return judgement(Status::Disagreed, format!("{}.", faults.join("; ")));
    }
    let judged = answers.right + answers.wrong;
    if judged > 0 && f64::from(answers.right) < tolerances.right_answers * f64::from(judged) {
        let detail = format!("{} of {judged} streams did not answer what they were asked about their prompt.", answers.wrong);
        return judgement(Status::Disagreed, detail);
    }
    let has_single = conclusive.iter().any(|sample| sample.concurrency == 1);
    if judged == 0 || !has_single || conclusive.len() * 2 < samples.len() {
        let why = samples.iter().find_map(|sample| sample.inconclusive.clone());
        return judgement(Status::Failed, why.unwrap_or_else(|| "No stream came far enough to answer its question.".to_owned()));
    }
    judgement(Status::Agreed, String::new())
}

fn fault(sample: &Sample) -> String {
    let place = format!("at {} tokens of context x {}", sample.context_tokens, sample.concurrency);
    if sample.is_inflated {
        return format!("{place} more tokens were counted than came");
    }
    let figures = sample.figures.iter().filter(|figure| !figure.within).map(|figure| {
        let (name, unit) = match figure.quantity {
            Quantity::TimeBetweenTokens => ("the time between tokens", "ms"),
            Quantity::TotalTokensPerSecond => ("the total", "tokens/s"),
            Quantity::ColdTtft => ("the time to the first token", "ms"),
        };
        format!("{name} was {:.1} {unit}, the matrix says {:.1}", figure.measured, figure.expected)
    });
    format!("{place} {}", figures.collect::<Vec<_>>().join(" and "))
}
