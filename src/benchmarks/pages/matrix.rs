//! The decode matrix as a table shaded by speed (look.md, Heat), with its key and notes. Other domains' pages show it too.

use std::{borrow::Cow, collections::BTreeSet};

use askama::Template;

use super::super::{
    matrix::{Cell, CellStatus},
    model::RunView,
};
use crate::web::html::{Key, Messages};

/// The table of one run.
#[derive(Template)]
#[template(path = "parts/matrix.html")]
pub struct MatrixTable {
    t: Messages,
    /// The columns.
    levels: Vec<String>,
    rows: Vec<MatrixRow>,
    /// The total from which each shade is used; empty when all cells have one shade.
    shades: Vec<(u8, String)>,
    has_queued: bool,
    has_over_capacity: bool,
    kv_limit: Option<String>,
}

struct MatrixRow {
    context: String,
    cells: Vec<MatrixCell>,
}

#[derive(Default)]
struct MatrixCell {
    class: String,
    is_measured: bool,
    is_queued: bool,
    total: String,
    ttft: String,
    word: Cow<'static, str>,
}

impl MatrixTable {
    /// `None` for a run without decode cells.
    pub fn of(t: Messages, run: &RunView) -> Option<Self> {
        let levels: Vec<u32> = run.decode.iter().map(|c| c.concurrency).collect::<BTreeSet<_>>().into_iter().collect();
        let rows = rows(t, run, &levels);
        (!rows.is_empty()).then(|| Self {
            t,
            levels: levels.iter().map(|level| t.count(Some((*level).into()))).collect(),
            rows,
            shades: shades(t, run),
            has_queued: has(run, CellStatus::Queued),
            has_over_capacity: has(run, CellStatus::OverCapacity),
            kv_limit: kv_limit(t, run),
        })
    }

    /// So few columns that they would stretch.
    fn is_narrow(&self) -> bool {
        self.levels.len() <= 4
    }

    fn is_empty_cell(&self, cell: &MatrixCell) -> bool {
        !cell.is_measured && cell.word.is_empty()
    }
}

pub(super) fn has(run: &RunView, status: CellStatus) -> bool {
    run.decode.iter().any(|cell| cell.status == status)
}

/// Shaded on a logarithmic scale over the measured cells: step = 1 + floor(8 · ln(v/min) ÷ ln(max/min)), at most 8.
fn rows(t: Messages, run: &RunView, levels: &[u32]) -> Vec<MatrixRow> {
    let contexts: Vec<u64> = run.decode.iter().map(|c| c.context_tokens).collect::<BTreeSet<_>>().into_iter().collect();
    let range = range(run);
    let at = |row: usize, column: usize| {
        let (context, level) = (contexts.get(row)?, levels.get(column)?);
        run.decode.iter().find(|c| c.context_tokens == *context && c.concurrency == *level)
    };
    let is_over = |cell: Option<&Cell>| cell.is_some_and(|c| c.status == CellStatus::OverCapacity);
    let cell = |row: usize, column: usize| match at(row, column) {
        Some(cell) => matrix_cell(t, cell, range, is_over(at(row, column + 1)), is_over(at(row + 1, column))),
        None => MatrixCell::default(),
    };
    let row = |(row, tokens): (usize, &u64)| MatrixRow {
        context: t.context(*tokens),
        cells: (0..levels.len()).map(|column| cell(row, column)).collect(),
    };
    contexts.iter().enumerate().map(row).collect()
}

/// Slowest and fastest total of the measured cells; `(∞, 0)` when there is none.
fn range(run: &RunView) -> (f64, f64) {
    let measured = run.decode.iter().filter(|c| c.status.is_measured());
    let totals = measured.filter_map(|c| c.total_tokens_per_second).filter(|t| *t > 0.0);
    totals.fold((f64::INFINITY, 0.0_f64), |(low, high), t| (low.min(t), high.max(t)))
}

fn shades(t: Messages, run: &RunView) -> Vec<(u8, String)> {
    let (low, high) = range(run);
    let span = (high / low).ln();
    if !span.is_finite() || span <= 0.0 {
        return Vec::new();
    }
    (1..=8_u8).map(|shade| (shade, t.figure(Some(low * (span * f64::from(shade - 1) / 8.0).exp()), 0))).collect()
}

/// Where the KV cache ends, when both bounds are known.
fn kv_limit(t: Messages, run: &RunView) -> Option<String> {
    let (at_least, below) = (run.kv_capacity.at_least_tokens?, run.kv_capacity.below_tokens?);
    Some(t.with("matrix-kv-limit", &[("low", t.count(Some(at_least)).into()), ("high", t.count(Some(below)).into())]))
}

/// One cell; a line is drawn where its neighbour no longer fits the KV cache.
fn matrix_cell(t: Messages, cell: &Cell, (low, high): (f64, f64), cut_right: bool, cut_below: bool) -> MatrixCell {
    let is_measured = cell.status.is_measured();
    let mut class = Vec::new();
    if is_measured {
        class.push(format!("h{}", step(cell.total_tokens_per_second.unwrap_or(low), low, high)));
        class.extend(cut_right.then(|| "cut-r".to_owned()));
        class.extend(cut_below.then(|| "cut-b".to_owned()));
    }
    class.extend(match cell.status {
        CellStatus::Valid | CellStatus::Skipped | CellStatus::NotRun => None,
        CellStatus::Queued => Some("queued".to_owned()),
        CellStatus::OverCapacity => Some("over".to_owned()),
        CellStatus::Error | CellStatus::Loop => Some("bad".to_owned()),
    });
    MatrixCell {
        class: class.join(" "),
        is_measured,
        is_queued: cell.status == CellStatus::Queued,
        total: t.figure(cell.total_tokens_per_second, 1),
        ttft: t.figure(cell.ttft_ms, 0),
        word: if cell.status == CellStatus::Valid { Cow::Borrowed("") } else { t.text(status_key(cell.status)) },
    }
}

pub(super) const fn status_key(status: CellStatus) -> Key {
    match status {
        CellStatus::Valid => Key("cell-valid"),
        CellStatus::Queued => Key("cell-queued"),
        CellStatus::OverCapacity => Key("cell-over-capacity"),
        CellStatus::Error => Key("cell-error"),
        CellStatus::Loop => Key("cell-loop"),
        CellStatus::Skipped => Key("cell-skipped"),
        CellStatus::NotRun => Key("cell-not-run"),
    }
}

fn step(value: f64, low: f64, high: f64) -> u8 {
    let span = (high / low).ln();
    if !span.is_finite() || span <= 0.0 {
        return 8;
    }
    let step = 1.0 + (8.0 * (value / low).ln() / span).floor();
    (1..=8).rev().find(|s| step >= f64::from(*s)).unwrap_or(1)
}
