//! The one table of checks: what each code means, for the page of a run and the page of rules.

use serde::Serialize;
use utoipa::ToSchema;

/// Groups of evidence.md: exact arithmetic, tolerances, the physics of the hardware, and what surrounds the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Relations that the tool's own arithmetic makes exact.
    Exact,
    /// Relations that hold within a tolerance.
    Tolerance,
    /// What this hardware can do.
    Physical,
    /// Which cells there are, and which there should be.
    Structure,
    /// Versions, modes and what the run was.
    Document,
    /// The machine and its claim.
    Hardware,
    /// The answer to a challenge.
    Challenge,
    /// Copies of other runs.
    Duplicate,
}

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct CheckInfo {
    pub code: &'static str,
    pub group: Group,
    pub title: &'static str,
    pub explanation: &'static str,
}

macro_rules! table {
    ($($group:ident $code:literal $title:literal $explanation:literal;)*) => {
        /// Every code a finding can have.
        pub const CHECKS: &[CheckInfo] = &[$(CheckInfo { code: $code, group: Group::$group, title: $title, explanation: $explanation }),*];
    };
}

table! {
    Exact "total_mismatch" "Total is not tokens ÷ seconds" "x";
}

/// The row of a code.
pub fn info(code: &str) -> Option<&'static CheckInfo> {
    CHECKS.iter().find(|check| check.code == code)
}
