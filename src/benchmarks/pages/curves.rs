//! The curves of a run as inline SVG (look.md, Charts): total and per-request speed over concurrency, one line a context, and prefill speed
//! over prompt length. Every figure drawn stands in a table of the same page.
//!
//! Geometry: x goes by the logarithm to base 2, y is linear from 0; the picture is 336 × 250 and drawn near that size.

use std::collections::BTreeSet;

use askama::Template;

use super::super::{
    matrix::{Cell, CellStatus},
    model::RunView,
};
use crate::web::html::{Key, Messages};

const TOP: f64 = 18.0;
const BOTTOM: f64 = 216.0;
const RIGHT: f64 = 322.0;
/// What a label beside a point takes, and how far apart two labels are at least.
const LABEL_WIDTH: f64 = 36.0;
const LABEL_HEIGHT: f64 = 13.0;
/// Shades of lines, dark to light.
const LINE_SHADES: usize = 6;

/// One figure.
#[derive(Template)]
#[template(path = "parts/chart.html")]
pub(super) struct Chart {
    t: Messages,
    id: &'static str,
    name: Key,
    axes: Key,
    alternative: Key,
    x_name: Key,
    left: String,
    middle: String,
    grid: Vec<Level>,
    ticks: Vec<Mark>,
    lines: Vec<Line>,
    labels: Vec<Mark>,
}

/// A horizontal line and its number.
struct Level {
    y: String,
    text_x: String,
    text_y: String,
    text: String,
}

/// A text at a place.
struct Mark {
    x: f64,
    y: f64,
    anchor: &'static str,
    text: String,
}

impl Mark {
    fn x(&self) -> String {
        place(self.x)
    }
    fn y(&self) -> String {
        place(self.y)
    }
}

/// One line with its points; dashed and hollow where requests queued.
struct Line {
    shade: usize,
    solid: String,
    dashed: String,
    points: Vec<Point>,
}

struct Point {
    x: String,
    y: String,
    is_hollow: bool,
}

/// A measured value on its way into the picture.
#[derive(Clone, Copy)]
struct Sample {
    x: f64,
    y: f64,
    is_queued: bool,
}

struct Series {
    name: String,
    samples: Vec<Sample>,
}

/// From values to places.
struct Scale {
    left: f64,
    /// Where the smallest and the largest x stand.
    first: f64,
    last: f64,
    x_min: f64,
    x_span: f64,
    y_max: f64,
    y_step: f64,
}

impl Scale {
    fn new(t: Messages, xs: &[f64], y_most: f64, inset: (f64, f64)) -> Self {
        let y_step = step(y_most);
        let next = (y_most / y_step).ceil() * y_step;
        let y_max = if next <= y_most * 1.1 { next } else { y_most };
        let widest = t.figure(Some((y_max / y_step).floor() * y_step), 0).chars().count();
        let left = 13.0 + 6.6 * f64::from(u32::try_from(widest).unwrap_or(6));
        let x_min = xs.iter().copied().fold(f64::INFINITY, f64::min);
        let x_max = xs.iter().copied().fold(0.0, f64::max);
        Self { left, first: left + inset.0, last: RIGHT - inset.1, x_min, x_span: (x_max / x_min).log2(), y_max, y_step }
    }
    fn x(&self, value: f64) -> f64 {
        self.first + (self.last - self.first) * (value / self.x_min).log2() / self.x_span
    }
    fn y(&self, value: f64) -> f64 {
        BOTTOM - (BOTTOM - TOP) * value / self.y_max
    }
    fn grid(&self, t: Messages) -> Vec<Level> {
        let level = |value: f64| Level {
            y: place(self.y(value)),
            text_x: place(self.left - 6.0),
            text_y: place(self.y(value) + 4.0),
            text: t.figure(Some(value), if self.y_step < 1.0 { 1 } else { 0 }),
        };
        std::iter::successors(Some(0.0), |value| Some(value + self.y_step))
            .take_while(|value| *value <= self.y_max * 1.001)
            .map(level)
            .collect()
    }
}

/// Numbers under the axis, without those that would touch.
fn ticks(all: impl Iterator<Item = (f64, String)>, width: f64) -> Vec<Mark> {
    let mut ticks: Vec<Mark> = Vec::new();
    for (x, text) in all {
        if ticks.last().is_none_or(|last| x - last.x >= width) {
            ticks.push(Mark { x, y: 232.0, anchor: "middle", text });
        }
    }
    ticks
}

