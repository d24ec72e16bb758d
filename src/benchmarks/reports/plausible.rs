//! What a reported speed can be at most. Pure; the formulas are the calculator's, as for the physical checks of runs.

use crate::{
    benchmarks::{
        calculator::{KvFormat, decode},
        quantization::Quantization,
    },
    catalog::{HardwareModel, Model},
};

/// Tokens that speculation may give each request in a step.
pub const SPECULATION_MAX: f64 = 16.0;
/// Overclocked memory, and rows of the catalog that are uncertain.
const ROOM: f64 = 1.15;
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

/// Tokens per second of all requests together that this hardware can do at most without speculation; `None` where the catalog does not know.
pub fn total_ceiling(
    hardware: &HardwareModel,
    gpu_count: u32,
    model: &Model,
    quantization: &Quantization,
    kv: Option<KvFormat>,
    concurrency: u32,
    context_tokens: f64,
) -> Option<f64> {
    let setup = decode::least(hardware, gpu_count, model, Some(quantization), kv);
    decode::ceiling(&setup, concurrency, context_tokens).map(|ceiling| ceiling * ROOM)
}

impl Bound {
    /// `total` of all requests together, against the ceiling where one is known.
    pub fn of(total: f64, concurrency: u32, ceiling: Option<f64>) -> Self {
        let any_engine = PER_REQUEST_MAX * f64::from(concurrency);
        let most = ceiling.map_or(any_engine, |ceiling| (ceiling * SPECULATION_MAX).min(any_engine));
        match ceiling {
            _ if total > most => Self::Impossible(most),
            Some(ceiling) if total > ceiling => Self::Above,
            _ => Self::Within,
        }
    }
}
