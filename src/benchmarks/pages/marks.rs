//! The marks that say how far a figure can be believed: the verdict's badge, the evidence level's steps, the readings of a run. Other
//! domains' pages show runs with them too.

use askama::Template;

use super::super::{
    matrix::{Cell, CellStatus},
    model::RunView,
    verdict::Verdict,
};
use crate::web::html::{context, count, figure};

const TICK: &str = "M2.5 8.5l3.5 3.5 7.5-8";
const TRIANGLE: &str = "M8 2.5l6 11H2zM8 6.5v3.5M8 11.5v1";
const CROSS: &str = "M3.5 3.5l9 9M12.5 3.5l-9 9";

/// A verdict in a frame. The tick is for Measured alone.
#[derive(Template, Clone, Copy)]
#[template(path = "parts/status.html")]
pub struct StatusMark {
    class: &'static str,
    icon: &'static str,
    word: &'static str,
}

impl StatusMark {
    pub const MEASURED: Self = Self { class: "ok", icon: TICK, word: "Measured" };
    /// Was measured; something has changed or run out since.
    pub const STALE: Self = Self { class: "warn", icon: TRIANGLE, word: "Stale" };

    /// A verified run whose machine has changed since is stale.
    pub const fn of(verdict: Verdict, is_stale: bool) -> Self {
        match verdict {
            Verdict::Verified if is_stale => Self::STALE,
            Verdict::Verified => Self::MEASURED,
            Verdict::NeedsReview => Self { class: "warn", icon: TRIANGLE, word: "Needs review" },
            Verdict::Rejected => Self { class: "bad", icon: CROSS, word: "Rejected" },
        }
    }
}

/// The levels in words, weakest first (evidence.md 0).
const LEVELS: [(&str, &str, &str); 4] = [
    ("reported", "Reported", "a person typed the figures"),
    ("document", "Document", "a tool document that passed every check"),
    ("challenged", "Challenged", "cells drawn at random for this machine"),
    ("remeasured", "Remeasured", "our own probe of the endpoint agreed"),
];

fn steps_of(level: &str) -> usize {
    LEVELS.iter().position(|(code, ..)| *code == level).map_or(0, |index| index + 1)
}

/// Four rising steps, filled up to the level, and its word.
#[derive(Template, Clone)]
#[template(path = "parts/level.html")]
pub struct LevelMark {
    filled: usize,
    word: &'static str,
}

impl LevelMark {
    pub fn of(level: &str) -> Self {
        let filled = steps_of(level);
        let word = filled.checked_sub(1).and_then(|index| LEVELS.get(index)).map_or("No evidence", |(_, word, _)| word);
        Self { filled, word }
    }

    fn steps(&self) -> [(&'static str, &'static str, &'static str); 4] {
        [("0.5", "8.5", "3"), ("6", "6", "5.5"), ("11.5", "3.5", "8"), ("17", "1", "10.5")]
    }
}

/// One level of the ladder that the evidence panel shows.
pub struct Rung {
    pub word: &'static str,
    pub meaning: &'static str,
    pub is_reached: bool,
}

/// Every level with what it means; those that the run has reached are marked.
pub fn ladder(level: &str) -> Vec<Rung> {
    let reached = steps_of(level);
    LEVELS.iter().enumerate().map(|(index, (_, word, meaning))| Rung { word, meaning, is_reached: index < reached }).collect()
}

/// One of at most five figures at the top, with the condition it was measured under.
pub struct Reading {
    pub name: String,
    pub value: String,
    pub unit: &'static str,
    pub condition: String,
}

/// The figures at the top of a run; a queued cell is never one of them.
pub fn readings(run: &RunView) -> Vec<Reading> {
    let valid: Vec<&Cell> = run.decode.iter().filter(|c| c.status == CellStatus::Valid).collect();
    let total = |cell: &Cell| figure(cell.total_tokens_per_second, 1);
    let mut readings = Vec::new();
    if let Some(cell) = valid.iter().find(|c| c.context_tokens == 0 && c.concurrency == 1) {
        readings.push(reading("One request, no context", total(cell), "tok/s", ttft(cell.ttft_ms)));
    }
    let speed = |c: &&&Cell| c.total_tokens_per_second.unwrap_or(0.0);
    if let Some(cell) = valid.iter().max_by(|a, b| speed(a).total_cmp(&speed(b))) {
        let requests = if cell.concurrency == 1 { "request" } else { "requests" };
        let condition = format!("{} {requests}, context {}", cell.concurrency, context(cell.context_tokens));
        readings.push(reading("Best total without a queue", total(cell), "tok/s", condition));
    }
    if let Some(row) = run.prefill.iter().find(|p| p.tokens_per_second.is_some()) {
        let name = format!("Prefill at {}", context(row.context_tokens));
        readings.push(reading(&name, figure(row.tokens_per_second, 0), "tok/s", ttft(row.ttft_ms)));
    }
    if let Some(cell) = valid.iter().filter(|c| c.concurrency == 1 && c.context_tokens > 0).max_by_key(|c| c.context_tokens) {
        let name = format!("One request at {}", context(cell.context_tokens));
        let prefill = run.prefill.iter().find(|row| row.context_tokens == cell.context_tokens).and_then(|row| row.ttft_ms);
        let condition = prefill.map_or_else(|| ttft(cell.ttft_ms), |ms| format!("prefill {} ms", figure(Some(ms), 0)));
        readings.push(reading(&name, total(cell), "tok/s", condition));
    }
    readings.extend(kv_reading(run));
    readings
}

fn kv_reading(run: &RunView) -> Option<Reading> {
    let at_least = run.kv_capacity.at_least_tokens?;
    let condition = run.kv_capacity.below_tokens.map_or_else(String::new, |below| format!("and fewer than {}", count(Some(below))));
    Some(reading("KV cache holds", format!("≥ {}", count(Some(at_least))), "tokens", condition))
}

fn ttft(ms: Option<f64>) -> String {
    format!("TTFT {} ms", figure(ms, 0))
}

fn reading(name: &str, value: String, unit: &'static str, condition: String) -> Reading {
    Reading { name: name.to_owned(), value, unit, condition }
}
