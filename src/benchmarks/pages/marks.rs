//! The marks that say how far a figure can be believed: the verdict's badge, the evidence level's steps, the readings of a run. Other
//! domains' pages show runs with them too.

use std::borrow::Cow;

use askama::Template;

use super::super::{
    matrix::{Cell, CellStatus},
    model::RunView,
    verdict::Verdict,
};
use crate::web::html::{Key, Messages};

const TICK: &str = "M2.5 8.5l3.5 3.5 7.5-8";
const TRIANGLE: &str = "M8 2.5l6 11H2zM8 6.5v3.5M8 11.5v1";
const CROSS: &str = "M3.5 3.5l9 9M12.5 3.5l-9 9";

/// A verdict in a frame. The tick is for Measured alone.
#[derive(Template, Clone)]
#[template(path = "parts/status.html")]
pub struct StatusMark {
    class: &'static str,
    icon: &'static str,
    word: Cow<'static, str>,
}

impl StatusMark {
    pub fn measured(t: Messages) -> Self {
        Self { class: "ok", icon: TICK, word: t.text("status-measured") }
    }

    /// Was measured; something has changed or run out since.
    pub fn stale(t: Messages) -> Self {
        Self { class: "warn", icon: TRIANGLE, word: t.text("status-stale") }
    }

    /// A verified run whose machine has changed since is stale.
    pub fn of(t: Messages, verdict: Verdict, is_stale: bool) -> Self {
        match verdict {
            Verdict::Verified if is_stale => Self::stale(t),
            Verdict::Verified => Self::measured(t),
            Verdict::NeedsReview => Self { class: "warn", icon: TRIANGLE, word: t.text("status-needs-review") },
            Verdict::Rejected => Self { class: "bad", icon: CROSS, word: t.text("status-rejected") },
        }
    }
}

/// The levels, weakest first (evidence.md 0): the code, its word, what it means.
const LEVELS: [(&str, Key, Key); 4] = [
    ("reported", Key("level-reported"), Key("level-reported-means")),
    ("document", Key("level-document"), Key("level-document-means")),
    ("challenged", Key("level-challenged"), Key("level-challenged-means")),
    ("remeasured", Key("level-remeasured"), Key("level-remeasured-means")),
];

fn steps_of(level: &str) -> usize {
    LEVELS.iter().position(|(code, ..)| *code == level).map_or(0, |index| index + 1)
}

/// Four rising steps, filled up to the level, and its word.
#[derive(Template, Clone)]
#[template(path = "parts/level.html")]
pub struct LevelMark {
    filled: usize,
    word: Cow<'static, str>,
}

impl LevelMark {
    pub fn of(t: Messages, level: &str) -> Self {
        let filled = steps_of(level);
        let word = filled.checked_sub(1).and_then(|index| LEVELS.get(index)).map_or(Key("level-none"), |(_, word, _)| *word);
        Self { filled, word: t.text(word) }
    }

    fn steps(&self) -> [(&'static str, &'static str, &'static str); 4] {
        [("0.5", "8.5", "3"), ("6", "6", "5.5"), ("11.5", "3.5", "8"), ("17", "1", "10.5")]
    }
}

/// One level of the ladder that the evidence panel shows.
pub struct Rung {
    pub word: Cow<'static, str>,
    pub meaning: Cow<'static, str>,
    pub is_reached: bool,
}

/// Every level with what it means; those that the run has reached are marked.
#[derive(Template)]
#[template(path = "parts/ladder.html")]
pub struct Ladder {
    t: Messages,
    rungs: Vec<Rung>,
}

impl Ladder {
    pub fn of(t: Messages, level: &str) -> Self {
        Self { t, rungs: Self::reached(t, steps_of(level)) }
    }

    /// Every level there is.
    pub fn all(t: Messages) -> Vec<Rung> {
        Self::reached(t, LEVELS.len())
    }

