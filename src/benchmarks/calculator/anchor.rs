//! A measured matrix as a surface of step times: between its cells, a little beyond them, and on other hardware.
//!
//! The time of a step is nearly linear in the context at a fixed concurrency, and a row's shape over the concurrency is nearly the same in
//! every row (evidence.md 4, I15 and I19). So a cell is best told by the cells above and below it, by its neighbours in its own row with
//! another row's shape between them, and only without these by its own row alone.

use std::collections::BTreeMap;

use super::decode::{bandwidth, estimate, experts_hit, step_seconds};
use super::{GENERATED_TOKENS, Kind, Priors, Range, Setup, real};
use crate::benchmarks::matrix::{CellStatus, DecodeMode, Matrix};

const INTERPOLATED_SHARE: f64 = 0.10;
/// The same where only a row's own neighbours tell: engines change kernels and graphs between batch sizes.
const INTERPOLATED_LEVEL_SHARE: f64 = 0.20;
const EXTRAPOLATED_SHARE: f64 = 0.25;
const SCALED_SHARE: f64 = 0.30;
/// The same share where the number of GPUs differs too: their exchange is not bandwidth.
const SCALED_COUNT_SHARE: f64 = 0.50;
/// Beyond this multiple of the measured range nothing is extrapolated.
const REACH: f64 = 2.0;
/// At a context below this, "twice as far" is not a distance.
const REACH_CONTEXT_TOKENS: u64 = 8_192;
/// The linear law has four unknowns; it needs some cells more.
const LAW_CELLS_MIN: usize = 6;
/// Distance, squared, at which a cell's deviation from the law still counts as near.
const NEAR: f64 = 0.05;

/// Seconds per step of the valid cells, by context and concurrency.
#[derive(Debug, Clone, Default)]
pub struct Surface {
    rows: BTreeMap<u64, BTreeMap<u32, f64>>,
}

/// A step's time from the surface, whether measured cells lie on both sides, and the share that it may be off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    pub seconds: f64,
    pub inside: bool,
    pub share: f64,
}

impl Surface {
    /// The valid cells of a matrix; nothing for modes that count whole requests.
    pub fn of(matrix: &Matrix) -> Self {
        let mut surface = Self::default();
        if matrix.mode != DecodeMode::Duration {
            return surface;
        }
        for cell in matrix.decode.iter().filter(|cell| cell.status == CellStatus::Valid) {
            if let Some(total) = cell.total_tokens_per_second.filter(|total| *total > 0.0) {
                surface.insert(cell.context_tokens, cell.concurrency, f64::from(cell.concurrency) / total);
            }
        }
        surface
    }

    pub fn insert(&mut self, context: u64, concurrency: u32, seconds: f64) {
        self.rows.entry(context).or_default().insert(concurrency, seconds);
    }

    /// The same without one cell.
    pub fn without(&self, context: u64, concurrency: u32) -> Self {
        let mut rest = self.clone();
        if let Some(row) = rest.rows.get_mut(&context) {
            row.remove(&concurrency);
        }
        rest.rows.retain(|_, row| !row.is_empty());
        rest
    }

    /// The same without a whole column of one concurrency, or without a row of one context.
    pub fn without_where(&self, left_out: impl Fn(u64, u32) -> bool) -> Self {
        let mut rest = Self::default();
        for (context, concurrency, seconds) in self.cells().filter(|(context, concurrency, _)| !left_out(*context, *concurrency)) {
            rest.insert(context, concurrency, seconds);
        }
        rest
    }

    /// (context, concurrency, seconds per step), in order.
    pub fn cells(&self) -> impl Iterator<Item = (u64, u32, f64)> + '_ {
        self.rows.iter().flat_map(|(context, row)| row.iter().map(move |(concurrency, seconds)| (*context, *concurrency, *seconds)))
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn at(&self, context: u64, concurrency: u32) -> Option<f64> {
        self.rows.get(&context)?.get(&concurrency).copied()
    }

