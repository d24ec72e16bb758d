//! The verdict: the worst finding decides; and everything the service stores and a page shows of a run ([`super::assess`] makes it).
//!
//! Invariants: verdict, findings, matrix and hash come from the redacted copy alone, so that anyone can repeat them offline; the same
//! input gives the same assessment.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::challenge::{AnswerFacts, ChallengeSpec};
use super::checks::{self, Finding, Severity};
use super::claim::{Claim, ClaimedHardware};
use super::matrix::Matrix;

/// The version of all rules together. A change of any check's outcome raises it; stored verdicts are then recomputed.
pub const RULES_VERSION: &str = "2026-11-30.7";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Verified,
    NeedsReview,
    Rejected,
}

impl Verdict {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::NeedsReview => "needs_review",
            Self::Rejected => "rejected",
        }
    }

    /// An error rejects, a suspicion asks for a person, notes never count (evidence.md 0).
    pub fn of(findings: &[Finding]) -> Self {
        match findings.iter().map(|finding| finding.severity).max() {
            Some(Severity::Error) => Self::Rejected,
            Some(Severity::Suspicious) => Self::NeedsReview,
            Some(Severity::Note) | None => Self::Verified,
        }
    }
}

/// The program that wrote the document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Tool {
    pub name: String,
    pub version: Option<String>,
}

/// How the run was set up, in the words of the page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunSettings {
    pub served_model: Option<String>,
    pub decode_test: Option<String>,
    pub prefill_mode: Option<String>,
    pub duration_seconds: Option<f64>,
    pub max_output_tokens: Option<u64>,
    /// The engine as the tool recognised it (`vllm`, `sglang`, `openai_proxy`).
    pub engine: Option<String>,
    /// The engine's version where the document names it.
    pub engine_version: Option<String>,
}

/// One GPU as the client's machine or the wrapper reported it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SeenGpu {
    pub name: String,
    pub memory_mib: Option<f64>,
    pub power_limit_w: Option<f64>,
}

/// Hardware facts that stand in the document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SeenHardware {
    pub gpus: Vec<SeenGpu>,
    /// GPUs counted by telemetry, where no list names them.
    pub gpu_count: Option<u32>,
    pub vram_total_mib: Option<f64>,
    pub driver: Option<String>,
    pub cpu: Option<String>,
    pub ram_mib: Option<f64>,
    pub os: Option<String>,
}

/// What surrounds a document when it is judged.
#[derive(Debug, Clone, Default)]
pub struct AssessContext {
    pub challenge: Option<(ChallengeSpec, AnswerFacts)>,
    /// The hardware registered for the machine; stands above the claim's.
    pub machine_hardware: Option<ClaimedHardware>,
    /// How much it counts that a document shows no GPU: a note in the sandbox, suspicious elsewhere.
    pub hardware_unseen: HardwareUnseen,
    pub uploaded_at: Option<DateTime<Utc>>,
}

/// How much a document without GPU data counts (design.md, Decisions).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HardwareUnseen {
    #[default]
    Note,
    Suspicious,
}

/// Everything that follows from a document, its claim and its context.
#[derive(Debug, Clone)]
pub struct Assessment {
    pub verdict: Verdict,
    pub rules_version: String,
    pub findings: Vec<Finding>,
    pub matrix: Matrix,
    pub tool: Tool,
    pub run: RunSettings,
    pub hardware_seen: SeenHardware,
    /// `Nemotron-Cascade-2-30B-A3B-AWQ-4bit on RTX 3090 24GB`.
    pub title: String,
    /// `vllm · 0.32.0 · AWQ 4-bit`.
    pub engine_summary: String,
    /// `6 contexts (0–248K) × 8 concurrency levels (1–128) · prefill at 8K, 16K`.
    pub matrix_summary: String,
    /// The redacted claim.
    pub claim: Claim,
    /// The redacted document in canonical bytes, and their SHA-256 in lower-case hex.
    pub redacted: Vec<u8>,
    pub document_sha256: String,
    /// Of every measured cell, for finding copies ([`super::copies`]).
    pub fingerprint: Vec<FingerprintCell>,
    /// The run's own random word, where the log still has it, or the wrapper's run id.
    pub nonce: Option<String>,
    pub run_id: Option<String>,
    /// SHA-256 of each device identifier in the original (salted hashes, UUIDs); never public.
    pub device_hashes: Vec<String>,
    /// Seconds the cells took together, for the fit between issue and upload.
    pub wall_seconds: f64,
}

/// What tells one measured cell from every other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FingerprintCell {
    pub context_tokens: u64,
    pub concurrency: u32,
    pub output_tokens: u64,
    pub measured_micros: u64,
    /// From the cell's start to its end, with all its digits.
    pub wall_seconds: Option<f64>,
    /// The median.
    pub ttft_ms: Option<f64>,
}

impl Assessment {
    /// Adds findings that only the service can make (duplicates) and decides again.
    pub fn with_findings(mut self, more: impl IntoIterator<Item = Finding>) -> Self {
        self.findings.extend(more);
        self.findings = checks::merge(self.findings);
        self.verdict = Verdict::of(&self.findings);
        self
    }
}
