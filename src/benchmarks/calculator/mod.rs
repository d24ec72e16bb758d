//! The decode calculator: what a model takes of a machine's memory, and how fast it decodes and prefills there.
//!
//! One implementation for the API, the pages and the physical checks; pure: no database, no clock. Answers are ranges with their kind: what
//! a run measured is shown as it is, what lies between measured cells is interpolated, what lies near them extrapolated, what was measured
//! on other hardware scaled by bandwidth, and only without any of these the formula's range stands alone (calc.md, section 4).
//!
//! Invariants: `low ≤ value ≤ high`; queued cells are never fitted; the same question and runs give the same answer.

pub mod anchor;
pub mod answer;
pub mod ceiling;
pub mod decode;
pub mod evaluate;
pub mod measured;
pub mod memory;
pub mod prefill;

use serde::Serialize;
use utoipa::ToSchema;

pub use anchor::Surface;
pub use answer::{Answer, Basis, CellAnswer, Inputs, MemoryAnswer, PrefillAnswer, Reason, answer};
pub use ceiling::Stated;
pub use decode::Priors;
pub use evaluate::{Genuine, Report, evaluate};
pub use measured::{Anchor, Figure, Seen};
pub use memory::{KvFormat, MemoryFit, WeightBits, Weights};

use crate::catalog::{HardwareModel, Model};

/// Mean length of what is generated while a cell is measured, on top of the context.
pub const GENERATED_TOKENS: f64 = 1_000.0;

/// Where a speed comes from, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SpeedKind)]
pub enum Kind {
    Measured,
    Interpolated,
    Extrapolated,
    Scaled,
    Estimated,
}

/// A value and the bounds it is expected within.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
#[schema(as = SpeedRange)]
pub struct Range {
    pub low: f64,
    pub value: f64,
    pub high: f64,
}

impl Range {
    pub const fn exact(value: f64) -> Self {
        Self { low: value, value, high: value }
    }

    /// `value` ± a share of it.
    pub fn around(value: f64, share: f64) -> Self {
        Self { low: value * (1.0 - share), value, high: value * (1.0 + share) }
    }

    pub fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// A model on a machine, with the formats it is kept in.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    pub hardware: &'a HardwareModel,
    pub gpu_count: u32,
    /// Memory of one GPU, where it is not the catalog's.
    pub memory_gib: Option<f64>,
    pub model: &'a Model,
    pub weights: Weights,
    pub kv: KvFormat,
}

/// Counts, bytes and tokens as numbers to compute with.
#[expect(clippy::cast_precision_loss, reason = "all are far below 2^52")]
pub(crate) const fn real(count: u64) -> f64 {
    count as f64
}