    /// Seconds of a step at any place that measured cells bound on at least one axis, or that another row's shape reaches.
    pub fn point(&self, context: u64, concurrency: u32) -> Option<Point> {
        if let Some(seconds) = self.at(context, concurrency) {
            return Some(Point { seconds, inside: true, share: 0.0 });
        }
        let by_context = self.between_contexts(context, |row| row.get(&concurrency).copied());
        let by_shape = self.by_shape(context, concurrency);
        let row = self.rows.get(&context).and_then(|row| between_levels(row, concurrency));
        let inside = by_context.is_some() || row.is_some();
        let told = match (by_context, by_shape) {
            (Some(by_context), Some((by_shape, true))) => Some((by_context + by_shape) / 2.0),
            (Some(by_context), _) => Some(by_context),
            (None, Some((by_shape, _))) => Some(by_shape),
            (None, None) => row,
        };
        if let Some(seconds) = told {
            let told_by_column = by_context.is_some() || by_shape.is_some();
            let share = if told_by_column { INTERPOLATED_SHARE } else { INTERPOLATED_LEVEL_SHARE };
            return Some(Point { seconds, inside, share });
        }
        // Off the grid on both axes: each row first, then between the rows.
        let level = |row: &BTreeMap<u32, f64>| row.get(&concurrency).copied().or_else(|| between_levels(row, concurrency));
        self.between_contexts(context, level).map(|seconds| Point { seconds, inside: true, share: INTERPOLATED_LEVEL_SHARE })
    }

    /// Linear in the context between the nearest rows that have a value.
    fn between_contexts(&self, context: u64, value: impl Fn(&BTreeMap<u32, f64>) -> Option<f64>) -> Option<f64> {
        let below = self.rows.range(..context).rev().find_map(|(at, row)| Some((*at, value(row)?)))?;
        let above = self.rows.range(context + 1..).find_map(|(at, row)| Some((*at, value(row)?)))?;
        let share = real(context - below.0) / real(above.0 - below.0);
        Some(below.1 + (above.1 - below.1) * share)
    }

    /// The row's own cells next to the concurrency, carried over by the ratio that another row has between them; with whether rows on both
    /// sides were used.
    fn by_shape(&self, context: u64, concurrency: u32) -> Option<(f64, bool)> {
        let row = self.rows.get(&context)?;
        let by = |(at, other): (&u64, &BTreeMap<u32, f64>)| Some((*at, carried(row, other, concurrency)?));
        let below = self.rows.range(..context).rev().find_map(by);
        let above = self.rows.range(context + 1..).find_map(by);
        match (below, above) {
            (Some(below), Some(above)) => {
                let share = real(context - below.0) / real(above.0 - below.0);
                Some(((below.1.ln() * (1.0 - share) + above.1.ln() * share).exp(), true))
            }
            (Some(one), None) | (None, Some(one)) => Some((one.1, false)),
            (None, None) => None,
        }
    }

    /// How far a place lies beyond the measured ones: 1 is inside, 2 twice as far.
    fn reach(&self, context: u64, concurrency: u32) -> f64 {
        let longest = self.rows.keys().max().copied().unwrap_or_default().max(REACH_CONTEXT_TOKENS);
        let most = self.rows.values().filter_map(|row| row.keys().max()).max().copied().unwrap_or(1);
        let fewest = self.rows.values().filter_map(|row| row.keys().min()).min().copied().unwrap_or(1);
        let levels = (f64::from(concurrency) / f64::from(most)).max(f64::from(fewest) / f64::from(concurrency.max(1)));
        (real(context) / real(longest)).max(levels).max(1.0)
    }

    /// Seconds of a step beyond the measured cells: the law fitted to them, times what the near ones deviate from it.
    fn beyond(&self, setup: &Setup<'_>, context: u64, concurrency: u32) -> Option<f64> {
        let law = Law::fitted(self, setup)?;
        let mut weights = 0.0;
        let mut deviation = 0.0;
        for (at, level, seconds) in self.cells() {
            let weight = (distance((context, concurrency), (at, level)) + NEAR).powi(-2);
            weights += weight;
            deviation += weight * (seconds / law.seconds(setup, at, level)).ln();
        }
        Some(law.seconds(setup, context, concurrency) * (deviation / weights).exp())
    }

    /// Total tokens per second on the hardware that was measured; `None` where the matrix does not reach.
    pub fn total(&self, setup: &Setup<'_>, context: u64, concurrency: u32) -> Option<(Range, Kind)> {
        let total = |seconds: f64| f64::from(concurrency) / seconds;
        if let Some(seconds) = self.at(context, concurrency) {
            return Some((Range::exact(total(seconds)), Kind::Measured));
        }
        match self.point(context, concurrency) {
            Some(point) if point.inside => Some((Range::around(total(point.seconds), point.share), Kind::Interpolated)),
            _ if self.is_empty() || self.reach(context, concurrency) > REACH => None,
            Some(point) => Some((Range::around(total(point.seconds), EXTRAPOLATED_SHARE), Kind::Extrapolated)),
            None => {
                let seconds = self.beyond(setup, context, concurrency)?;
                Some((Range::around(total(seconds), EXTRAPOLATED_SHARE), Kind::Extrapolated))
            }
        }
    }

