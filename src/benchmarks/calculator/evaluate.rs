//! The calculator's error on measured matrices: cells left out one at a time, and ranges on machines that were left out.
//!
//! Matrices of stand-in servers follow a stated law and tell nothing of hardware: they are shown, and counted apart.

use std::fmt;

use super::ceiling::ceiling;
use super::decode::{estimate, step_seconds};
use super::{Priors, Setup, Surface, prefill, real};
use crate::benchmarks::matrix::Matrix;

/// Goals: a median error between measured cells; cells inside the range and its width without an anchor.
const MEDIAN_GOAL: f64 = 0.03;
const INSIDE_GOAL: f64 = 0.90;
const WIDTH_GOAL: f64 = 2.5;
/// How strongly a fit on few machines holds to the textbook values.
const HOLD: f64 = 0.02;

/// A measured matrix with what is known around it.
#[derive(Debug, Clone)]
pub struct Genuine<'a> {
    pub name: String,
    /// Matrices of one machine and model are left out together.
    pub machine: String,
    /// The engine was a stand-in.
    pub simulated: bool,
    /// The engine guessed ahead: outside the formula.
    pub speculative: bool,
    pub matrix: Matrix,
    /// Model and hardware, where both are known.
    pub setup: Option<Setup<'a>>,
}

/// Relative errors of a set of cells.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Errors {
    pub cells: usize,
    pub median: f64,
    pub max: f64,
}

impl Errors {
    fn of(mut errors: Vec<f64>) -> Self {
        errors.sort_by(f64::total_cmp);
        let middle = |half: usize| errors.get(half).copied().unwrap_or_default();
        let median = if errors.len().is_multiple_of(2) && !errors.is_empty() {
            f64::midpoint(middle(errors.len() / 2 - 1), middle(errors.len() / 2))
        } else {
            middle(errors.len() / 2)
        };
        Self { cells: errors.len(), median, max: errors.last().copied().unwrap_or_default() }
    }
}

/// How a range does on cells it was not fitted on.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Coverage {
    pub cells: usize,
    pub inside: usize,
    /// The widest range, high over low.
    pub width: f64,
    /// Median error of the middle.
    pub median: f64,
}

impl Coverage {
    pub fn share(&self) -> f64 {
        real(self.inside as u64) / real(self.cells.max(1) as u64)
    }
}

