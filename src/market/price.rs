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
/// (design.md, Decisions). `None` where no token comes or no number fits.
pub fn per_million_output_tokens(price_per_hour: Money, speed: CellSpeed, users: i32) -> Option<Money> {
    // Speed per user is total ÷ concurrency. Multiplying the price instead of dividing the speed keeps the fraction exact.
    let price = price_per_hour.micros().checked_mul(i64::from(speed.concurrency))?;
    let tokens = i128::from(speed.total_micro_tokens_per_second).checked_mul(i128::from(users))?.checked_mul(SECONDS_PER_HOUR)?;
    Money::usd_micros(price).per_million_tokens(tokens)
}

/// The same in SQL, so that a search can sort by it: `per_million.micros`, given `l.price_per_hour_micros`, `cell.concurrency` and
/// `cell.total_tokens_per_second`, for `users` (an expression). A property test holds the two together.
pub fn per_million_sql(users: &str) -> String {
    format!(
        "CROSS JOIN LATERAL (
            SELECT l.price_per_hour_micros::numeric * cell.concurrency * 1000000000000 AS dividend,
                   round(cell.total_tokens_per_second * 1e6)::bigint::numeric * {users} * 3600 AS divisor) amounts
         CROSS JOIN LATERAL (SELECT div(amounts.dividend, amounts.divisor) AS whole) quotient
         CROSS JOIN LATERAL (SELECT 2 * (amounts.dividend - quotient.whole * amounts.divisor) AS twice) remainder
         CROSS JOIN LATERAL (
            SELECT least(quotient.whole + CASE WHEN remainder.twice > amounts.divisor
                             OR (remainder.twice = amounts.divisor AND mod(quotient.whole, 2) = 1) THEN 1 ELSE 0 END,
                         9223372036854775807)::bigint AS micros) per_million"
    )
}
