//! Drawing the cells: anywhere between the measured ones, off their grid, and off the grid of habit.

use rand::Rng;

use super::super::challenge::{is_usual_concurrency, is_usual_context};
use super::{PlannedCell, Reference};

const CELLS: std::ops::RangeInclusive<usize> = 3..=5;
const TRIES: usize = 200;
/// A smaller context holds little more than the codes that are asked for.
const CONTEXT_MIN: u64 = 512;
/// A cold prompt may take as long to read.
const PREFILL_SECONDS_MAX: f64 = 60.0;

/// What the engine and the server's patience allow.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Limits {
    pub max_model_len: Option<u64>,
    /// 0 when unknown.
    pub kv_tokens: u64,
    pub max_running: Option<u64>,
    /// Tokens that a stream may have beyond its context.
    pub max_tokens: u64,
}

impl Limits {
    fn allow(&self, context: u64, concurrency: u32) -> bool {
        let length = context.saturating_add(self.max_tokens);
        let fits_length = self.max_model_len.is_none_or(|longest| length <= longest);
        let fits_cache = self.kv_tokens == 0 || length.saturating_mul(u64::from(concurrency)) <= self.kv_tokens;
        fits_length && fits_cache && self.max_running.is_none_or(|runs| u64::from(concurrency) <= runs)
    }
}

/// Three to five cells, the first a single stream with a cold prompt where the matrix has such; empty when the matrix has no cell that can be
/// measured again.
pub fn draw(reference: &Reference, limits: &Limits, random: &mut impl Rng) -> Vec<PlannedCell> {
    let cells = reference.cells();
    let allowed: Vec<(u64, u32)> = cells.iter().copied().filter(|(context, level)| limits.allow(*context, *level)).collect();
    let count = random.random_range(CELLS);
    let mut plan: Vec<PlannedCell> = Vec::new();
    for at in 0..count {
        let is_single = at == 0;
        let drawn = (0..TRIES).find_map(|_| one(reference, &cells, limits, is_single, random));
        // A matrix with hardly a cell leaves nothing between them.
        let known = || {
            let single = allowed.iter().filter(|(_, level)| !is_single || *level == 1).copied().collect::<Vec<_>>();
            let place = random.random_range(0..single.len().max(1));
            single
                .get(place)
                .map(|(context_tokens, concurrency)| PlannedCell { context_tokens: *context_tokens, concurrency: *concurrency })
        };
        let cell = drawn.or_else(known);
        plan.extend(cell.filter(|cell| !plan.contains(cell)));
    }
    plan
}

fn one(reference: &Reference, cells: &[(u64, u32)], limits: &Limits, is_single: bool, random: &mut impl Rng) -> Option<PlannedCell> {
    let context_max = cells.iter().map(|(context, _)| *context).max()?;
    let level_max = cells.iter().map(|(_, level)| *level).max()?;
    let level_min = cells.iter().map(|(_, level)| *level).min()?;
    // The cold prompt of the single stream is compared too: within the prefill rows, where there are any.
    let context_max = if is_single { context_max.min(reference.prefill_context_max().max(CONTEXT_MIN)) } else { context_max };
    let concurrency =
        if is_single || level_max <= 1 { 1 } else { spread(u64::from(level_min.max(2)), u64::from(level_max), random) as u32 };
    let context_tokens = if context_max < CONTEXT_MIN { 0 } else { spread(CONTEXT_MIN, context_max, random) };
    let is_off_grid =
        context_tokens == 0 || !is_usual_context(context_tokens) && cells.iter().all(|(context, _)| *context != context_tokens);
    // Where the levels leave room, one that nobody measures by habit.
    let is_usual_level = concurrency > 2 && is_usual_concurrency(concurrency) && level_max > 4 && random.random_bool(0.75);
    let is_quick = reference.ttft(context_tokens).is_none_or(|seconds| seconds <= PREFILL_SECONDS_MAX);
    let fits = is_off_grid && !is_usual_level && is_quick && limits.allow(context_tokens, concurrency);
    (fits && reference.expected(context_tokens, concurrency).is_some()).then_some(PlannedCell { context_tokens, concurrency })
}

/// Even over the logarithm.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and far below 2^52")]
fn spread(low: u64, high: u64, random: &mut impl Rng) -> u64 {
    if low >= high {
        return high.max(1);
    }
    let (from, to) = ((low as f64).ln(), (high as f64 + 1.0).ln());
    (random.random_range(from..to).exp() as u64).clamp(low, high)
}
