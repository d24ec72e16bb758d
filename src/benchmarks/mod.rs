//! Benchmarks: documents, matrices, checks, verdicts and challenges.
//!
//! Owns the way from bytes to a verdict, and the runs and challenges that come of it. What leads to a verdict ([`assess()`] and all it uses) is
//! pure: no database, no clock, no network. A document is parsed once, redacted first, and judged on the redacted copy, so that
//! `rigmark verify` repeats offline what the service said. Only `service`, `queries` and `api` know the rest of the world.

pub mod assess;
pub mod calculator;
pub mod challenge;
pub mod checks;
pub mod claim;
pub mod copies;
pub mod document;
pub mod history;
pub mod json;
pub mod log;
pub mod matrix;
pub mod quantization;
pub mod redact;
pub mod remeasure;
pub mod reverify;
mod review;
pub mod staleness;
pub mod verdict;

pub use api::original_download;
pub use assess::{assess, assess_value, context_name, device_finding, duplicate_finding, measured_cells};
pub use boards::{LeaderboardOffer, LeaderboardQuery, LeaderboardRow, LeaderboardRun, Metric, Place, Ranking};
pub use challenge::{AnswerFacts, ChallengeSpec, CommandTarget, DrawRequest, Profile, draw, measure_command, tool_command};
pub use checks::{CHECKS, CellRef, CheckInfo, Finding, Group, Phase, Severity, Weight};
pub use claim::{Claim, ClaimedEngine, ClaimedHardware, ClaimedModel};
pub use copies::is_near_duplicate;
pub use document::{Envelope, read_envelope, read_value};
pub use history::{Doer, Event};
pub use jobs::{EngineIdentity, Remeasure, RemeasureHandler};
pub use json::{Unreadable, UnreadableCode};
pub use matrix::{Cell, CellStatus, DecodeMode, KvCapacity, Matrix, PrefillRow, WorkloadMatch, comparison_cell, comparison_cell_sql};
pub use pages::{HistorySection, Ladder, LevelMark, MatrixTable, OtherRuns, Readings, RunBody, StatusMark, cell_name};
pub use quantization::Quantization;
pub use verdict::{AssessContext, Assessment, FingerprintCell, HardwareUnseen, RULES_VERSION, RunSettings, SeenHardware, Tool, Verdict};
pub mod api;
pub mod boards;
pub mod export;
pub mod jobs;
pub mod methods;
pub mod model;
pub mod pages;
mod queries;
pub mod reports;
pub mod service;
pub mod tool;

/// Kind of the job that tells of a run whose verdict, level, visibility or freshness changed. Its payload is [`model::RunChanged`].
pub const RUN_CHANGED: &str = "run_changed";
