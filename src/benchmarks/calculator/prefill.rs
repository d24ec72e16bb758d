//! Prefill: `t(L) = L · (linear / (p · peak) + exchange) + L² / 2 · attention / (p_att · peak)`; measured rows give the time per token, which is linear in
//! the prompt (evidence.md 4, I14). Quantised weights are widened before the multiply, so a narrow format does not speed it up by itself.

use super::decode::{best_peak, exchange_seconds_per_token, flops_per_token, usual_peak};
use super::{Kind, Range, Setup};
use crate::benchmarks::matrix::{Matrix, PrefillRow};
use crate::benchmarks::quantization::Quantization;
use crate::catalog::{HardwareModel, Model};

const TERA: f64 = 1e12;
/// Share of the peak reached by the linear layers and by attention.
const LINEAR_EFFICIENCY: f64 = 0.65;
const ATTENTION_EFFICIENCY: f64 = 0.25;
const SPREAD: f64 = 1.9;
/// Query heads are not in the catalog: they are about as wide together as the residual stream.
const OPERATIONS_PER_SCORE: f64 = 4.0;
const INTERPOLATED_SHARE: f64 = 0.10;
const EXTRAPOLATED_SHARE: f64 = 0.25;
/// Beyond this multiple of the measured range nothing is extrapolated.
const REACH: f64 = 2.0;

/// Formats whose kernels compute in 16 bits: nothing narrower bounds their prefill.
const WIDENED: &[&str] = &["fp16", "bf16", "awq-4bit", "gptq-4bit", "bnb-4bit", "exl2-4bpw"];

/// Prompt tokens per second by formula.
pub fn estimate(setup: &Setup<'_>, context: f64) -> Option<Range> {
    let peak = usual_peak(setup.hardware)? * f64::from(setup.gpu_count);
    let linear = flops_per_token(setup.model) / (LINEAR_EFFICIENCY * peak);
    let scores = OPERATIONS_PER_SCORE * f64::from(setup.model.attention_layers) * f64::from(setup.model.hidden_size);
    let attention = scores * context / 2.0 / (ATTENTION_EFFICIENCY * peak);
    let value = 1.0 / (linear + attention + exchange_seconds_per_token(setup));
    let high = (value * SPREAD).min(ceiling(setup.hardware, setup.gpu_count, setup.model, None)?).max(value);
    Some(Range { low: value / SPREAD, value, high })
}

/// Prompt tokens per second that no engine passes: the peak of the best precision that the format may be computed in.
pub fn ceiling(hardware: &HardwareModel, gpu_count: u32, model: &Model, quantization: Option<&Quantization>) -> Option<f64> {
    let widened = quantization.is_some_and(|quantization| WIDENED.contains(&quantization.as_str()));
    let half =
        [hardware.fp16_dense_tflops, hardware.bf16_dense_tflops, hardware.fp32_tflops].into_iter().flatten().fold(0.0, f64::max) * TERA;
    let peak = if widened && half > 0.0 { half } else { best_peak(hardware)? };
    Some(peak * f64::from(gpu_count) / flops_per_token(model))
}

/// Seconds per prompt token from measured rows, with whether the context lies between them; `None` beyond twice their range.
fn seconds_per_token(rows: &[(f64, f64)], context: f64) -> Option<(f64, bool)> {
    let below = rows.iter().rev().find(|(at, _)| *at <= context);
    let above = rows.iter().find(|(at, _)| *at >= context);
    let line = |a: &(f64, f64), b: &(f64, f64)| {
        let share = if b.0 > a.0 { (context - a.0) / (b.0 - a.0) } else { 0.0 };
        a.1 + (b.1 - a.1) * share
    };
    match (below, above) {
        (Some(a), Some(b)) => Some((line(a, b), true)),
        (Some(last), None) if context <= last.0 * REACH => {
            let before = rows.iter().rev().nth(1).unwrap_or(last);
            Some((line(before, last).max(last.1), false))
        }
        (None, Some(first)) => {
            let next = rows.get(1).unwrap_or(first);
            Some((line(first, next).max(first.1 / REACH), false))
        }
        _ => None,
    }
}

/// Measured rows as (context, seconds per prompt token), in order of context.
fn measured_rows(rows: &[PrefillRow]) -> Vec<(f64, f64)> {
    let point = |row: &PrefillRow| {
        let rate = row.tokens_per_second.filter(|rate| *rate > 0.0)?;
        Some((super::real(row.context_tokens), 1.0 / rate))
    };
    rows.iter().filter_map(point).collect()
}

/// Prompt tokens per second from a matrix of the same model and hardware.
pub fn anchored(matrix: &Matrix, context: u64) -> Option<(Range, Kind)> {
    let rows = measured_rows(&matrix.prefill);
    if let Some(row) = matrix.prefill.iter().find(|row| row.context_tokens == context)
        && let Some(rate) = row.tokens_per_second.filter(|rate| *rate > 0.0)
    {
        return Some((Range::exact(rate), Kind::Measured));
    }
    between(&rows, context)
}

/// Prompt tokens per second at a context between rows of (context, seconds per prompt token), or a little beyond them.
pub fn between(rows: &[(f64, f64)], context: u64) -> Option<(Range, Kind)> {
    let (seconds, inside) = seconds_per_token(rows, super::real(context))?;
    let (kind, share) = if inside { (Kind::Interpolated, INTERPOLATED_SHARE) } else { (Kind::Extrapolated, EXTRAPOLATED_SHARE) };
    Some((Range::around(1.0 / seconds, share), kind))
}