    /// Total tokens per second on other hardware: the part of a step that is not fixed goes with the bandwidth.
    pub fn scaled(&self, from: &Setup<'_>, to: &Setup<'_>, context: u64, concurrency: u32) -> Option<Range> {
        let (here, _) = self.total(from, context, concurrency)?;
        let ratio = bandwidth(from.hardware, from.gpu_count)? / bandwidth(to.hardware, to.gpu_count)?;
        let seconds = f64::from(concurrency) / here.value;
        let fixed = Law::fitted(self, from).map_or(0.0, |law| law.fixed_seconds()).min(seconds / 2.0);
        let value = f64::from(concurrency) / (fixed + (seconds - fixed) * ratio);
        let share = if from.gpu_count == to.gpu_count { SCALED_SHARE } else { SCALED_COUNT_SHARE };
        Some(Range { low: value / (1.0 + share), value, high: value * (1.0 + share) })
    }
}

/// How far two places lie apart, squared: doublings of the concurrency, and of the context.
pub(super) fn distance(one: (u64, u32), other: (u64, u32)) -> f64 {
    let levels = f64::from(one.1.max(1)).log2() - f64::from(other.1.max(1)).log2();
    (scale(one.0) - scale(other.0)).powi(2) + levels.powi(2)
}

/// Contexts on a scale where each doubling beyond 8K is one.
fn scale(context: u64) -> f64 {
    (1.0 + real(context) / real(REACH_CONTEXT_TOKENS)).log2()
}

/// Between the nearest levels of one row: the time's logarithm over the concurrency's.
fn between_levels(row: &BTreeMap<u32, f64>, concurrency: u32) -> Option<f64> {
    let below = row.range(..concurrency).next_back()?;
    let above = row.range(concurrency + 1..).next()?;
    let share = (f64::from(concurrency) / f64::from(*below.0)).ln() / (f64::from(*above.0) / f64::from(*below.0)).ln();
    Some((below.1.ln() * (1.0 - share) + above.1.ln() * share).exp())
}

/// A row's nearest common cells, moved to `concurrency` as the other row moves.
fn carried(row: &BTreeMap<u32, f64>, other: &BTreeMap<u32, f64>, concurrency: u32) -> Option<f64> {
    let there = other.get(&concurrency)?;
    let moved = |(level, seconds): (&u32, &f64)| Some((*level, seconds * there / other.get(level)?));
    let below = row.range(..concurrency).rev().find_map(moved);
    let above = row.range(concurrency + 1..).find_map(moved);
    match (below, above) {
        (Some(below), Some(above)) => {
            let share = (f64::from(concurrency) / f64::from(below.0)).ln() / (f64::from(above.0) / f64::from(below.0)).ln();
            Some((below.1.ln() * (1.0 - share) + above.1.ln() * share).exp())
        }
        (Some(one), None) | (None, Some(one)) => Some(one.1),
        (None, None) => None,
    }
}

/// `seconds = a + b · bytes / bandwidth + tokens · (c + d · concurrency)`, with no coefficient below zero (calc.md, section 1).
struct Law {
    coefficients: [f64; 4],
}

impl Law {
    fn terms(setup: &Setup<'_>, context: u64, concurrency: u32) -> [f64; 4] {
        let batch = f64::from(concurrency);
        let tokens = real(context) + GENERATED_TOKENS;
        let bytes = setup.weights.read_bytes(experts_hit(setup.model, batch));
        // Without a bandwidth the coefficient takes it over.
        let per_second = bandwidth(setup.hardware, setup.gpu_count).unwrap_or(1e12);
        [1.0, bytes / per_second, tokens, tokens * batch]
    }

