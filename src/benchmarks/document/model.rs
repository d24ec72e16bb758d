//! The typed view of a document. Names follow the tool's; units are in evidence.md 1.2–1.4.

use chrono::NaiveDateTime;

use crate::benchmarks::verdict::SeenHardware;

/// A version string and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    pub text: String,
    /// Major, minor, patch; `None` when the text has no such shape.
    pub parts: Option<(u32, u32, u32)>,
}

#[derive(Debug, Clone, Default)]
pub struct Metadata {
    /// `rigmark-measure 0.1.0`: another program that writes the same shape.
    pub client: Option<String>,
    pub engine_version: Option<String>,
    pub engine: Option<String>,
    pub model: Option<String>,
    /// Local time without zone, written when the run was saved.
    pub timestamp: Option<NaiveDateTime>,
    pub timestamp_malformed: bool,
    pub decode_mode: Option<String>,
    pub duration_per_test: Option<f64>,
    pub request_count: Option<u64>,
    pub burst_request_count: Option<u64>,
    pub burst_requests_per_concurrency: Option<u64>,
    pub run_burst: bool,
    pub prefill_mode: Option<String>,
    pub prefill_only: bool,
    pub skip_prefill: bool,
    pub max_tokens: Option<u64>,
    /// 0: unknown.
    pub max_total_tokens: Option<u64>,
    pub metrics_available: Option<bool>,
    pub concurrency_levels: Vec<u64>,
    pub context_lengths: Vec<u64>,
    /// The fixed-token diagnostic: speed of no natural text.
    pub forced_tokens: bool,
}

/// The arguments the tool was started with, as its startup block repeats them.
#[derive(Debug, Clone, Default)]
pub struct Args {
    pub present: bool,
    pub concurrency: Option<Vec<u64>>,
    pub contexts: Option<Vec<u64>>,
    pub prefill_contexts: Option<Vec<u64>>,
    pub max_tokens: Option<u64>,
    pub duration: Option<f64>,
    pub request_count: Option<u64>,
    pub kv_budget: Option<u64>,
}

/// One stream's life, warm-up included. Seconds and tokens; 0 where there was nothing to measure.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sample {
    pub ttft: f64,
    pub time_to_second_token: f64,
    pub latency: f64,
    pub inter_token_latency: f64,
    pub chunk_inter_token_latency: f64,
    pub input_tokens: f64,
    pub output_tokens: f64,
    pub output_tps_per_user: f64,
    pub e2e_output_tps_per_user: f64,
    pub completed: bool,
}

/// Average and percentiles of one quantity over the samples.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stats {
    pub avg: Option<f64>,
    pub p50: Option<f64>,
    pub p90: Option<f64>,
    pub p99: Option<f64>,
}

/// One row of `results` or `burst_results`.
#[derive(Debug, Clone, Default)]
pub struct RawCell {
    pub concurrency: u64,
    pub context_tokens: u64,
    pub benchmark_mode: Option<String>,
    pub request_count_target: Option<f64>,
    pub measurement_seconds: Option<f64>,
    pub measurement_wall_seconds: Option<f64>,
    pub client_output_tokens: Option<f64>,
    pub server_output_tokens: Option<f64>,
    pub aggregate_source: Option<String>,
    pub aggregate_tps: Option<f64>,
    pub failure_reason: Option<String>,
    pub per_request_avg_tps: Option<f64>,
    pub ttft: Stats,
    pub time_to_second_token: Stats,
    pub request_latency: Stats,
    pub inter_token_latency: Stats,
    pub chunk_inter_token_latency: Stats,
    pub output_tps_per_user: Stats,
    pub e2e_output_tps_per_user: Stats,
    pub input_seq_len_avg: Option<f64>,
    pub output_seq_len: Stats,
    pub request_count: Option<f64>,
    pub completed_request_count: Option<f64>,
    pub samples: Option<Vec<Sample>>,
    pub total_tokens: Option<f64>,
    pub wall_time: Option<f64>,
    pub num_completed: Option<f64>,
    pub num_errors: Option<f64>,
    pub server_gen_throughput: Option<f64>,
    pub server_utilization: Option<f64>,
    pub server_spec_accept_rate: Option<f64>,
    pub server_spec_accept_length: Option<f64>,
    pub server_steps_per_s: Option<f64>,
    pub server_accept_len_effective: Option<f64>,
    pub avg_running_reqs: Option<f64>,
    pub max_running_reqs: Option<f64>,
    pub effective_concurrency: Option<f64>,
    pub avg_queue_reqs: Option<f64>,
    pub max_queue_reqs: Option<f64>,
    pub queue_fraction: Option<f64>,
    pub underfilled: Option<bool>,
    pub warmup_timed_out: Option<bool>,
    pub warmup_duration: Option<f64>,
    pub capacity_limited: Option<bool>,
    pub loop_detected: bool,
    pub telemetry: Telemetry,
}

/// What nvidia-smi showed on the client's machine during a cell, over all its GPUs; `None` where it showed nothing or zero.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Telemetry {
    pub gpu_count: Option<f64>,
    pub gpu_util_max_pct: Option<f64>,
    pub power_avg_w: Option<f64>,
    pub power_limit_w: Option<f64>,
    pub vram_used_max_mib: Option<f64>,
    pub vram_total_mib: Option<f64>,
}

/// One row of `prefill`.
#[derive(Debug, Clone, Default)]
pub struct RawPrefill {
    pub context_tokens: u64,
    pub ttft_seconds: Option<f64>,
    pub prefill_seconds: Option<f64>,
    pub client_ttft_seconds: Option<f64>,
    pub tok_per_sec: Option<f64>,
    pub client_tok_per_sec: Option<f64>,
    pub prompt_tokens: Option<f64>,
    pub samples: Option<f64>,
    pub method: Option<String>,
    /// Prompt tokens that came from the engine's cache, where the server said so.
    pub cached_tokens: Option<f64>,
}

/// One entry of a summary table; `None` stands for null.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SummaryEntry {
    pub context_tokens: u64,
    pub concurrency: u64,
    pub value: Option<f64>,
}

/// What the wrapper adds (lil-bench).
#[derive(Debug, Clone, Default)]
pub struct Wrapper {
    pub schema: String,
    pub known_schema: bool,
    pub profile: Option<String>,
    pub run_id: Option<String>,
    pub status: Option<String>,
    pub tool_version: Option<String>,
    pub integrity_status: Option<String>,
    pub max_model_len: Option<u64>,
    pub max_num_seqs: Option<u64>,
    pub kv_tokens: Option<u64>,
    /// (context, concurrency) that the plan left out with a reason.
    pub plan_skipped: Vec<(u64, u64)>,
    pub served_model_root: Option<String>,
    pub engine_version: Option<String>,
    pub speculation: bool,
}

/// A parsed document.
#[derive(Debug, Clone, Default)]
pub struct Document {
    pub wrapper: Option<Wrapper>,
    pub version: Option<Version>,
    /// The version that the startup block names.
    pub startup_version: Option<String>,
    pub metadata: Metadata,
    pub args: Args,
    pub event_log: Vec<String>,
    pub prefill: Vec<RawPrefill>,
    pub cells: Vec<RawCell>,
    pub burst_cells: Vec<RawCell>,
    pub summary: Option<Vec<SummaryEntry>>,
    pub burst_summary: Option<Vec<SummaryEntry>>,
    pub hardware: SeenHardware,
    /// Measurements besides the matrix (coding peak, fixed-token route): ignored, but they may have left lines in the log.
    pub has_extra_measurements: bool,
    /// The engine was reached on the client's own machine.
    pub server_is_local: bool,
}
