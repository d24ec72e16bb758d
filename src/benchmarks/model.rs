//! Rows of the benchmarks' tables and what the API shows of runs and challenges.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    challenge::ChallengeSpec,
    checks::Finding,
    claim::{Claim, ClaimedEngine, ClaimedHardware},
    history::model::RunEventView,
    matrix::{Cell, KvCapacity, Matrix, PrefillRow},
    remeasure::PublicRemeasurement,
    verdict::{RunSettings, SeenHardware, Tool, Verdict},
};
use crate::{
    base::{
        Error, Result,
        given::optional_object,
        id::{AccountId, ChallengeId, MachineId, RunId},
        shape::Sha256Text,
    },
    db::{
        JsonText,
        schema::{challenges, run_cells, run_standings, runs},
    },
};

/// How strong the evidence of a run is, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceLevel {
    Reported,
    Document,
    Challenged,
    Remeasured,
}

impl EvidenceLevel {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reported => "reported",
            Self::Document => "document",
            Self::Challenged => "challenged",
            Self::Remeasured => "remeasured",
        }
    }

    /// # Errors
    /// `internal` for a word that this program does not know.
    pub fn parse(text: &str) -> Result<Self> {
        let all = [Self::Reported, Self::Document, Self::Challenged, Self::Remeasured];
        let found = all.into_iter().find(|level| level.as_str() == text);
        found.ok_or_else(|| Error::internal("an evidence level that is not known"))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    #[default]
    Public,
    /// Seen by whoever has the address; never backs a badge.
    Unlisted,
}

impl Visibility {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Unlisted => "unlisted",
        }
    }
}

/// One row of `challenges`.
#[derive(Debug, Clone, Queryable, Selectable, Insertable)]
#[diesel(table_name = challenges, check_for_backend(diesel::pg::Pg))]
pub struct Challenge {
    pub id: ChallengeId,
    pub machine_id: MachineId,
    pub account_id: AccountId,
    pub spec: serde_json::Value,
    pub issued_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
    pub used_at: Option<DateTime<Utc>>,
    /// The model the host named, which the answer is of.
    pub model: Option<String>,
}

impl Challenge {
    /// # Errors
    /// `internal` when the stored spec is of no known shape.
    pub fn spec(&self) -> Result<ChallengeSpec> {
        serde_json::from_value(self.spec.clone()).map_err(Error::internal)
    }
}

/// One row of `runs`.
#[derive(Debug, Clone, Queryable, Selectable, Insertable)]
#[diesel(table_name = runs, check_for_backend(diesel::pg::Pg))]
pub struct Run {
    pub id: RunId,
    pub account_id: AccountId,
    pub machine_id: Option<MachineId>,
    pub challenge_id: Option<ChallengeId>,
    pub status: String,
    pub evidence_level: String,
    pub visibility: String,
    pub model_slug: Option<String>,
    pub model_name: String,
    pub publisher: Option<String>,
    pub quantization: Option<String>,
    pub hardware_slug: Option<String>,
    pub gpu_count: Option<i32>,
    pub engine_name: Option<String>,
    /// None where the launch command names none.
    pub kv_cache_dtype: Option<String>,
    pub title: String,
    pub summary: String,
    pub detail: JsonText,
    pub rules_version: String,
    pub document_sha256: String,
    pub decode_single_tokens_per_second: Option<f64>,
    pub decode_peak_tokens_per_second: Option<f64>,
    pub prefill_peak_tokens_per_second: Option<f64>,
    pub upload_key: String,
    pub created_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
    pub stale_at: Option<DateTime<Utc>>,
    pub stale_reason: Option<String>,
    pub reviewed_at: Option<DateTime<Utc>>,
    pub reviewed_by: Option<AccountId>,
    pub review_reason: Option<String>,
}

/// One row of `run_standings`: what became of a run after its verdict.
#[derive(Debug, Clone, Default, Queryable, Selectable)]
#[diesel(table_name = run_standings, check_for_backend(diesel::pg::Pg))]
pub struct Standing {
    /// When a re-measurement last agreed with it.
    pub remeasured_at: Option<DateTime<Utc>>,
    /// When one disagreed; null when a later one agreed.
    pub disputed_at: Option<DateTime<Utc>>,
    /// Until then a stale run still backs a listing.
    pub stale_until: Option<DateTime<Utc>>,
    pub engine_version_seen: Option<String>,
    /// [`super::staleness::BaseLine`].
    pub base_line: serde_json::Value,
    /// As the run shows them ([`super::remeasure::PublicRemeasurement`]), newest first.
    pub remeasurements: serde_json::Value,
}

/// What lists show: a run without its `detail`.
#[derive(Debug, Clone, Queryable)]
pub struct RunRow {
    pub id: RunId,
    pub by_handle: String,
    pub status: String,
    pub evidence_level: String,
    pub model_slug: Option<String>,
    pub publisher: Option<String>,
    pub quantization: Option<String>,
    pub hardware_slug: Option<String>,
    pub gpu_count: Option<i32>,
    pub engine_name: Option<String>,
    pub title: String,
    pub summary: String,
    pub decode_single_tokens_per_second: Option<f64>,
    pub decode_peak_tokens_per_second: Option<f64>,
    pub prefill_peak_tokens_per_second: Option<f64>,
    pub created_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
}