    /// The law of the formula itself, scaled to the cells, where there are too few to fit it.
    fn fitted(surface: &Surface, setup: &Setup<'_>) -> Option<Self> {
        let cells: Vec<(u64, u32, f64)> = surface.cells().collect();
        if cells.len() < LAW_CELLS_MIN {
            return Self::of_formula(setup, &cells);
        }
        // Relative errors: each equation is divided by its time.
        let rows: Vec<[f64; 4]> =
            cells.iter().map(|(context, level, seconds)| Self::terms(setup, *context, *level).map(|term| term / seconds)).collect();
        nonnegative(&rows).map(|coefficients| Self { coefficients })
    }

    fn of_formula(setup: &Setup<'_>, cells: &[(u64, u32, f64)]) -> Option<Self> {
        let priors = Priors::default();
        let at = |context: u64, level: u32| step_seconds(setup, &priors, f64::from(level), real(context));
        let (short, one) = (at(0, 1)?, at(0, 1)? - 1.0 / priors.efficiency * Self::terms(setup, 0, 1).get(1).copied()?);
        let per_token = (at(100_000, 1)? - short) / 100_000.0;
        let per_both = ((at(100_000, 2)? - at(0, 2)?) / 100_000.0 - per_token).max(0.0);
        let law = Self { coefficients: [one.max(0.0), 1.0 / priors.efficiency, (per_token - per_both).max(0.0), per_both] };
        let count = real(cells.len() as u64);
        let ratio =
            cells.iter().map(|(context, level, seconds)| (seconds / law.seconds(setup, *context, *level)).ln()).sum::<f64>() / count;
        Some(Self { coefficients: law.coefficients.map(|coefficient| coefficient * ratio.exp()) })
    }

    fn seconds(&self, setup: &Setup<'_>, context: u64, concurrency: u32) -> f64 {
        Self::terms(setup, context, concurrency).iter().zip(self.coefficients).map(|(term, coefficient)| term * coefficient).sum()
    }

    /// What does not depend on bytes.
    fn fixed_seconds(&self) -> f64 {
        self.coefficients[0]
    }
}

/// Least squares of `rows · x = 1` with `x ≥ 0`: the best of all choices of which unknowns are zero.
fn nonnegative(rows: &[[f64; 4]]) -> Option<[f64; 4]> {
    let residual = |x: &[f64; 4]| rows.iter().map(|row| (row.iter().zip(x).map(|(a, b)| a * b).sum::<f64>() - 1.0).powi(2)).sum::<f64>();
    let choices = (1_u8..16).filter_map(|used| solved(rows, used)).filter(|x| x.iter().all(|value| *value >= 0.0));
    choices.min_by(|a, b| residual(a).total_cmp(&residual(b)))
}

/// The unknowns whose bit is set, by the normal equations; the others are zero.
fn solved(rows: &[[f64; 4]], used: u8) -> Option<[f64; 4]> {
    let on = |index: usize| used & (1 << index) != 0;
    let mut matrix = [[0.0; 5]; 4];
    for (i, line) in matrix.iter_mut().enumerate() {
        for (j, entry) in line.iter_mut().enumerate() {
            *entry = match (on(i), j) {
                (true, 4) => rows.iter().map(|row| row[i]).sum(),
                (true, j) if on(j) => rows.iter().map(|row| row[i] * row[j]).sum(),
                (false, j) if i == j => 1.0,
                _ => 0.0,
            };
        }
    }
    eliminated(matrix)
}

/// Gauss with the terms scaled by their diagonal, which differ by many orders.
fn eliminated(mut matrix: [[f64; 5]; 4]) -> Option<[f64; 4]> {
    let scales: [f64; 4] = std::array::from_fn(|i| matrix[i][i].sqrt());
    for i in 0..4 {
        for j in 0..4 {
            matrix[i][j] /= scales[i] * scales[j];
        }
        matrix[i][4] /= scales[i];
    }
    for pivot in 0..4 {
        if matrix[pivot][pivot].abs() < 1e-9 {
            return None;
        }
        for row in 0..4 {
            if row != pivot {
                let factor = matrix[row][pivot] / matrix[pivot][pivot];
                let from = matrix[pivot];
                for (entry, above) in matrix[row].iter_mut().zip(from) {
                    *entry -= factor * above;
                }
            }
        }
    }
    Some(std::array::from_fn(|i| matrix[i][4] / matrix[i][i] / scales[i]))
}

/// The formula's range, for places that no matrix reaches.
pub fn unanchored(setup: &Setup<'_>, context: u64, concurrency: u32) -> Option<Range> {
    estimate(setup, &Priors::default(), concurrency, real(context))
}
