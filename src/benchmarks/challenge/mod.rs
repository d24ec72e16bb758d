//! Challenges: what a machine is asked to measure, the commands that do it, and whether a document answers. Pure: the clock, the dice and
//! everything that must be looked up come in as values.
//!
//! Invariants: at least two contexts lie off the usual grid; context 0 × 1 is always asked; an answer holds every asked cell, measured or
//! over capacity by the one KV capacity, or dropped by a limit that the engine itself states.

pub mod answer;
mod command;
mod draw;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use command::{CommandTarget, measure_command, tool_command};
pub use draw::{DrawRequest, Profile, draw, is_usual_concurrency, is_usual_context};

/// What a challenge asks for. Stored as it is; a change of the drawing never changes an issued one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChallengeSpec {
    pub contexts: Vec<u64>,
    pub concurrency_levels: Vec<u32>,
    pub prefill_contexts: Vec<u64>,
    pub duration_seconds: f64,
    pub max_tokens: u64,
    /// The id that the engine serves the model under; the tool's `--model`.
    pub model: Option<String>,
    pub quantization: Option<String>,
    pub issued_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
    /// What the dice were thrown with, so that a drawing can be repeated.
    pub seed: u64,
}

/// What the service looked up about an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnswerFacts {
    /// When the bytes arrived, on the server's clock.
    pub uploaded_at: DateTime<Utc>,
    /// Whether these bytes were uploaded before, by anyone.
    pub bytes_seen: bool,
    /// Whether the run nonce of the log was seen before; `None` when the log has lost it.
    pub nonce_seen: Option<bool>,
    /// The engine's own limits, when the machine's engine was asked for them.
    pub max_running_requests: Option<u32>,
    pub max_model_len: Option<u64>,
    pub kv_tokens: Option<u64>,
}
