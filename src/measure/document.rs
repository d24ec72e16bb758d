//! The result document, in the plain shape of the public benchmark. Every number in it was measured or follows from measured ones by the
//! benchmark's own definitions; nothing is smoothed or rounded but where that shape rounds.

use std::collections::{BTreeMap, VecDeque};

use chrono::Local;
use serde_json::{Map, Value, json};

use super::cell::{CellRecord, inter_token_latency};
use super::record::StreamRecord;
use super::stats::{Spread, mean, round};
use crate::base::clock::Clock;

/// Version of the document shape; who wrote it stands in `metadata.client`.
pub const SHAPE_VERSION: &str = "0.7.3";
const LOG_LINES_MAX: usize = 80;

/// Times and lines of the run; keeps the last 80, as readers expect.
pub struct EventLog {
    clock: Clock,
    lines: VecDeque<String>,
}

impl EventLog {
    pub fn new(clock: Clock) -> Self {
        Self { clock, lines: VecDeque::new() }
    }

    /// Puts the lines of an earlier run before those of this.
    pub fn go_on(&mut self, lines: Vec<String>) {
        let kept = lines.len().saturating_sub(LOG_LINES_MAX);
        self.lines.extend(lines.into_iter().skip(kept));
    }

    /// Adds a line with the local time of day; returns it.
    pub fn add(&mut self, text: &str) -> String {
        let line = format!("{} {text}", self.clock.wall_now().with_timezone(&Local).format("%H:%M:%S"));
        if self.lines.len() == LOG_LINES_MAX {
            self.lines.pop_front();
        }
        self.lines.push_back(line.clone());
        line
    }

    /// Local time without a zone, as the shape has it.
    pub fn timestamp(&self) -> String {
        self.clock.wall_now().with_timezone(&Local).format("%Y-%m-%dT%H:%M:%S%.6f").to_string()
    }

    pub fn lines(&self) -> Vec<&str> {
        self.lines.iter().map(String::as_str).collect()
    }
}

/// `16384` as `16k`, the way the log and the arguments write contexts; others as they are, for the log's reader has to find the cell again.
pub fn context_label(tokens: u64) -> String {
    if tokens > 0 && tokens.is_multiple_of(1024) { format!("{}k", tokens / 1024) } else { tokens.to_string() }
}

/// One prefill measurement: a prompt that no cache knew.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrefillRow {
    pub ttft_seconds: f64,
    pub prompt_tokens: u64,
    /// `integrated_scout` for contexts of the decode matrix, `scout_only` for others.
    pub method: &'static str,
    /// What the engine said it had in its cache; `None` when it says nothing of it.
    pub cached_tokens: Option<u64>,
}

impl PrefillRow {
    /// `None` when no token came.
    pub fn of(record: &StreamRecord, context_tokens: u64, method: &'static str) -> Option<Self> {
        let prompt_tokens = record.prompt_tokens.unwrap_or(context_tokens);
        Some(Self { ttft_seconds: record.ttft()?.as_secs_f64(), prompt_tokens, method, cached_tokens: record.cached_tokens })
    }

    pub fn tokens_per_second(&self) -> f64 {
        self.prompt_tokens as f64 / self.ttft_seconds
    }

    /// As it stands in `prefill`.
    pub fn to_json(self) -> Value {
        let (ttft, speed) = (round(self.ttft_seconds, 3), self.tokens_per_second().round());
        json!({
            "ttft_seconds": ttft, "prefill_seconds": ttft, "tok_per_sec": speed, "client_ttft_seconds": ttft, "client_tok_per_sec": speed,
            "prompt_tokens": self.prompt_tokens, "samples": 1, "method": self.method, "hardware_summary": {},
            "server_validation": {
                "method": "", "tok_per_sec": 0.0, "prefill_seconds": 0.0, "prompt_tokens": 0, "samples": 0, "invalid_reason": "",
                "request_prompt_tokens": if self.cached_tokens.is_some() { self.prompt_tokens } else { 0 },
                "cached_tokens": self.cached_tokens.unwrap_or(0),
                "token_source": if self.cached_tokens.is_some() { "openai_usage" } else { "" },
            },
        })
    }
}

/// Everything a document is made of.
pub struct DocumentParts<'a> {
    pub metadata: Value,
    pub startup_diagnostics: Value,
    pub log: &'a EventLog,
    /// [`PrefillRow::to_json`] by context.
    pub prefill: &'a BTreeMap<u64, Value>,
    pub cells: &'a [CellRow],
}