/// One matrix.
#[derive(Debug, Clone, PartialEq)]
pub struct MatrixErrors {
    pub name: String,
    pub simulated: bool,
    pub speculative: bool,
    pub cells: usize,
    /// Cells left out one at a time: those between measured ones, and those at the edge.
    pub between: Errors,
    pub edge: Errors,
    /// Rows of one context, and columns of one concurrency, left out whole.
    pub rows: Errors,
    pub columns: Errors,
    pub prefill: Errors,
    /// The range as it is given, and the one fitted to the other machines.
    pub unanchored: Option<(Coverage, Coverage)>,
    /// Cells above what the formula says no engine passes.
    pub above_ceiling: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Goal {
    pub what: &'static str,
    pub goal: String,
    pub found: String,
    pub met: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    pub matrices: Vec<MatrixErrors>,
    /// Over all real engines; over stand-ins too.
    pub between: Errors,
    pub between_all: Errors,
    /// Share of the former inside the stated ± of an interpolated cell.
    pub between_stated: f64,
    /// Over real machines without speculation: as given, and fitted to the others.
    pub unanchored: Coverage,
    pub unanchored_fitted: Coverage,
    /// The same with speculation.
    pub speculative: Coverage,
    pub goals: Vec<Goal>,
}

type Cells = Vec<(u64, u32, f64)>;

/// Errors of the calculator on these matrices.
pub fn evaluate(matrices: &[Genuine<'_>]) -> Report {
    let mut rows = Vec::new();
    let (mut real_errors, mut all_errors, mut stated) = (Vec::new(), Vec::new(), Vec::new());
    let [mut given, mut fitted, mut speculative] = [const { Vec::new() }; 3];
    for genuine in matrices {
        let surface = Surface::of(&genuine.matrix);
        let (between, edge) = left_out(&surface, genuine.setup.as_ref());
        if !genuine.simulated {
            real_errors.extend(between.iter().map(|(error, _)| *error));
            stated.extend(between.iter().map(|(error, share)| error <= share));
        }
        let between: Vec<f64> = between.into_iter().map(|(error, _)| error).collect();
        all_errors.extend(&between);
        let ranges = genuine.setup.filter(|_| !genuine.simulated).map(|setup| {
            let cells: Cells = surface.cells().collect();
            let as_given = ranges(&setup, &Priors::default(), &cells);
            let as_fitted = ranges(&setup, &fitted_without(matrices, &genuine.machine), &cells);
            (as_given, as_fitted)
        });
        if let Some((as_given, as_fitted)) = &ranges {
            if genuine.speculative {
                speculative.extend(as_given.clone());
            } else {
                given.extend(as_given.clone());
                fitted.extend(as_fitted.clone());
            }
        }
        rows.push(MatrixErrors {
            name: genuine.name.clone(),
            simulated: genuine.simulated,
            speculative: genuine.speculative,
            cells: surface.cells().count(),
            between: Errors::of(between),
            edge: Errors::of(edge),
            rows: whole_left_out(&surface, |cell, out| cell.0 == out.0),
            columns: whole_left_out(&surface, |cell, out| cell.1 == out.1),
            prefill: prefill_left_out(&genuine.matrix),
            unanchored: ranges.map(|(as_given, as_fitted)| (coverage(&as_given), coverage(&as_fitted))),
            above_ceiling: above_ceiling(genuine, &surface),
        });
    }
    let (between, unanchored, unanchored_fitted) = (Errors::of(real_errors), coverage(&given), coverage(&fitted));
    let goals = goals(&between, &unanchored, &unanchored_fitted);
    Report {
        matrices: rows,
        between,
        between_all: Errors::of(all_errors),
        between_stated: real(stated.iter().filter(|inside| **inside).count() as u64) / real(stated.len().max(1) as u64),
        unanchored,
        unanchored_fitted,
        speculative: coverage(&speculative),
        goals,
    }
}

fn goals(between: &Errors, given: &Coverage, fitted: &Coverage) -> Vec<Goal> {
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let inside = |what, coverage: &Coverage| Goal {
        what,
        goal: format!("at least {}", percent(INSIDE_GOAL)),
        found: format!("{} ({} of {} cells)", percent(coverage.share()), coverage.inside, coverage.cells),
        met: coverage.cells > 0 && coverage.share() >= INSIDE_GOAL,
    };
    vec![
        Goal {
            what: "median error between measured cells, left out one at a time",
            goal: format!("at most {}", percent(MEDIAN_GOAL)),
            found: format!("{} over {} cells", percent(between.median), between.cells),
            met: between.cells > 0 && between.median <= MEDIAN_GOAL,
        },
        inside("cells inside the unanchored range, textbook values", given),
        inside("cells inside the unanchored range, fitted to other machines", fitted),
        Goal {
            what: "width of the unanchored range, high over low",
            goal: format!("at most {WIDTH_GOAL}"),
            found: format!("{:.2}", given.width.max(fitted.width)),
            met: given.cells > 0 && given.width.max(fitted.width) <= WIDTH_GOAL,
        },
    ]
}

fn error(told: f64, measured: f64) -> f64 {
    // Relative to the measured total, though both are given as times.
    (measured / told - 1.0).abs()
}

/// Errors of cells left out one at a time: between measured ones, with the share that is stated, and at the edge within reach.
fn left_out(surface: &Surface, setup: Option<&Setup<'_>>) -> (Vec<(f64, f64)>, Vec<f64>) {
    let (mut between, mut edge) = (Vec::new(), Vec::new());
    for (context, level, seconds) in surface.cells() {
        let rest = surface.without(context, level);
        match (rest.point(context, level), setup) {
            (Some(point), _) if point.inside => between.push((error(point.seconds, seconds), point.share)),
            (_, Some(setup)) => {
                let told = rest.total(setup, context, level).map(|(range, _)| f64::from(level) / range.value);
                edge.extend(told.map(|told| error(told, seconds)));
            }
            (Some(point), None) => edge.push(error(point.seconds, seconds)),
            (None, None) => {}
        }
    }
    (between, edge)
}

/// Errors between measured cells when all cells of one row or column are left out together.
fn whole_left_out(surface: &Surface, together: impl Fn((u64, u32), (u64, u32)) -> bool) -> Errors {
    let of = |(context, level, seconds): (u64, u32, f64)| {
        let rest = surface.without_where(|at, other| together((at, other), (context, level)));
        rest.point(context, level).filter(|point| point.inside).map(|point| error(point.seconds, seconds))
    };
    Errors::of(surface.cells().filter_map(of).collect())
}

fn prefill_left_out(matrix: &Matrix) -> Errors {
    let of = |(index, row): (usize, &crate::benchmarks::matrix::PrefillRow)| {
        let rate = row.tokens_per_second.filter(|rate| *rate > 0.0)?;
        let mut rest = matrix.prefill.clone();
        rest.remove(index);
        let rest = Matrix { prefill: rest, ..Matrix::default() };
        let (range, kind) = prefill::anchored(&rest, row.context_tokens)?;
        (kind == super::Kind::Interpolated).then(|| error(rate, range.value))
    };
    Errors::of(matrix.prefill.iter().enumerate().filter_map(of).collect())
}

/// (measured inside, high over low, error of the middle) of every cell.
fn ranges(setup: &Setup<'_>, priors: &Priors, cells: &Cells) -> Vec<(bool, f64, f64)> {
    let of = |(context, level, seconds): &(u64, u32, f64)| {
        let total = f64::from(*level) / seconds;
        let range = estimate(setup, priors, *level, real(*context))?;
        Some((range.holds(total), range.high / range.low, (range.value / total - 1.0).abs()))
    };
    cells.iter().filter_map(of).collect()
}

fn coverage(cells: &[(bool, f64, f64)]) -> Coverage {
    let median = Errors::of(cells.iter().map(|(.., error)| *error).collect()).median;
    let width = cells.iter().map(|(_, width, _)| *width).fold(0.0, f64::max);
    Coverage { cells: cells.len(), inside: cells.iter().filter(|(inside, ..)| *inside).count(), width, median }
}

fn above_ceiling(genuine: &Genuine<'_>, surface: &Surface) -> usize {
    let Some(setup) = genuine.setup.as_ref().filter(|_| !genuine.speculative) else { return 0 };
    let above = |(context, level, seconds): &(u64, u32, f64)| {
        ceiling(setup, *level, real(*context)).is_some_and(|ceiling| f64::from(*level) / seconds > ceiling)
    };
    surface.cells().filter(above).count()
}

/// The textbook values moved to fit all other machines without speculation; each matrix counts the same.
fn fitted_without(matrices: &[Genuine<'_>], machine: &str) -> Priors {
    let others = matrices.iter().filter(|other| other.machine != machine && !other.simulated && !other.speculative);
    let training: Vec<(Setup<'_>, Cells)> =
        others.filter_map(|other| Some((other.setup?, Surface::of(&other.matrix).cells().collect()))).collect();
    let textbook = Priors::default();
    let mut best = (f64::INFINITY, textbook);
    for candidate in candidates(textbook) {
        let moved = [
            candidate.efficiency / textbook.efficiency,
            candidate.layer_seconds / textbook.layer_seconds,
            candidate.hop_seconds / textbook.hop_seconds,
            candidate.attention_seconds / textbook.attention_seconds,
        ];
        let held: f64 = moved.iter().map(|ratio| ratio.ln().powi(2)).sum::<f64>() * HOLD;
        let misfit: f64 = training.iter().map(|(setup, cells)| mean_misfit(setup, &candidate, cells)).sum();
        if misfit + held < best.0 {
            best = (misfit + held, candidate);
        }
    }
    best.1
}

fn mean_misfit(setup: &Setup<'_>, priors: &Priors, cells: &Cells) -> f64 {
    let of = |(context, level, seconds): &(u64, u32, f64)| {
        step_seconds(setup, priors, f64::from(*level), real(*context)).map_or(0.0, |told| (told / seconds).ln().abs())
    };
    cells.iter().map(of).sum::<f64>() / real(cells.len().max(1) as u64)
}

fn candidates(textbook: Priors) -> Vec<Priors> {
    let mut all = Vec::new();
    for efficiency in [0.55, 0.65, 0.75, 0.85, 0.95] {
        for layer in [0.35, 0.7, 1.0, 1.4, 2.0, 3.0] {
            for hop in [0.5, 0.7, 1.0, 1.4, 2.0, 3.0] {
                for attention in [0.1, 0.3, 0.6, 1.0, 1.7, 3.0, 5.0] {
                    all.push(Priors {
                        efficiency,
                        layer_seconds: textbook.layer_seconds * layer,
                        hop_seconds: textbook.hop_seconds * hop,
                        attention_seconds: textbook.attention_seconds * attention,
                        ..textbook
                    });
                }
            }
        }
    }
    all
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.cells == 0 {
            return f.pad("-");
        }
        f.pad(&format!("{} {:.1}/{:.1}", self.cells, self.median * 100.0, self.max * 100.0))
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{} ×{:.2} mid {:.0}", self.inside, self.cells, self.width, self.median * 100.0))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Errors in per cent: cells median/max, cells left out one at a time (between measured ones, at the edge), rows of one"
        )?;
        writeln!(
            f,
            "context and columns of one concurrency left out whole, prefill rows. Ranges: cells inside/all, width, error of the middle."
        )?;
        let head = ["matrix", "cells", "between", "edge", "rows", "columns", "prefill", "range, textbook", "range, other machines"];
        let [name, cells, between, edge, rows, columns, prefill, given, fitted] = head;
        writeln!(f, "{name:44} {cells:>5}  {between:13} {edge:13} {rows:13} {columns:13} {prefill:10} {given:22} {fitted:22}")?;
        for row in &self.matrices {
            let mark = if row.simulated {
                " (stand-in)"
            } else if row.speculative {
                " (speculation)"
            } else {
                ""
            };
            let name = format!("{}{mark}", row.name);
            let (given, fitted) = row.unanchored.map_or_else(Default::default, |(a, b)| (a.to_string(), b.to_string()));
            writeln!(
                f,
                "{name:44} {:>5}  {:13} {:13} {:13} {:13} {:10} {given:22} {fitted:22}",
                row.cells, row.between, row.edge, row.rows, row.columns, row.prefill
            )?;
        }
        writeln!(f, "between measured cells, with stand-ins: {}", self.between_all)?;
        writeln!(f, "between measured cells, inside the stated ± of 10 or 20 %: {:.1} %", self.between_stated * 100.0)?;
        writeln!(f, "range under speculation, which the formula leaves out: {}", self.speculative)?;
        for goal in &self.goals {
            let met = if goal.met { "met" } else { "MISSED" };
            writeln!(f, "{met:7} {}: {} (goal: {})", goal.what, goal.found, goal.goal)?;
        }
        Ok(())
    }
}
