//! What a million output tokens cost. Integers only.
#![deny(clippy::float_arithmetic, clippy::as_conversions)]

use crate::base::Money;

const SECONDS_PER_HOUR: i128 = 3_600;

/// The speed of a measured cell, all users together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellSpeed {
    /// Tokens × 10^6 per second, of the whole cell.
    pub total_micro_tokens_per_second: i64,
    /// Users that were measured at once.
    pub concurrency: i32,
}

/// The price of 10^6 output tokens for `users` at once: price per hour × 10^6 ÷ (speed per user × users × 3600), half-even at six decimals
/// (design.md, Decisions). `queries::search` computes the same in SQL, to sort by it. `None` where no token comes or no number fits.
pub fn per_million_output_tokens(price_per_hour: Money, speed: CellSpeed, users: i32) -> Option<Money> {
    // Speed per user is total ÷ concurrency. Multiplying the price instead of dividing the speed keeps the fraction exact.
    let price = price_per_hour.micros().checked_mul(i64::from(speed.concurrency))?;
    let tokens = i128::from(speed.total_micro_tokens_per_second).checked_mul(i128::from(users))?.checked_mul(SECONDS_PER_HOUR)?;
    Money::usd_micros(price).per_million_tokens(tokens)
}