/// The whole document.
pub fn document(parts: &DocumentParts<'_>) -> Value {
    let mut summary: BTreeMap<u64, BTreeMap<u32, Option<f64>>> = BTreeMap::new();
    for cell in parts.cells {
        let total = (cell.total_tokens_per_second >= 0.0).then_some(cell.total_tokens_per_second);
        summary.entry(cell.context_tokens).or_default().insert(cell.concurrency, total);
    }
    let prefill: Map<String, Value> = parts.prefill.iter().map(|(context, row)| (context.to_string(), row.clone())).collect();
    json!({
        "metadata": parts.metadata,
        "startup_diagnostics": parts.startup_diagnostics,
        "nvidia_p2p_override": {}, "p2pmark": {"status": "not_run"}, "amd_fabric": {"status": "not_run"}, "hardware_run_summary": {},
        "event_log": parts.log.lines(),
        "prefill": prefill,
        "results": parts.cells.iter().map(|cell| Value::Object(cell.json.clone())).collect::<Vec<_>>(),
        "summary_table": summary,
        "burst_results": [], "burst_summary_table": {},
        "methodology": methodology(),
    })
}

fn methodology() -> Value {
    json!({
        "prefill": {
            "name": "Prefill", "present": true, "mode": "integrated_decode_scout", "formula": "prompt_tokens / TTFT",
            "notes": "One request with an unseen prompt before the first decode cell of each context, and one for each further prefill context.",
        },
        "sustained_decode": {
            "name": "Sustained Decode", "present": true,
            "formula": "completion tokens within the window / seconds from its start to its last token",
            "notes": "Tokens by continuous usage, or by chunks where the engine sends none. The window opens when all streams are steady.",
        },
        "burst_e2e_decode": {"name": "Burst / E2E Decode", "present": false, "status": "not run", "formula": "", "notes": ""},
        "acceptance_normalization": {"name": "Acceptance-normalized decode", "present": false, "formula": "", "notes": ""},
    })
}

/// A cell as it stands in `results`.
pub struct CellRow {
    pub context_tokens: u64,
    pub concurrency: u32,
    /// -4 for a cell that failed.
    pub total_tokens_per_second: f64,
    pub json: Map<String, Value>,
}

struct Sample {
    ttft: f64,
    second: f64,
    latency: f64,
    itl: f64,
    chunk_itl: f64,
    input_tokens: u64,
    output_tokens: u64,
    completed: bool,
}

impl Sample {
    fn of(stream: &StreamRecord, prompt_tokens: u64) -> Option<Self> {
        let (first, last) = (stream.marks.first()?, stream.marks.last()?);
        let second = stream.marks.iter().find(|mark| mark.tokens >= 2).map_or(0.0, |mark| mark.at.duration_since(first.at).as_secs_f64());
        let gaps = stream.marks.len().saturating_sub(1);
        let chunk_itl = if gaps == 0 { 0.0 } else { last.at.duration_since(first.at).as_secs_f64() / gaps as f64 };
        Some(Self {
            ttft: first.at.duration_since(stream.started).as_secs_f64(),
            second,
            // To the last token, not to `[DONE]`: TTFT and the times between tokens add up to it.
            latency: stream.completed.map_or(0.0, |_| last.at.duration_since(stream.started).as_secs_f64()),
            itl: inter_token_latency(stream),
            chunk_itl,
            input_tokens: stream.prompt_tokens.unwrap_or(prompt_tokens),
            output_tokens: last.tokens,
            completed: stream.completed.is_some(),
        })
    }

    fn tokens_per_second(&self) -> f64 {
        if self.itl > 0.0 { 1.0 / self.itl } else { 0.0 }
    }

    fn whole_tokens_per_second(&self) -> f64 {
        if self.latency > 0.0 { self.output_tokens as f64 / self.latency } else { 0.0 }
    }

    fn to_json(&self) -> Value {
        json!({
            "ttft": self.ttft, "time_to_second_token": self.second, "latency": self.latency, "inter_token_latency_avg": self.itl,
            "chunk_inter_token_latency_avg": self.chunk_itl, "input_tokens": self.input_tokens, "output_tokens": self.output_tokens,
            "output_tps_per_user": self.tokens_per_second(), "e2e_output_tps_per_user": self.whole_tokens_per_second(),
            "completed": self.completed,
        })
    }
}

