//! A whole run: look at the engine, calibrate, measure prefill and decode cells in the benchmark's order, write the document.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::cell::{CellPlan, CellRecord, Readiness, run_cell};
use super::document::{CellRow, DocumentParts, EventLog, PrefillRow, SHAPE_VERSION, context_label, document};
use super::hardware;
use super::inspect::{EngineFacts, EngineKind, inspect, scrape, thousands};
use super::prompt::Prompts;
use super::stream::{StreamRecord, one_token, request_body, run_request};
use crate::base::clock::{Clock, monotonic};
use crate::base::{Code, Error, Result};
use crate::engines::{EngineClient, Target};

/// Contexts above this have no prefill row.
const PREFILL_CONTEXT_MAX: u64 = 131_072;
/// More than the question and a chat template ever take.
const QUESTION_TOKENS_MAX: u64 = 256;
/// Room for the question, the chat template and the inexactness of a calibrated context.
const MODEL_LENGTH_MARGIN: u64 = 64;

const OPERATING_SYSTEM: &str = if cfg!(target_os = "macos") {
    "Darwin"
} else if cfg!(target_os = "linux") {
    "Linux"
} else {
    "other"
};

/// What is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct MatrixPlan {
    pub contexts: Vec<u64>,
    pub concurrency_levels: Vec<u32>,
    pub prefill_contexts: Vec<u64>,
    pub duration: Duration,
    pub max_tokens: u64,
}

/// News of a run for whoever shows it.
#[derive(Debug)]
pub enum Progress<'a> {
    /// A line of the event log.
    Line(&'a str),
    /// So many of so many steps are done; an estimate of the time left, and what comes next.
    Step { done: usize, of: usize, seconds_left: f64, next: String },
}

