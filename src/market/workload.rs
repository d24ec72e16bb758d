//! A workload as a renter asks for it, and what a measured cell says about it. Pure.

use super::price::{CellSpeed, per_million_output_tokens};
use crate::base::Money;

/// Largest context and concurrency that may be asked for.
pub const CONTEXT_MAX: i32 = 16_777_216;
pub const CONCURRENCY_MAX: i32 = 4_096;

/// "This model, this much context, this many users."
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Slug of the catalog, or a name that runs were measured under.
    pub model: String,
    pub context_tokens: i32,
    pub concurrency: i32,
}

/// `16384`, `16k` (1024 each) or `1m`.
pub fn parse_context(text: &str) -> Option<i32> {
    let lower = text.to_ascii_lowercase();
    let (digits, factor) = match lower.as_bytes().last()? {
        b'k' => (lower.strip_suffix('k')?, 1_024),
        b'm' => (lower.strip_suffix('m')?, 1_048_576),
        _ => (lower.as_str(), 1),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse::<i32>().ok()?.checked_mul(factor).filter(|tokens| *tokens <= CONTEXT_MAX)
}

/// A measured rate as the integer that prices are made of. The one place where a rate meets money: IEEE multiplication and rounding to even,
/// as PostgreSQL's `round(x * 1e6)` does. `None` for what is no rate.
pub fn micro_tokens_per_second(tokens_per_second: f64) -> Option<i64> {
    let micros = (tokens_per_second * 1e6).round_ties_even();
    // Within the integers that an f64 holds exactly, so the cast loses nothing.
    #[expect(clippy::as_conversions, clippy::cast_possible_truncation, reason = "bounded by the range just tested")]
    (1.0..=9_007_199_254_740_992.0).contains(&micros).then_some(micros as i64)
}

/// One decode cell of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredCell {
    pub context_tokens: i32,
    pub concurrency: i32,
    pub total_tokens_per_second: f64,
    pub ttft_ms: Option<f64>,
    pub cold_ttft_ms: Option<f64>,
}

impl MeasuredCell {
    pub fn tokens_per_second_per_user(&self) -> f64 {
        self.total_tokens_per_second / f64::from(self.concurrency)
    }

    /// What 10^6 output tokens cost `users` at this speed.
    pub fn price_per_million_output_tokens(&self, price_per_hour: Money, users: i32) -> Option<Money> {
        let total_micro_tokens_per_second = micro_tokens_per_second(self.total_tokens_per_second)?;
        per_million_output_tokens(price_per_hour, CellSpeed { total_micro_tokens_per_second, concurrency: self.concurrency }, users)
    }
}

/// The lightest cell at least as heavy as asked: smallest context, then smallest concurrency. `queries::search` does the same in SQL; this is
/// its definition, which a test compares with it.
pub fn lightest_at_least(cells: &[MeasuredCell], context_tokens: i32, concurrency: i32) -> Option<&MeasuredCell> {
    let heavy_enough = cells.iter().filter(|cell| cell.context_tokens >= context_tokens && cell.concurrency >= concurrency);
    heavy_enough.min_by_key(|cell| (cell.context_tokens, cell.concurrency))
}