/// 1, 2, 2.5 or 5 times a power of ten: the smallest that makes at most five steps.
fn step(most: f64) -> f64 {
    let power = 10.0_f64.powf((most / 5.0).log10().floor());
    [1.0, 2.0, 2.5, 5.0, 10.0].iter().map(|factor| factor * power).find(|step| most / step <= 5.0).unwrap_or(10.0 * power)
}

fn place(value: f64) -> String {
    format!("{value:.1}")
}

/// Those of the three that have something to draw.
pub(super) fn charts(t: Messages, run: &RunView) -> Vec<Chart> {
    let total = decode_chart(t, run, |cell| cell.total_tokens_per_second).map(|chart| Chart {
        id: "total",
        name: Key("chart-total"),
        alternative: Key("chart-total-alternative"),
        ..chart
    });
    let each = decode_chart(t, run, |cell| cell.per_request_tokens_per_second).map(|chart| Chart {
        id: "each",
        name: Key("chart-each"),
        alternative: Key("chart-each-alternative"),
        ..chart
    });
    [total, each, prefill_chart(t, run)].into_iter().flatten().collect()
}

fn decode_chart(t: Messages, run: &RunView, value: impl Fn(&Cell) -> Option<f64>) -> Option<Chart> {
    let sample = |cell: &Cell| {
        let y = value(cell).filter(|y| y.is_finite() && cell.status.is_measured())?;
        Some(Sample { x: f64::from(cell.concurrency), y, is_queued: cell.status == CellStatus::Queued })
    };
    let of_context = |cells: &[Cell]| Series {
        name: cells.first().map(|cell| t.context(cell.context_tokens)).unwrap_or_default(),
        samples: cells.iter().filter_map(sample).collect(),
    };
    let series: Vec<Series> = run.decode.chunk_by(|a, b| a.context_tokens == b.context_tokens).map(of_context).collect();
    let series: Vec<Series> = series.into_iter().filter(|one| !one.samples.is_empty()).collect();
    let levels: BTreeSet<u32> = run.decode.iter().map(|cell| cell.concurrency).collect();
    let xs: Vec<f64> = levels.into_iter().map(f64::from).collect();
    let y_most = series.iter().flat_map(|one| &one.samples).map(|sample| sample.y).fold(0.0, f64::max);
    if xs.len() < 2 || y_most <= 0.0 {
        return None;
    }
    // Labels go where the lines lie further apart: at their ends, or at their starts.
    let is_end_taken = series.iter().filter_map(|one| one.samples.last()).any(|last| xs.last().is_some_and(|most| last.x >= *most));
    let ends = Scale::new(t, &xs, y_most, (4.0, if is_end_taken { LABEL_WIDTH } else { 0.0 }));
    let starts = Scale::new(t, &xs, y_most, (LABEL_WIDTH + 6.0, 0.0));
    let at_end = collisions(&marks(&series, &ends, true)) <= collisions(&marks(&series, &starts, false));
    let scale = if at_end { ends } else { starts };
    let labels = apart(marks(&series, &scale, at_end));
    Some(Chart {
        t,
        id: "",
        name: Key("chart-total"),
        axes: Key("chart-decode-axes"),
        alternative: Key("chart-total-alternative"),
        x_name: Key("chart-decode-x"),
        left: place(scale.left),
        middle: place((scale.left + RIGHT) / 2.0),
        grid: scale.grid(t),
        ticks: ticks(xs.iter().map(|x| (scale.x(*x), t.figure(Some(*x), 0))), 20.0),
        lines: lines(&series, &scale),
        labels,
    })
}

fn prefill_chart(t: Messages, run: &RunView) -> Option<Chart> {
    let rows =
        run.prefill.iter().filter_map(|row| Some((row.context_tokens, row.tokens_per_second.filter(|y| y.is_finite() && *y > 0.0)?)));
    let rows: Vec<(u64, f64)> = rows.filter(|(context, _)| *context > 0).collect();
    let xs: Vec<f64> = rows.iter().map(|(context, _)| tokens(*context)).collect();
    let y_most = rows.iter().map(|(_, y)| *y).fold(0.0, f64::max);
    if rows.len() < 2 {
        return None;
    }
    let scale = Scale::new(t, &xs, y_most, (11.0, 32.0));
    let samples: Vec<Sample> = rows.iter().map(|(context, y)| Sample { x: tokens(*context), y: *y, is_queued: false }).collect();
    let mut labels: Vec<Mark> = Vec::new();
    for sample in &samples {
        let (x, y) = (scale.x(sample.x) + 6.0, scale.y(sample.y) - 5.0);
        if labels.last().is_none_or(|last| x - last.x >= LABEL_WIDTH || (y - last.y).abs() >= LABEL_HEIGHT) {
            labels.push(Mark { x, y, anchor: "start", text: t.figure(Some(sample.y), 0) });
        }
    }
    Some(Chart {
        t,
        id: "prefill",
        name: Key("chart-prefill"),
        axes: Key("chart-prefill-axes"),
        alternative: Key("chart-prefill-alternative"),
        x_name: Key("chart-prefill-x"),
        left: place(scale.left),
        middle: place((scale.left + RIGHT) / 2.0),
        grid: scale.grid(t),
        ticks: ticks(rows.iter().map(|(context, _)| (scale.x(tokens(*context)), t.context(*context))), LABEL_WIDTH),
        lines: lines(&[Series { name: String::new(), samples }], &scale).into_iter().map(|line| Line { shade: 2, ..line }).collect(),
        labels,
    })
}

