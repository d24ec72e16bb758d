//! Rows of recomputations.

use chrono::{DateTime, Utc};
use diesel::prelude::*;

use crate::{
    base::id::RunId,
    benchmarks::model::{Challenge, Run},
    db::{JsonText, schema::reverify_passes},
};

/// One row of `reverify_passes`: how far one recomputation of all runs has come.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = reverify_passes, check_for_backend(diesel::pg::Pg))]
pub struct Pass {
    pub id: i64,
    pub rules_version: String,
    pub runs_total: i64,
    pub runs_done: i64,
    pub runs_changed: i64,
    pub runs_unreadable: i64,
    pub last_run_id: Option<RunId>,
    pub begun_at: DateTime<Utc>,
    pub finished_at: Option<DateTime<Utc>>,
}

/// What became of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Kept,
    Changed,
    Unreadable,
}

/// A run with what it is judged by.
pub struct Stored {
    pub run: Run,
    /// The original, gzipped, and its hash; none where they are lost.
    pub document: Option<(Vec<u8>, String)>,
    pub challenge: Option<Challenge>,
}

/// What the rules make of a run.
pub struct Recomputed<'a> {
    pub status: &'a str,
    pub evidence_level: &'a str,
    pub title: &'a str,
    pub summary: &'a str,
    pub detail: JsonText,
    pub rules_version: &'a str,
    pub document_sha256: &'a str,
    pub decode_single_tokens_per_second: Option<f64>,
    pub decode_peak_tokens_per_second: Option<f64>,
    pub prefill_peak_tokens_per_second: Option<f64>,
    pub kv_cache_dtype: Option<String>,
}
