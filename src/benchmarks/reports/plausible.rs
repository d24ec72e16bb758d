//! What a reported speed can be at most. Pure; the bound is the calculator's ceiling with its margin for what is not stated, as for the
//! physical checks of runs.

use crate::benchmarks::calculator::ceiling::TOKENS_PER_STEP_MAX;

/// No engine gives one stream a token in less than a fifth of a millisecond.
const PER_REQUEST_MAX: f64 = 5_000.0;

/// What is known of the bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// No bound is known, or it holds.
    Within,
    /// Above what one token a step allows: speculation, or an error.
    Above,
    /// Above what any speculation allows; the most that would have been believed.
    Impossible(f64),
}

impl Bound {
    /// `total` of all requests together, against the bound without speculation where one is known.
    pub fn of(total: f64, concurrency: u32, bound: Option<f64>) -> Self {
        let any_engine = PER_REQUEST_MAX * f64::from(concurrency);
        let most = bound.map_or(any_engine, |bound| (bound * TOKENS_PER_STEP_MAX).min(any_engine));
        match bound {
            _ if total > most => Self::Impossible(most),
            Some(bound) if total > bound => Self::Above,
            _ => Self::Within,
        }
    }
}