/// Contexts are far below the integers that an f64 holds exactly.
fn tokens(context: u64) -> f64 {
    u32::try_from(context).map_or(f64::from(u32::MAX), f64::from)
}

/// Light ones first, so that dark ones lie above.
fn lines(series: &[Series], scale: &Scale) -> Vec<Line> {
    let of_shade = |index: usize| if series.len() <= LINE_SHADES { index + 1 } else { 1 + index * LINE_SHADES / series.len() };
    let line = |(index, one): (usize, &Series)| {
        let (mut solid, mut dashed) = (Vec::new(), Vec::new());
        for pair in one.samples.windows(2) {
            if let [from, to] = pair {
                let path = if from.is_queued || to.is_queued { &mut dashed } else { &mut solid };
                path.push(format!(
                    "M{} {}L{} {}",
                    place(scale.x(from.x)),
                    place(scale.y(from.y)),
                    place(scale.x(to.x)),
                    place(scale.y(to.y))
                ));
            }
        }
        let point = |sample: &Sample| Point { x: place(scale.x(sample.x)), y: place(scale.y(sample.y)), is_hollow: sample.is_queued };
        Line { shade: of_shade(index), solid: joined(&solid), dashed: joined(&dashed), points: one.samples.iter().map(point).collect() }
    };
    series.iter().enumerate().rev().map(line).collect()
}

/// Segments as one path: a segment that begins where the last one ended goes on from there.
fn joined(segments: &[String]) -> String {
    let mut path = String::new();
    let mut end = "";
    for segment in segments {
        let (from, to) = segment.split_once('L').unwrap_or((segment, ""));
        if from.strip_prefix('M') != Some(end) {
            path.push_str(from);
        }
        path.push('L');
        path.push_str(to);
        end = to;
    }
    path
}

fn marks(series: &[Series], scale: &Scale, at_end: bool) -> Vec<Mark> {
    let mark = |one: &Series| {
        let sample = if at_end { one.samples.last()? } else { one.samples.first()? };
        let (x, anchor) = if at_end { (scale.x(sample.x) + 7.0, "start") } else { (scale.x(sample.x) - 8.0, "end") };
        Some(Mark { x, y: scale.y(sample.y) + 4.0, anchor, text: one.name.clone() })
    };
    series.iter().filter_map(mark).collect()
}

fn touch(a: &Mark, b: &Mark) -> bool {
    (a.x - b.x).abs() < LABEL_WIDTH && (a.y - b.y).abs() < LABEL_HEIGHT
}

fn collisions(marks: &[Mark]) -> usize {
    marks.iter().enumerate().map(|(index, a)| marks.iter().skip(index + 1).filter(|b| touch(a, b)).count()).sum()
}

/// Moves labels that touch: from the top down, each below those it would cover; then up again where the axis stops them.
fn apart(mut marks: Vec<Mark>) -> Vec<Mark> {
    marks.sort_by(|a, b| a.y.total_cmp(&b.y));
    // Half of what is missing is taken above, so that labels stay beside their lines.
    for _ in 0..24 {
        let mut is_moved = false;
        for above in 0..marks.len() {
            for below in above + 1..marks.len() {
                let (Some(a), Some(b)) = (marks.get(above), marks.get(below)) else { continue };
                if !touch(a, b) {
                    continue;
                }
                let missing = (LABEL_HEIGHT - (b.y - a.y)) / 2.0 + 0.05;
                if let Some(mark) = marks.get_mut(above) {
                    mark.y -= missing;
                }
                if let Some(mark) = marks.get_mut(below) {
                    mark.y += missing;
                }
                is_moved = true;
            }
        }
        if !is_moved {
            break;
        }
    }
    marks
}