/// One row of `run_cells`.
#[derive(Debug, Clone, Insertable)]
#[diesel(table_name = run_cells)]
pub struct RunCell {
    pub run_id: RunId,
    pub context_tokens: i32,
    pub concurrency: i32,
    pub status: String,
    pub total_tokens_per_second: Option<f64>,
    pub per_request_tokens_per_second: Option<f64>,
    pub ttft_ms: Option<f64>,
    pub itl_ms: Option<f64>,
    pub cold_ttft_ms: Option<f64>,
}

/// What `runs.detail` holds: all that follows from the document and the claim.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunDetail {
    pub claim: Claim,
    pub tool: Tool,
    pub run: RunSettings,
    pub hardware_seen: SeenHardware,
    pub engine_summary: String,
    pub matrix_summary: String,
    pub matrix: Matrix,
    pub findings: Vec<Finding>,
    pub notes: Option<String>,
    #[serde(default)]
    pub circumstances: Circumstances,
}

/// What surrounded a document when it came in and is written nowhere else: the rules are applied to it again with the same.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Circumstances {
    /// As the machine was registered then.
    pub machine_hardware: Option<ClaimedHardware>,
    /// What the machine's engine said when it was asked.
    pub max_model_len: Option<u64>,
}

/// Hardware as a run's page shows it.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
#[schema(as = RunHardwareView)]
pub struct HardwareView {
    /// Slug of the catalog's hardware model, when the name is known.
    pub slug: Option<String>,
    /// `Discrete GPU` …
    pub kind: Option<String>,
    pub gpu: Option<String>,
    pub gpu_count: Option<i32>,
    pub vram_gib: Option<f64>,
    pub cpu: Option<String>,
    pub ram_gib: Option<f64>,
    pub os: Option<String>,
    pub driver: Option<String>,
    pub power_limit_w: Option<f64>,
}

/// Engine as a run's page shows it.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct EngineView {
    pub name: Option<String>,
    pub version: Option<String>,
    pub quantization: Option<String>,
    pub backend: Option<String>,
    pub build: Option<String>,
}

/// How the run was done, as its page shows it.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub struct RunSettingsView {
    pub served_model: Option<String>,
    pub revision: Option<String>,
    pub decode_test: Option<String>,
    pub prefill_mode: Option<String>,
    pub duration_seconds: Option<f64>,
    pub max_output_tokens: Option<u64>,
}

/// One check's result.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RunModelView {
    pub slug: Option<String>,
    pub name: String,
    pub hf_id: Option<String>,
    pub publisher: Option<String>,
}

/// What a run is called beside its verdict, in the OpenAPI document.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum RunLabel {
    Measured,
    Unverified,
}

/// A run as the API shows it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RunView {
    pub id: RunId,
    pub status: Verdict,
    /// `measured` when verified, else `unverified`.
    #[schema(value_type = RunLabel)]
    pub label: &'static str,
    #[schema(value_type = EvidenceLevel)]
    pub evidence_level: String,
    #[schema(value_type = Visibility)]
    pub visibility: String,
    pub title: String,
    /// Engine, version and quantization, then contexts and concurrency levels.
    pub summary: String,
    pub engine_summary: String,
    pub matrix_summary: String,
    /// Handle of the uploader.
    pub by: String,
    pub tool: Tool,
    pub model: RunModelView,
    pub hardware: HardwareView,
    pub engine: EngineView,
    pub run: RunSettingsView,
    pub launch_command: Option<String>,
    pub notes: Option<String>,
    pub prefill: Vec<PrefillRow>,
    pub decode: Vec<Cell>,
    pub kv_capacity: KvCapacity,
    pub checks: Vec<Finding>,
    pub rules_version: String,
    /// Of the redacted document.
    #[schema(value_type = Sha256Text)]
    pub document_sha256: String,
    pub machine_id: Option<MachineId>,
    pub challenge_id: Option<ChallengeId>,
    pub created_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
    pub stale_at: Option<DateTime<Utc>>,
    pub stale_reason: Option<String>,
    /// Until then a stale run still backs a listing.
    pub stale_until: Option<DateTime<Utc>>,
    /// When a re-measurement last agreed with it.
    pub remeasured_at: Option<DateTime<Utc>>,
    /// When one disagreed, unless a later one agreed.
    pub disputed_at: Option<DateTime<Utc>>,
    /// What the server measured itself, newest first, at most ten.
    pub remeasurements: Vec<PublicRemeasurement>,
    pub reviewed_at: Option<DateTime<Utc>>,
    pub review_reason: Option<String>,
}

