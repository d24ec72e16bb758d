//! What the server measured itself of a run, in the evidence panel: each cell beside what the matrix says of it.

use std::borrow::Cow;

use askama::Template;

use super::{
    super::{
        model::RunView,
        remeasure::{Figure, PublicRemeasurement, Quantity, Sample, Status},
    },
    others::cell_name,
};
use crate::web::html::{Key, Messages};

/// The last outcomes, newest first.
#[derive(Template)]
#[template(path = "parts/remeasured.html")]
pub(super) struct Remeasured {
    t: Messages,
    outcomes: Vec<Outcome>,
}

struct Outcome {
    on: String,
    word: Cow<'static, str>,
    detail: Option<String>,
    /// How many streams answered rightly what they were asked of their prompt.
    answers: String,
    cells: Vec<CellLine>,
}

struct CellLine {
    name: String,
    /// Measured, and what the matrix says: in the order of the head.
    figures: [Option<(String, String)>; 3],
    result: Cow<'static, str>,
}

impl Remeasured {
    pub fn of(t: Messages, run: &RunView) -> Self {
        Self { t, outcomes: run.remeasurements.iter().map(|outcome| self::outcome(t, outcome)).collect() }
    }
}

fn outcome(t: Messages, outcome: &PublicRemeasurement) -> Outcome {
    let answers = outcome.answers;
    let asked = answers.right + answers.wrong;
    Outcome {
        on: t.date(&outcome.at),
        word: t.text(if outcome.outcome == Status::Agreed { Key("remeasured-agreed") } else { Key("remeasured-disagreed") }),
        detail: outcome.detail.clone(),
        answers: t.with("remeasured-answers", &[("right", answers.right.into()), ("asked", asked.into())]),
        cells: outcome.samples.iter().map(|sample| cell(t, sample)).collect(),
    }
}

fn cell(t: Messages, sample: &Sample) -> CellLine {
    let figure = |quantity: Quantity, decimals: usize| {
        let found = sample.figures.iter().find(|figure| figure.quantity == quantity);
        found.map(|Figure { measured, expected, .. }| (t.figure(Some(*measured), decimals), t.figure(Some(*expected), decimals)))
    };
    let result = match sample {
        Sample { inconclusive: Some(_), .. } => Key("remeasured-open"),
        Sample { within: true, .. } => Key("remeasured-within"),
        Sample { .. } => Key("remeasured-outside"),
    };
    CellLine {
        name: cell_name(t, sample.context_tokens, sample.concurrency),
        figures: [figure(Quantity::TimeBetweenTokens, 1), figure(Quantity::TotalTokensPerSecond, 1), figure(Quantity::ColdTtft, 0)],
        result: t.text(result),
    }
}