    fn reached(t: Messages, steps: usize) -> Vec<Rung> {
        let rung = |(index, (_, word, meaning)): (usize, &(&str, Key, Key))| Rung {
            word: t.text(word),
            meaning: t.text(meaning),
            is_reached: index < steps,
        };
        LEVELS.iter().enumerate().map(rung).collect()
    }
}

/// One of at most five figures at the top, with the condition it was measured under.
struct Reading {
    name: String,
    value: String,
    unit: Cow<'static, str>,
    condition: String,
}

/// The figures at the top of a run; a queued cell is never one of them.
#[derive(Template)]
#[template(path = "parts/readings.html")]
pub struct Readings {
    all: Vec<Reading>,
}

impl Readings {
    pub fn of(t: Messages, run: &RunView) -> Self {
        let valid: Vec<&Cell> = run.decode.iter().filter(|c| c.status == CellStatus::Valid).collect();
        let all = [single(t, &valid), best(t, &valid), prefill(t, run), longest(t, run, &valid), kv_cache(t, run)];
        Self { all: all.into_iter().flatten().collect() }
    }
}

fn single(t: Messages, valid: &[&Cell]) -> Option<Reading> {
    let cell = valid.iter().find(|c| c.context_tokens == 0 && c.concurrency == 1)?;
    Some(Reading {
        name: t.text("reading-single").into_owned(),
        value: t.figure(cell.total_tokens_per_second, 1),
        unit: t.text("unit-tokens-per-second"),
        condition: t.with("reading-ttft", &[("ms", t.figure(cell.ttft_ms, 0).into())]),
    })
}

fn best(t: Messages, valid: &[&Cell]) -> Option<Reading> {
    let speed = |c: &&&Cell| c.total_tokens_per_second.unwrap_or(0.0);
    let cell = valid.iter().max_by(|a, b| speed(a).total_cmp(&speed(b)))?;
    Some(Reading {
        name: t.text("reading-best").into_owned(),
        value: t.figure(cell.total_tokens_per_second, 1),
        unit: t.text("unit-tokens-per-second"),
        condition: t.with("reading-best-at", &[("requests", cell.concurrency.into()), ("context", t.context(cell.context_tokens).into())]),
    })
}

fn prefill(t: Messages, run: &RunView) -> Option<Reading> {
    let row = run.prefill.iter().find(|row| row.tokens_per_second.is_some())?;
    Some(Reading {
        name: t.with("reading-prefill", &[("context", t.context(row.context_tokens).into())]),
        value: t.figure(row.tokens_per_second, 0),
        unit: t.text("unit-tokens-per-second"),
        condition: t.with("reading-ttft", &[("ms", t.figure(row.ttft_ms, 0).into())]),
    })
}

/// One request at the longest context, with what its prompt takes when nothing is cached.
fn longest(t: Messages, run: &RunView, valid: &[&Cell]) -> Option<Reading> {
    let cell = valid.iter().filter(|c| c.concurrency == 1 && c.context_tokens > 0).max_by_key(|c| c.context_tokens)?;
    let cold = run.prefill.iter().find(|row| row.context_tokens == cell.context_tokens).and_then(|row| row.ttft_ms);
    Some(Reading {
        name: t.with("reading-longest", &[("context", t.context(cell.context_tokens).into())]),
        value: t.figure(cell.total_tokens_per_second, 1),
        unit: t.text("unit-tokens-per-second"),
        condition: match cold {
            Some(ms) => t.with("reading-prefill-takes", &[("ms", t.figure(Some(ms), 0).into())]),
            None => t.with("reading-ttft", &[("ms", t.figure(cell.ttft_ms, 0).into())]),
        },
    })
}

fn kv_cache(t: Messages, run: &RunView) -> Option<Reading> {
    let at_least = run.kv_capacity.at_least_tokens?;
    let below = run.kv_capacity.below_tokens;
    Some(Reading {
        name: t.text("reading-kv").into_owned(),
        value: format!("≥ {}", t.count(Some(at_least))),
        unit: t.text("unit-tokens"),
        condition: below.map(|below| t.with("reading-kv-below", &[("tokens", t.count(Some(below)).into())])).unwrap_or_default(),
    })
}
