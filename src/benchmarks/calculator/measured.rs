//! What was measured of a setup, cell by cell: medians of accepted runs as they are ranked, or one run alone.
//!
//! Invariants: a figure is one that its run has, and lies between its `low` and `high`; cells in which requests queued, or that were over
//! capacity, are told where no run has a valid one, and never fitted.

use std::collections::BTreeMap;

use super::anchor::{Surface, distance};
use super::{Range, Setup};
use crate::benchmarks::matrix::{CellStatus, DecodeMode, Matrix};

/// A median, and what it is of.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Low and high: of all the runs.
    pub range: Range,
    /// The run that has the median.
    pub run_id: String,
    pub run_count: u32,
    /// Each counts once.
    pub account_count: u32,
}

impl Figure {
    fn of_run(run_id: &str, value: f64) -> Self {
        Self { range: Range::exact(value), run_id: run_id.to_owned(), run_count: 1, account_count: 1 }
    }
}

/// What became of a cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Seen {
    Valid(Figure),
    /// Measured, while requests waited.
    Queued(Figure),
    /// The engine had too little cache; the run that says so.
    OverCapacity(String),
}

/// What an answer may stand on: runs of the same model and quantization on one kind of machine.
#[derive(Debug, Clone)]
pub struct Anchor<'a> {
    pub setup: Setup<'a>,
    cells: BTreeMap<(u64, u32), Seen>,
    prefill: BTreeMap<u64, Figure>,
    surface: Surface,
}

impl<'a> Anchor<'a> {
    pub fn new(setup: Setup<'a>, cells: BTreeMap<(u64, u32), Seen>, prefill: BTreeMap<u64, Figure>) -> Self {
        let mut surface = Surface::default();
        for ((context, level), seen) in &cells {
            if let Seen::Valid(figure) = seen {
                surface.insert(*context, *level, f64::from(*level) / figure.range.value);
            }
        }
        Self { setup, cells, prefill, surface }
    }

    /// One run alone.
    pub fn of_run(run_id: &str, matrix: &Matrix, setup: Setup<'a>) -> Self {
        let cells = matrix.decode.iter().filter_map(|cell| {
            let total = cell.total_tokens_per_second.filter(|total| *total > 0.0).map(|total| Figure::of_run(run_id, total));
            let seen = match cell.status {
                CellStatus::Valid if matrix.mode == DecodeMode::Duration => Seen::Valid(total?),
                CellStatus::Queued => Seen::Queued(total?),
                CellStatus::OverCapacity => Seen::OverCapacity(run_id.to_owned()),
                _ => return None,
            };
            Some(((cell.context_tokens, cell.concurrency), seen))
        });
        let rows = matrix.prefill.iter().filter_map(|row| {
            let rate = row.tokens_per_second.filter(|rate| *rate > 0.0)?;
            Some((row.context_tokens, Figure::of_run(run_id, rate)))
        });
        Self::new(setup, cells.collect(), rows.collect())
    }

    pub fn seen(&self, context: u64, concurrency: u32) -> Option<&Seen> {
        self.cells.get(&(context, concurrency))
    }

    /// Valid cells as times of a step.
    pub const fn surface(&self) -> &Surface {
        &self.surface
    }

    /// Prompt tokens per second by context.
    pub const fn prefill(&self) -> &BTreeMap<u64, Figure> {
        &self.prefill
    }

    /// The valid cell that is nearest to a place.
    pub fn nearest(&self, context: u64, concurrency: u32) -> Option<&Figure> {
        let valid = self.cells.iter().filter_map(|(at, seen)| match seen {
            Seen::Valid(figure) => Some((distance((context, concurrency), *at), figure)),
            Seen::Queued(_) | Seen::OverCapacity(_) => None,
        });
        valid.min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, figure)| figure)
    }

    /// The prefill row that is nearest to a context.
    pub fn nearest_prefill(&self, context: u64) -> Option<&Figure> {
        self.prefill.iter().min_by_key(|(at, _)| at.abs_diff(context)).map(|(_, figure)| figure)
    }

    /// A range around a value that stands on these runs, at least as wide as runs usually differ in a cell.
    pub fn widened(&self, range: Range) -> Range {
        let figures = || {
            self.cells.values().filter_map(|seen| match seen {
                Seen::Valid(figure) => Some(figure.range),
                Seen::Queued(_) | Seen::OverCapacity(_) => None,
            })
        };
        let low = middle(figures().map(|figure| figure.low / figure.value).collect());
        let high = middle(figures().map(|figure| figure.high / figure.value).collect());
        Range { low: range.low.min(range.value * low), high: range.high.max(range.value * high), ..range }
    }
}

/// The median, the upper one of two in the middle; 1 of nothing.
fn middle(mut shares: Vec<f64>) -> f64 {
    shares.sort_by(f64::total_cmp);
    shares.get(shares.len() / 2).copied().unwrap_or(1.0)
}