/// A run in a list.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RunSummaryView {
    pub id: RunId,
    pub status: Verdict,
    #[schema(value_type = RunLabel)]
    pub label: &'static str,
    #[schema(value_type = EvidenceLevel)]
    pub evidence_level: String,
    pub title: String,
    pub summary: String,
    pub by: String,
    pub model: Option<String>,
    pub publisher: Option<String>,
    pub quantization: Option<String>,
    pub hardware: Option<String>,
    pub gpu_count: Option<i32>,
    pub engine: Option<String>,
    /// Total tokens per second of one request without context.
    pub decode_single_tokens_per_second: Option<f64>,
    /// The highest valid total of the matrix.
    pub decode_peak_tokens_per_second: Option<f64>,
    pub prefill_peak_tokens_per_second: Option<f64>,
    pub created_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
}

/// A run whose badge has become stale.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct StaleRun {
    #[serde(flatten)]
    pub run: RunSummaryView,
    pub machine_id: Option<MachineId>,
    /// What has changed since it was measured.
    pub stale_reason: String,
    /// Until then it still backs a listing.
    pub stale_until: DateTime<Utc>,
}

/// A run beside another one, with its figure at the cell that they are compared by.
#[derive(Debug, Clone)]
pub struct RelatedRun {
    pub id: RunId,
    /// Of the same model and quantization; otherwise of the same hardware.
    pub is_of_model: bool,
    /// Slug of the catalog, or the name it was measured under.
    pub model: String,
    pub quantization: Option<String>,
    pub hardware_slug: Option<String>,
    pub gpu_count: Option<i32>,
    pub engine_name: Option<String>,
    pub evidence_level: String,
    pub decode_single_tokens_per_second: Option<f64>,
    pub prefill_peak_tokens_per_second: Option<f64>,
    /// Its valid cell nearest to the one that runs are compared by.
    pub cell: Option<RelatedCell>,
}

#[derive(Debug, Clone, Copy)]
pub struct RelatedCell {
    pub context_tokens: u64,
    pub concurrency: u32,
    pub total_tokens_per_second: f64,
}

/// A run with those that are read beside it.
#[derive(Debug, Clone)]
pub struct RunWithRelated {
    pub run: RunView,
    /// The catalog's slug of its quantization, or what was typed.
    pub quantization: Option<String>,
    pub related: Vec<RelatedRun>,
    /// The newest events, oldest of them first.
    pub history: Vec<RunEventView>,
}

/// A challenge as the API shows it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ChallengeView {
    pub id: ChallengeId,
    pub machine_id: MachineId,
    /// What is measured.
    pub model: Option<String>,
    /// The name under which the engine serves it: the commands ask for this one.
    pub served_model: Option<String>,
    pub quantization: Option<String>,
    pub contexts: Vec<u64>,
    pub concurrency_levels: Vec<u32>,
    pub prefill_contexts: Vec<u64>,
    pub duration_seconds: f64,
    pub max_tokens: u64,
    /// Runs the stock tool on the machine.
    pub command: String,
    /// Runs our own client on the machine, and uploads.
    pub measure_command: String,
    pub issued_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
    pub used_at: Option<DateTime<Utc>>,
}

/// What makes an upload of the benchmark tool the same as another.
#[derive(Debug, Clone)]
pub struct ToolUpload {
    /// `run:` and the hash of the wrapped document's `run_id`, or `body:` and that of a plain document's content.
    pub id: String,
    /// Of the document as it came, whatever its spacing and the order of its keys.
    pub content_sha256: String,
    /// Of a wrapped document, as its run keeps it.
    pub run_id: Option<String>,
    /// By the tool's own route: refused when the id is taken. Another upload is stored all the same, and says so (`run_replayed`).
    pub is_by_tool: bool,
}

/// What surrounds the document in an upload. `document` itself is read apart, by the rules for documents.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UploadFields {
    pub machine_id: Option<MachineId>,
    pub challenge_id: Option<ChallengeId>,
    #[serde(default, deserialize_with = "optional_object")]
    pub hardware: Option<ClaimedHardware>,
    #[serde(default, deserialize_with = "optional_object")]
    pub model: Option<super::claim::ClaimedModel>,
    #[serde(default, deserialize_with = "optional_object")]
    pub engine: Option<ClaimedEngine>,
    pub launch_command: Option<String>,
    pub notes: Option<String>,
    pub visibility: Option<Visibility>,
}

/// A run document and what its uploader says of it.
// For the OpenAPI document: an upload is read by `UploadFields` and the rules for documents.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UploadBody {
    /// The benchmark's JSON, plain or wrapped.
    #[schema(value_type = Object)]
    pub document: serde_json::Value,
    pub machine_id: Option<MachineId>,
    pub challenge_id: Option<ChallengeId>,
    pub hardware: Option<ClaimedHardware>,
    pub model: Option<super::claim::ClaimedModel>,
    pub engine: Option<ClaimedEngine>,
    #[schema(max_length = 8_000)]
    pub launch_command: Option<String>,
    #[schema(max_length = 2_000)]
    pub notes: Option<String>,
    pub visibility: Option<Visibility>,
}

/// Payload of the job `run_changed`: which run to look at again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunChanged {
    pub run_id: RunId,
}