impl CellRow {
    /// A row of an earlier document; `None` when it lacks its place or its speed.
    pub fn kept(json: Map<String, Value>) -> Option<Self> {
        let context_tokens = json.get("context_tokens")?.as_u64()?;
        let concurrency = u32::try_from(json.get("concurrency")?.as_u64()?).ok()?;
        Some(Self { context_tokens, concurrency, total_tokens_per_second: json.get("aggregate_tps")?.as_f64()?, json })
    }

    /// `prompt_tokens` is what the scout's usage said, for engines that do not repeat it.
    pub fn of(record: &CellRecord, prompt_tokens: u64) -> Self {
        let samples: Vec<Sample> = record.streams.iter().filter_map(|stream| Sample::of(stream, prompt_tokens)).collect();
        let failure = record.failure();
        let (tokens, seconds) = record.counted();
        let total = if failure.is_some() { -4.0 } else { record.total_tokens_per_second() };
        let source = match (&failure, record.streams.iter().any(|s| s.has_continuous_usage)) {
            (Some(_), _) => "invalid_stream_failure",
            (None, true) => "openai_continuous_usage",
            (None, false) => "openai_stream_chunks_fallback",
        };
        let plan = &record.plan;
        let concurrency = f64::from(plan.concurrency);
        let mut row = Map::new();
        let mut put = |name: &str, value: Value| row.insert(name.to_owned(), value);
        put("concurrency", json!(plan.concurrency));
        put("context_tokens", json!(plan.context_tokens));
        put("benchmark_mode", json!("duration"));
        put("request_count_target", json!(0));
        put("warmup_request_count", json!(0));
        put("measurement_seconds", json!(seconds));
        put("measurement_wall_seconds", json!(round((record.window_end - record.window_start).as_secs_f64(), 6)));
        put("client_output_tokens", json!(tokens));
        put("total_tokens", json!(tokens));
        put("server_output_tokens", json!(record.server.output_tokens));
        put("aggregate_source", json!(source));
        put("aggregate_tps", json!(total));
        put("per_request_avg_tps", json!(if total < 0.0 { total } else { total / concurrency }));
        put("failure_reason", json!(failure.unwrap_or_default()));
        put("wall_time", json!((record.joined - record.started).as_secs_f64()));
        put("num_completed", json!(plan.concurrency.saturating_sub(record.failed_workers)));
        put("num_errors", json!(record.failed_workers));
        put("request_count", json!(samples.len()));
        put("completed_request_count", json!(samples.iter().filter(|s| s.completed).count()));
        put("request_samples", samples.iter().map(Sample::to_json).collect());
        put_spreads(&mut row, &samples);
        put_server(&mut row, record, concurrency);
        put_unused(&mut row);
        Self { context_tokens: plan.context_tokens, concurrency: plan.concurrency, total_tokens_per_second: total, json: row }
    }

    /// A cell whose streams could not even be started.
    pub fn failed(context_tokens: u64, concurrency: u32, reason: &str) -> Self {
        let mut row = Map::new();
        let mut put = |name: &str, value: Value| row.insert(name.to_owned(), value);
        put("concurrency", json!(concurrency));
        put("context_tokens", json!(context_tokens));
        put("benchmark_mode", json!("duration"));
        put("aggregate_source", json!("invalid_stream_failure"));
        put("aggregate_tps", json!(-4.0));
        put("failure_reason", json!(reason));
        put("num_errors", json!(concurrency));
        for name in
            ["client_output_tokens", "server_output_tokens", "total_tokens", "request_count", "completed_request_count", "num_completed"]
        {
            put(name, json!(0));
        }
        for name in ["measurement_seconds", "measurement_wall_seconds", "wall_time", "per_request_avg_tps"] {
            put(name, json!(0.0));
        }
        put("request_samples", json!([]));
        put("capacity_limited", json!(false));
        put_spreads(&mut row, &[]);
        put_unused(&mut row);
        Self { context_tokens, concurrency, total_tokens_per_second: -4.0, json: row }
    }
}

fn put_spread(row: &mut Map<String, Value>, name: &str, values: impl Iterator<Item = f64>) {
    let spread = Spread::of(values);
    for (suffix, value) in [("avg", spread.avg), ("p50", spread.p50), ("p90", spread.p90), ("p99", spread.p99)] {
        row.insert(format!("{name}_{suffix}"), json!(value));
    }
}