pub type Observer<'a> = &'a (dyn Fn(Progress<'_>) + Send + Sync);

/// A finished or interrupted run.
pub struct MatrixOutcome {
    pub document: Value,
    /// False when the run was interrupted: cells are missing.
    pub is_complete: bool,
    pub cells: Vec<CellRecord>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    Prefill(u64),
    Cell { context: u64, concurrency: u32, is_first_of_context: bool },
}

struct Run<'a> {
    client: &'a EngineClient,
    target: &'a Target,
    plan: &'a MatrixPlan,
    facts: EngineFacts,
    prompts: Prompts,
    log: EventLog,
    observer: Observer<'a>,
    prefill: BTreeMap<u64, PrefillRow>,
    rows: Vec<CellRow>,
    cells: Vec<CellRecord>,
    /// Tokens of each context's prompt as the engine counted them.
    prompt_tokens: BTreeMap<u64, u64>,
}

/// Runs the matrix. `cancel` ends it early; what was measured by then is in the document.
pub async fn run_matrix(
    client: &EngineClient,
    target: &Target,
    model: Option<&str>,
    plan: &MatrixPlan,
    observer: Observer<'_>,
    cancel: &CancellationToken,
) -> Result<MatrixOutcome> {
    let facts = inspect(client, target, model).await?;
    let log = EventLog::new(Clock::default());
    let prompts = Prompts::new(Prompts::nonce());
    let mut run = Run {
        client,
        target,
        plan,
        facts,
        prompts,
        log,
        observer,
        prefill: BTreeMap::new(),
        rows: Vec::new(),
        cells: Vec::new(),
        prompt_tokens: BTreeMap::new(),
    };
    // A simulated engine runs on no GPU: one that happens to be in this computer would contradict the machine that it stands for.
    let hardware = match run.facts.is_simulated() {
        true => json!({"nvidia_smi_error": "the engine is a simulated one"}),
        false => hardware::nvidia_smi().await,
    };
    let is_complete = tokio::select! {
        biased;
        () = cancel.cancelled() => false,
        done = run.measure() => { done?; true }
    };
    let startup = run.startup_diagnostics(hardware);
    let parts =
        DocumentParts { metadata: run.metadata(), startup_diagnostics: startup, log: &run.log, prefill: &run.prefill, cells: &run.rows };
    let document = document(&parts);
    Ok(MatrixOutcome { document, is_complete, cells: run.cells })
}

impl Run<'_> {
    fn say(&mut self, text: &str) {
        let line = self.log.add(text);
        (self.observer)(Progress::Line(&line));
    }

    async fn measure(&mut self) -> Result<()> {
        self.announce();
        self.calibrate().await?;
        let steps = self.steps();
        self.say("startup startup preparation done");
        self.warm_engine().await?;
        for (done, step) in steps.iter().enumerate() {
            let left = steps.iter().skip(done).map(|step| self.estimate(*step)).sum();
            (self.observer)(Progress::Step { done, of: steps.len(), seconds_left: left, next: describe(*step) });
            match *step {
                Step::Prefill(context) => self.prefill_only(context).await,
                Step::Cell { context, concurrency, is_first_of_context } => self.cell(context, concurrency, is_first_of_context).await,
            }
        }
        (self.observer)(Progress::Step { done: steps.len(), of: steps.len(), seconds_left: 0.0, next: String::new() });
        Ok(())
    }

    fn announce(&mut self) {
        let kind = self.facts.kind.as_str();
        self.say(&format!("benchmark start engine={kind}"));
        self.say(&format!("startup server={} model={}", self.target.address, self.facts.model.id));
        let contexts: Vec<String> = self.plan.contexts.iter().map(|c| context_label(*c)).collect();
        let levels: Vec<String> = self.plan.concurrency_levels.iter().map(u32::to_string).collect();
        self.say(&format!("startup decode concurrency={} contexts={}", levels.join(","), contexts.join(",")));
        let name = match self.facts.kind {
            EngineKind::Vllm => "vLLM",
            EngineKind::Sglang => "SGLang",
            EngineKind::Proxy => "proxy",
        };
        if !self.facts.version.is_empty() {
            self.say(&format!("startup engine {name} {}", self.facts.version));
        }
        if let Some(runs) = self.facts.max_running {
            self.say(&format!("startup max running requests: {runs}"));
        }
        if self.facts.kv_tokens > 0 {
            let line = format!("startup KV cache budget from {}", self.facts.kv_source);
            self.say(&line);
        }
        if let Some(length) = self.facts.model.max_model_len {
            self.say(&format!("startup model context length: {} tokens", thousands(length)));
        }
    }

    async fn calibrate(&mut self) -> Result<()> {
        let largest = self.plan.contexts.iter().chain(&self.plan.prefill_contexts).copied().max().unwrap_or(0);
        if largest == 0 {
            return Ok(());
        }
        self.say(&format!("startup calibrating padding text run={} up_to={}", self.prompts.run(), context_label(largest)));
        let sample = largest.min(4096);
        match self.prompts.calibrate(self.client, self.target, &self.facts.model.id, sample).await? {
            Some(ratio) => self.say(&format!("startup calibrated: {ratio:.2} chars/token (from {} probe)", context_label(sample))),
            None => self.say("startup WARNING: the engine reports no prompt tokens; assuming 4.00 chars/token"),
        }
        Ok(())
    }

    /// The steps in order: prefill contexts beyond the matrix, the first column, then row by row.
    fn steps(&mut self) -> Vec<Step> {
        let contexts: Vec<u64> = self.plan.contexts.clone();
        let levels: Vec<u32> = self.plan.concurrency_levels.clone();
        let mut steps: Vec<Step> = Vec::new();
        for context in self.plan.prefill_contexts.clone() {
            if context > 0 && !contexts.contains(&context) && self.has_prefill_row(context) {
                steps.push(Step::Prefill(context));
            }
        }
        let column = contexts.iter().filter_map(|context| levels.first().map(|level| (*context, *level)));
        let rows = contexts.iter().flat_map(|context| levels.iter().skip(1).map(move |level| (*context, *level)));
        let mut started: Vec<u64> = Vec::new();
        for (context, concurrency) in column.chain(rows).collect::<Vec<_>>() {
            if let Some(reason) = self.reason_to_skip(context, concurrency) {
                self.say(&format!("skip C={concurrency} ctx={} {reason}", context_label(context)));
                continue;
            }
            let is_first_of_context = !started.contains(&context);
            started.push(context);
            steps.push(Step::Cell { context, concurrency, is_first_of_context });
        }
        steps
    }

    fn has_prefill_row(&self, context: u64) -> bool {
        let limit = self.facts.model.max_model_len.map_or(u64::MAX, |length| length.saturating_sub(MODEL_LENGTH_MARGIN));
        context <= PREFILL_CONTEXT_MAX.min(limit)
    }

    /// The benchmark's own rule for cells that cannot fit.
    fn reason_to_skip(&self, context: u64, concurrency: u32) -> Option<String> {
        let needed = u64::from(concurrency).saturating_mul(context + self.plan.max_tokens);
        let runs = self.facts.max_running;
        if runs.is_some_and(|runs| u64::from(concurrency) > runs) {
            return Some(format!("over the engine's {} running requests", runs.unwrap_or_default()));
        }
        if self.facts.model.max_model_len.is_some_and(|length| context + self.plan.max_tokens > length) {
            return Some("over the model's context length".to_owned());
        }
        let fits_by_limit = context == 0 && runs.is_some();
        if self.facts.kv_tokens > 0 && needed > self.facts.kv_tokens && !fits_by_limit {
            return Some(format!("over capacity: {} > {} tokens", thousands(needed), thousands(self.facts.kv_tokens)));
        }
        None
    }

    /// First use of an engine compiles kernels and fills pools; that is not what is measured.
    async fn warm_engine(&mut self) -> Result<()> {
        self.say("decode warmup start");
        let seconds = self.plan.duration.min(Duration::from_secs(3));
        let stop = CancellationToken::new();
        let text = self.prompts.text("warm-up", 0);
        let body = request_body(&self.facts.model.id, &text, self.plan.max_tokens.min(512));
        let streams = run_request(self.client, self.target, body, &stop, || ());
        if let Ok(StreamRecord { error: Some(error), .. }) = tokio::time::timeout(seconds, streams).await {
            return Err(Error::new(Code::EngineError, format!("The engine failed at the warm-up: {error}")));
        }
        let contexts = self.plan.prefill_contexts.iter().chain(&self.plan.contexts);
        if let Some(context) = contexts.copied().filter(|c| *c > 0 && self.has_prefill_row(*c)).min() {
            let label = context_label(context);
            self.say(&format!("prefill warmup start ctx={label}"));
            self.scout(&self.prompts.text("prefill warm-up", context)).await?;
            self.say(&format!("prefill warmup done ctx={label}"));
        }
        Ok(())
    }

    async fn scout(&self, prompt: &str) -> Result<StreamRecord> {
        one_token(self.client, self.target, &self.facts.model.id, prompt).await
    }

    async fn prefill_only(&mut self, context: u64) {
        let label = context_label(context);
        self.say(&format!("prefill scout-only start ctx={label}"));
        match self.scout(&self.prompts.text("prefill", context)).await {
            Ok(record) => {
                if let Some(speed) = self.keep_prefill(context, &record, "scout_only") {
                    self.say(&format!("prefill scout-only done ctx={label} {} tok/s", thousands(speed)));
                }
            }
            Err(error) => self.say(&format!("prefill scout-only failed ctx={label} {error}")),
        }
    }

    fn keep_prefill(&mut self, context: u64, record: &StreamRecord, method: &'static str) -> Option<u64> {
        let ttft_seconds = record.ttft()?.as_secs_f64();
        let prompt_tokens = record.prompt_tokens.unwrap_or(context);
        self.prompt_tokens.insert(context, prompt_tokens);
        if !self.has_prefill_row(context) {
            return None;
        }
        let row = PrefillRow { ttft_seconds, prompt_tokens, method };
        self.prefill.insert(context, row);
        Some(row.tokens_per_second().round() as u64)
    }

    async fn cell(&mut self, context: u64, concurrency: u32, is_first_of_context: bool) {
        self.drain().await;
        let started = monotonic();
        let label = context_label(context);
        self.say(&format!("cell start C={concurrency} ctx={label}"));
        let text = self.prompts.text("decode", context);
        if context > 0
            && let Err(error) = self.scout_for_cell(context, &text, is_first_of_context).await
        {
            self.rows.push(CellRow::failed(context, concurrency, error.detail()));
            self.say(&format!("cell failed C={concurrency} ctx={label} {error}"));
            return;
        }
        let prompt_tokens = self.prompt_tokens.get(&context).copied().unwrap_or(0);
        // The prompt may be a little longer than its context; an engine refuses what could grow beyond its limit.
        let room =
            self.facts.model.max_model_len.map_or(u64::MAX, |length| length.saturating_sub(prompt_tokens.max(QUESTION_TOKENS_MAX)).max(1));
        let max_tokens = self.plan.max_tokens.min(room);
        let plan = CellPlan {
            context_tokens: context,
            concurrency,
            bodies: vec![request_body(&self.facts.model.id, &text, max_tokens)],
            hears: false,
            max_tokens,
            window: self.plan.duration,
            stable: stable(self.plan.duration),
            warmup_max: warmup_max(context),
            kind: if self.facts.metrics_available { self.facts.kind } else { EngineKind::Proxy },
        };
        let (log, observer) = (&mut self.log, self.observer);
        let on_ready = |ready: &Readiness| {
            let what = if ready.timed_out { "warmup timeout" } else { "ready" };
            observer(Progress::Line(&log.add(&format!("{what} C={concurrency} ctx={label} {}", ready.reason))));
        };
        let mut record = run_cell(self.client, self.target, plan, on_ready).await;
        // The scout belongs to the cell's time.
        record.started = started;
        let row = CellRow::of(&record, prompt_tokens);
        let total = row.total_tokens_per_second;
        self.rows.push(row);
        match record.failure() {
            Some(reason) => self.say(&format!("cell failed C={concurrency} ctx={label} {reason}")),
            None => self.say(&format!("cell done C={concurrency} ctx={label} {total:.1} tok/s")),
        }
        self.cells.push(record);
    }

    /// Makes sure the cell's prompt is in the engine's prefix cache; the first time this is the prefill measurement.
    async fn scout_for_cell(&mut self, context: u64, text: &str, is_first_of_context: bool) -> Result<()> {
        let is_measured = is_first_of_context && self.has_prefill_row(context);
        let label = context_label(context);
        if is_measured {
            self.say(&format!("integrated prefill start ctx={label}"));
        }
        let record = self.scout(text).await?;
        if is_first_of_context && let Some(speed) = self.keep_prefill(context, &record, "integrated_scout") {
            self.say(&format!("integrated prefill done ctx={label} {} tok/s", thousands(speed)));
        }
        Ok(())
    }

    /// Waits a moment for the streams of the cell before to leave the engine.
    async fn drain(&self) {
        let pause = Duration::from_millis(100);
        if !self.facts.metrics_available {
            return tokio::time::sleep(3 * pause).await;
        }
        for _ in 0..50 {
            match scrape(self.client, self.target, self.facts.kind).await {
                Some(gauges) if gauges.running + gauges.waiting > 0.0 => tokio::time::sleep(pause).await,
                _ => return,
            }
        }
    }

    /// Rough seconds of a step, for the display only.
    fn estimate(&self, step: Step) -> f64 {
        let speed = self.prefill.values().map(|row| row.tokens_per_second()).fold(f64::INFINITY, f64::min);
        let read = |context: u64| context as f64 / if speed.is_finite() { speed } else { 5_000.0 };
        match step {
            Step::Prefill(context) => read(context),
            Step::Cell { context, is_first_of_context, .. } => {
                let seconds = self.plan.duration.as_secs_f64();
                seconds + stable(self.plan.duration).as_secs_f64() + 0.3 + if is_first_of_context { read(context) } else { 0.0 }
            }
        }
    }

    fn metadata(&self) -> Value {
        let seconds = self.plan.duration.as_secs_f64();
        let mut metadata = json!({
            "version": SHAPE_VERSION,
            "client": concat!("rigmark-measure ", env!("CARGO_PKG_VERSION")),
            "engine": self.facts.kind.as_str(), "engine_version": self.facts.version,
            "model": self.facts.model.id, "server": self.target.address.to_string(), "timestamp": self.log.timestamp(),
            "duration_per_test": seconds, "max_tokens": self.plan.max_tokens,
            "max_total_tokens": self.facts.kv_tokens, "metrics_available": self.facts.metrics_available,
            "metrics_warning": if self.facts.metrics_available { "" } else { "no known metrics; queues cannot be seen" },
            "concurrency_levels": self.plan.concurrency_levels, "context_lengths": self.plan.contexts,
            "decode_warmup_seconds": seconds.min(3.0), "decode_warmup_context": 0, "decode_warmup_concurrency": 1,
        });
        merge(&mut metadata, fixed_metadata());
        metadata
    }

    fn startup_diagnostics(&self, hardware: Value) -> Value {
        let join = |items: Vec<String>| items.join(",");
        let mut diagnostics = json!({
            "version": SHAPE_VERSION, "server_url": self.target.address.to_string(), "hostname": "",
            "uname": OPERATING_SYSTEM, "env": {},
            "args": {
                "concurrency": join(self.plan.concurrency_levels.iter().map(u32::to_string).collect()),
                "contexts": join(self.plan.contexts.iter().map(|c| context_label(*c)).collect()),
                "prefill_contexts": join(self.plan.prefill_contexts.iter().map(|c| context_label(*c)).collect()),
                "max_tokens": self.plan.max_tokens, "duration": self.plan.duration.as_secs_f64(), "request_count": 0, "run_burst": false,
                "standalone_prefill": false, "prefill_only": false, "skip_prefill": false, "prefill_metric": "client", "dcp_size": 0,
                "kv_budget": 0,
            },
            "p2pmark": {"status": "not_run"}, "amd_fabric": {"status": "not_run"},
        });
        merge(&mut diagnostics, hardware);
        diagnostics
    }
}

