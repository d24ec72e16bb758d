//! Re-measuring: which cells are drawn, what the matrix says of them, and whether what was measured agrees. The work itself is
//! `service::remeasure`.
//!
//! Invariants: all but `model` and `queries` is pure, so the same numbers give the same outcome. Slower counts, faster is a note, unless it is
//! so much faster that it cannot be the same machine and model. What could not be measured decides nothing.

mod compare;
mod draw;
pub mod model;
pub(super) mod queries;
mod reference;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use compare::{FASTER_FACTOR_MAX, Judgement, Measured, Tolerances, compare, judge};
pub use draw::{Limits, draw};
pub use reference::{Expected, Reference};

use crate::measure::spot::Answers;

/// Why a machine is re-measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = RemeasurementReason)]
pub enum Reason {
    /// Its owner asked.
    Requested,
    /// At a random time while it is listed and idle.
    Random,
    /// After a disagreement, with cells drawn anew.
    SecondTry,
}

impl Reason {
    pub const ALL: [Self; 3] = [Self::Requested, Self::Random, Self::SecondTry];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Random => "random",
            Self::SecondTry => "second_try",
        }
    }
}

/// Where a re-measurement stands. `queued` and `running` are open; of those a machine has at most one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = RemeasurementStatus)]
pub enum Status {
    Queued,
    Running,
    /// What was measured fits the matrix.
    Agreed,
    /// It does not.
    Disagreed,
    /// The engine gave too little to decide; nothing follows from it.
    Failed,
    /// A rental began or the machine was changed; nothing follows from it.
    Interrupted,
}

impl Status {
    pub const ALL: [Self; 6] = [Self::Queued, Self::Running, Self::Agreed, Self::Disagreed, Self::Failed, Self::Interrupted];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Agreed => "agreed",
            Self::Disagreed => "disagreed",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }

    pub const fn is_open(self) -> bool {
        matches!(self, Self::Queued | Self::Running)
    }
}

/// A cell to be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedCell {
    pub context_tokens: u64,
    pub concurrency: u32,
}

/// What is compared of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = RemeasuredQuantity)]
pub enum Quantity {
    /// Milliseconds between the tokens of the one stream.
    TimeBetweenTokens,
    /// Tokens per second of all streams together.
    TotalTokensPerSecond,
    /// Milliseconds to the first token of a prompt never seen, less the way there and back.
    ColdTtft,
}

/// A quantity as it was measured and as the matrix has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = RemeasuredFigure)]
pub struct Figure {
    pub quantity: Quantity,
    pub measured: f64,
    /// Interpolated between the measured cells of the matrix.
    pub expected: f64,
    /// Share by which it may be slower.
    pub tolerance: f64,
    pub within: bool,
    /// Faster by more than the tolerance. Counts only in decode, and there beyond twice the speed.
    pub is_faster: bool,
}

/// One re-measured cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = RemeasuredSample)]
pub struct Sample {
    pub context_tokens: u64,
    pub concurrency: u32,
    /// A cell that is out of its bounds is measured again at once; the better one counts.
    pub tries: u32,
    pub figures: Vec<Figure>,
    pub answers: Answers,
    /// Fewer bytes of text for each counted token than text of that many tokens has: the engine's counts are inflated.
    pub is_inflated: bool,
    pub within: bool,
    /// Why the cell decides nothing, when it does not.
    pub inconclusive: Option<String>,
}

/// The outcome of a finished re-measurement as the run shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PublicRemeasurement {
    pub at: chrono::DateTime<chrono::Utc>,
    pub outcome: Status,
    /// In words, when it is not `agreed`.
    pub detail: Option<String>,
    pub answers: Answers,
    pub samples: Vec<Sample>,
}