fn put_spreads(row: &mut Map<String, Value>, samples: &[Sample]) {
    put_spread(row, "ttft", samples.iter().map(|s| s.ttft));
    put_spread(row, "time_to_second_token", samples.iter().map(|s| s.second));
    put_spread(row, "request_latency", samples.iter().map(|s| s.latency));
    put_spread(row, "inter_token_latency", samples.iter().map(|s| s.itl));
    put_spread(row, "chunk_inter_token_latency", samples.iter().map(|s| s.chunk_itl));
    put_spread(row, "output_tps_per_user", samples.iter().map(Sample::tokens_per_second));
    put_spread(row, "e2e_output_tps_per_user", samples.iter().map(Sample::whole_tokens_per_second));
    // Lengths are of the completed requests, or of all when none completed.
    let any_completed = samples.iter().any(|s| s.completed);
    let counted: Vec<&Sample> = samples.iter().filter(|s| s.completed || !any_completed).collect();
    put_spread(row, "output_seq_len", counted.iter().map(|s| s.output_tokens as f64));
    row.insert("input_seq_len_avg".to_owned(), json!(mean(&counted.iter().map(|s| s.input_tokens as f64).collect::<Vec<_>>())));
}

fn put_server(row: &mut Map<String, Value>, record: &CellRecord, concurrency: f64) {
    let gauges = &record.server.gauges;
    let average = |value: fn(&super::inspect::Gauges) -> f64| round(mean(&gauges.iter().map(value).collect::<Vec<_>>()), 1);
    let highest = |value: fn(&super::inspect::Gauges) -> f64| gauges.iter().map(value).fold(0.0, f64::max);
    let (running, running_max) = (average(|g| g.running), highest(|g| g.running));
    let waiting_max = highest(|g| g.waiting);
    let waiting_share = gauges.iter().filter(|g| g.waiting > 0.0).count() as f64 / gauges.len().max(1) as f64;
    let several = concurrency > 1.0 && !gauges.is_empty();
    let short_of_streams = several && (running_max < concurrency || running < 0.95 * concurrency);
    let limited = record.ready.timed_out || short_of_streams || waiting_max > 0.0;
    let mut put = |name: &str, value: Value| row.insert(name.to_owned(), value);
    put("avg_running_reqs", json!(running));
    put("effective_concurrency", json!(running));
    put("max_running_reqs", json!(running_max));
    put("avg_queue_reqs", json!(average(|g| g.waiting)));
    put("max_queue_reqs", json!(waiting_max));
    put("queue_fraction", json!(round(waiting_share, 3)));
    put("underfilled", json!(several && running < 0.98 * concurrency));
    put("capacity_limited", json!(limited));
    let seconds = record.server.seconds;
    put("server_gen_throughput", json!(if seconds > 0.0 { record.server.output_tokens as f64 / seconds } else { 0.0 }));
    put("server_utilization", json!(record.server.kv_usage_after));
    let (reason, timeout) = if record.ready.timed_out { ("", record.ready.reason.as_str()) } else { (record.ready.reason.as_str(), "") };
    put("warmup_timed_out", json!(record.ready.timed_out));
    put("warmup_duration", json!(round((record.ready.at - record.started).as_secs_f64(), 3)));
    put("ready_reason", json!(reason));
    put("timeout_reason", json!(timeout));
}

/// Fields of the shape for things this client does not do.
fn put_unused(row: &mut Map<String, Value>) {
    for name in ["server_spec_drafts", "server_spec_draft_tokens", "server_spec_accepted_tokens", "loop_diagnostics_omitted"] {
        row.insert(name.to_owned(), json!(0));
    }
    for name in [
        "server_spec_accept_rate",
        "server_spec_accept_length",
        "server_engine_steps",
        "server_steps_per_s",
        "server_accept_len_effective",
        "accept_norm_tps",
        "accept_norm_ref_len",
    ] {
        row.insert(name.to_owned(), json!(0.0));
    }
    row.insert("server_spec_pos_accept".to_owned(), json!([]));
    row.insert("loop_detection_enabled".to_owned(), json!(false));
    row.insert("loop_detected".to_owned(), json!(false));
    row.insert("loop_diagnostics".to_owned(), json!([]));
    row.insert("hardware_summary".to_owned(), json!({}));
}