/// Members that are the same in every document of this client.
fn fixed_metadata() -> Value {
    json!({
        "decode_mode": "duration", "primary_decode_layer": "sustained_decode", "request_count": 0, "warmup_request_count": 0,
        "run_burst": false, "prefill_mode": "integrated_decode_scout", "standalone_prefill": false, "prefill_only": false,
        "skip_prefill": false, "burst_e2e_status": "not_run", "burst_request_count": 0, "burst_warmup_request_count": 0,
        "burst_requests_per_concurrency": 0, "cell_warmup_timeout_seconds": 0.0,
        "cell_warmup_timeout_policy": "<=32k:60s,64k:120s,>=128k:180s when override is 0",
        "show_capacity_limited_values": true, "ignore_eos": true, "dcp_size": 0,
        "startup_diagnostics_available": true, "nvidia_p2p_override_effective": false, "p2pmark_status": "not_run",
        "amd_fabric_status": "not_run", "temperature": null, "decode_warmup_loop_diagnostics": [],
        "loop_detection": {"enabled": false},
    })
}

fn merge(into: &mut Value, from: Value) {
    if let (Value::Object(all), Value::Object(more)) = (into, from) {
        all.extend(more);
    }
}

fn describe(step: Step) -> String {
    match step {
        Step::Prefill(context) => format!("prefill {}", context_label(context)),
        Step::Cell { context, concurrency, .. } => format!("context {} × {concurrency}", context_label(context)),
    }
}

/// How long all streams must run undisturbed before a window opens: three seconds, less where the windows themselves are short.
fn stable(window: Duration) -> Duration {
    (window / 2).min(Duration::from_secs(3))
}

/// How long a cell may take to become steady.
fn warmup_max(context: u64) -> Duration {
    Duration::from_secs(match context {
        0..=65_535 => 60,
        65_536..=131_071 => 120,
        _ => 180,
    })
}

/// Reads `16k` or `16384`.
pub fn parse_tokens(text: &str) -> std::result::Result<u64, String> {
    let text = text.trim();
    let (digits, factor) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1024),
        None => (text, 1),
    };
    let number: u64 = digits.parse().map_err(|_| format!("{text} is no number of tokens such as 16k or 16384"))?;
    number.checked_mul(factor).filter(|tokens| *tokens <= 16 << 20).ok_or_else(|| format!("{text} is too large"))
}
