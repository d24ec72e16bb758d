//! The checks: each is a small function over the document and its matrix that reports findings under a stable code.
//!
//! Invariants: a check reads only the redacted document, so anyone can repeat it; a finding's message holds no text of the document beyond
//! numbers and cleaned names; a check whose assumption does not hold reports a note or nothing, never an error (evidence.md 0).

mod table;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use table::{CHECKS, CheckInfo, Group, info};

/// What a finding does to the verdict: an error rejects, a suspicion asks a person, a note is only said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Note,
    Suspicious,
    Error,
}

/// The part of the matrix a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Prefill,
    Decode,
    Burst,
}

/// A cell by its coordinates; a prefill row has concurrency 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
pub struct CellRef {
    pub phase: Phase,
    pub context_tokens: u64,
    pub concurrency: u32,
}

/// One thing a check found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Finding {
    /// Stable, snake_case; one row of [`CHECKS`].
    #[schema(value_type = String)]
    pub code: Cow<'static, str>,
    pub severity: Severity,
    pub message: String,
    #[serde(default)]
    pub cells: Vec<CellRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<String>,
}

impl Finding {
    pub fn new(code: &'static str, severity: Severity, message: impl Into<String>) -> Self {
        Self { code: Cow::Borrowed(code), severity, message: message.into(), cells: Vec::new(), expected: None, observed: None }
    }

    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Error, message)
    }

    pub fn suspicious(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Suspicious, message)
    }

    pub fn note(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Note, message)
    }

    pub fn at(mut self, cell: CellRef) -> Self {
        self.cells.push(cell);
        self
    }

    pub fn values(mut self, expected: impl ToString, observed: impl ToString) -> Self {
        self.expected = Some(expected.to_string());
        self.observed = Some(observed.to_string());
        self
    }
}
