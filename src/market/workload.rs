//! A workload as a renter asks for it, and what a measured cell says about it. Pure.

use super::price::{CellSpeed, per_million_output_tokens};
use crate::base::Money;
pub use crate::base::units::{CONCURRENCY_MAX, CONTEXT_TOKENS_MAX as CONTEXT_MAX, parse_context};

/// "This model, this much context, this many users."
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Slug of the catalog, or a name that runs were measured under.
    pub model: String,
    pub context_tokens: i32,
    pub concurrency: i32,
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
